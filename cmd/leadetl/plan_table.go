package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/sources"
)

// planned is the table of a plan.
type planned struct {
	plan  *pipeline.Plan
	files []sources.File
	out   string
	rate  string // of the calls, as the user has it
	// noCallback says that the run needs an address for callbacks, and has none.
	noCallback bool
}

// planLine is a count with what there is to say about it.
type planLine struct {
	name string
	n    int64
	note string
	// always shows the line even where the count is 0.
	always bool
}

func (p planned) print(to io.Writer) error {
	out := bufio.NewWriter(to)
	fmt.Fprintln(out, p.plan.Operation)
	width := len(figures.Grouped(p.largest()))
	for _, line := range p.lines() {
		if line.always || line.n > 0 {
			fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("  %-11s  %*s  %s", line.name, width, figures.Grouped(line.n), line.note), " "))
		}
	}
	for _, line := range p.texts() {
		fmt.Fprintf(out, "  %-11s  %s\n", line[0], line[1])
	}
	return out.Flush()
}

func (p planned) largest() (n int64) {
	for _, line := range p.lines() {
		n = max(n, line.n)
	}
	return n
}

func (p planned) lines() []planLine {
	from := closing{files: p.files}.input()
	plan, rows := p.plan, "rows"
	if plan.Operation.IsKeyword() {
		rows = "searches"
	}
	lines := []planLine{
		{rows, plan.Rows, from, true},
		{"malformed", plan.Malformed, reasons(plan.Reasons["malformed"]), true},
		{"rejected", plan.Rejected, reasons(plan.Reasons["rejected"]), true},
		{"suppressed", plan.Suppressed, reasons(plan.Reasons["suppressed"]), false},
		{"recorded", plan.Recorded.Rows, "done already, in " + figures.Plural(plan.Recorded.Parts, "part"), false},
		{"failed", plan.Failed, "of these rows, and a run ends with exit code 3 for them", false},
	}
	if plan.Complete {
		return lines
	}
	lines = append(lines,
		planLine{"never asked", sumOf(plan.Special), reasons(plan.Special), false},
		planLine{"duplicates", plan.Duplicates, "", true},
		planLine{"keys", plan.Keys, "", true},
	)
	if plan.Calls != nil {
		lines = append(lines, callLines(plan.Calls)...)
	}
	return lines
}

// callLines are what becomes of the keys where a service is asked.
func callLines(c *pipeline.PlannedCalls) []planLine {
	unknown := "calls without an answer: they may have been billed"
	parked := "begun: their answers come later"
	calls, credits := "", "at most: leads that are not found cost nothing"
	if c.Price > 0 {
		credits = fmt.Sprintf("at most, %d a call: what is not found costs nothing", c.Price)
	}
	if c.MorePages {
		calls, credits = "at least: pages follow where there are more leads", "at most for these pages: leads that are not found cost nothing"
	}
	return []planLine{
		{"stored", c.Stored, "cost nothing", true},
		{"stale", c.Stale, "stored, but too old or a refusal: asked again", false},
		{"unknown", c.Unknown, unknown, false},
		{"parked", c.Parked, parked, false},
		{"failed", c.Failed, "of these, which are not asked again: their rows fail", false},
		{"skipped", c.Skipped, "are not stored, and --offline asks nobody", false},
		{"calls", c.Calls, calls, true},
		{"credits", c.Credits, credits, true},
	}
}

func sumOf(counts map[string]int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

func (p planned) texts() (lines [][2]string) {
	plan := p.plan
	if p.noCallback {
		lines = append(lines, [2]string{"callbacks", "the run refuses to begin without --callback-url or --callback-listen"})
	}
	if plan.Complete {
		todo := "nothing, the dataset is complete"
		if plan.Failed > 0 {
			todo = "nothing: the dataset is complete, but for its failed rows"
		}
		lines = append(lines, [2]string{"to do", todo})
	} else if plan.Calls != nil && plan.Calls.Calls > 0 {
		lines = append(lines, [2]string{"time", planTime(plan.Calls, p.rate)})
		if len(plan.Calls.Short) > 0 {
			lines = append(lines, [2]string{"budget", planBudget(plan.Calls)})
		}
	}
	return append(lines, [2]string{"files", planFiles(plan.Files, plan.Complete)}, [2]string{"dataset", p.out})
}

// planTime is how long the calls take; how long one takes is not known before
// it is made.
func planTime(c *pipeline.PlannedCalls, rate string) string {
	if c.Rate == 0 {
		return "as fast as the service answers; with --rate it is known"
	}
	rate, _, _ = strings.Cut(rate, " ") // without the burst, which is the service's word
	seconds := min(max(math.Round(c.Seconds), 1), math.MaxInt64/float64(time.Second))
	return fmt.Sprintf("about %s at %s", time.Duration(seconds)*time.Second, rate)
}

func planBudget(c *pipeline.PlannedCalls) string {
	const then = ": the run would stop, and go on when there is more"
	var may, certain []string
	for _, name := range c.Short {
		flag := "--" + flagOf(name)
		if slices.Contains(c.NotEnough, name) {
			certain = append(certain, flag)
		} else {
			may = append(may, flag)
		}
	}
	var texts []string
	switch len(certain) {
	case 0:
	case 1:
		texts = append(texts, certain[0]+" is not enough")
	default:
		texts = append(texts, strings.Join(certain, " and ")+" are not enough")
	}
	if len(may) > 0 {
		texts = append(texts, strings.Join(may, " and ")+" may not be enough")
	}
	return strings.Join(texts, ", ") + then
}

func planFiles(f pipeline.PlannedFiles, complete bool) string {
	text := figures.Plural(f.Parts, "part")
	if f.Partitioned > 0 {
		text += " in " + figures.Plural(f.Partitioned, "file")
	}
	if f.Rejects > 0 {
		text += fmt.Sprintf(", %d of them with malformed lines", f.Rejects)
	}
	switch {
	case complete:
		return text + ", " + figures.Size(f.Bytes)
	case !f.AtLeast:
		return text + ", about " + figures.Size(f.Bytes)
	case f.Bytes > 0:
		return text + ", without the answers about " + figures.Size(f.Bytes)
	}
	return text
}
