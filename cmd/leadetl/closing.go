package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/sources"
)

// closing is the table at the end of a run.
type closing struct {
	job    pipeline.Job
	files  []sources.File
	out    string
	took   time.Duration
	result *pipeline.Result
}

func (c closing) print(to io.Writer) error {
	t := c.result.Totals
	counts := []struct {
		name string
		n    int64
		note string
	}{
		{"rows", t.Rows, c.input()},
		{"matched", t.Matched, share(t.Matched, t.Rows)},
		{"no match", t.NoMatch, reasons(t.Reasons["no_match"])},
		{"rejected", t.Rejected, reasons(t.Reasons["rejected"])},
		{"malformed", t.Malformed, reasons(t.Reasons["malformed"])},
	}
	width := len(grouped(t.Rows + t.Malformed))
	out := bufio.NewWriter(to)
	fmt.Fprintln(out, c.job.Operation)
	for _, line := range counts {
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("  %-9s  %*s  %s", line.name, width, grouped(line.n), line.note), " "))
	}
	for _, line := range [][2]string{{"took", c.speed()}, {"files", c.parts()}, {"dataset", c.out}} {
		fmt.Fprintf(out, "  %-9s  %s\n", line[0], line[1])
	}
	return out.Flush()
}

func (c closing) input() string {
	if len(c.files) == 1 {
		return "from " + c.files[0].URI
	}
	return fmt.Sprintf("from %d files", len(c.files))
}

// speed is how long the run took, and how fast it was at the rows it made
// itself.
func (c closing) speed() string {
	if c.result.Made == 0 {
		return "nothing to do, the dataset is complete"
	}
	took := c.took.Round(10 * time.Millisecond).String()
	if c.took < time.Second { // start-up is all there is to measure
		return took
	}
	perSecond := float64(c.result.Fresh.Rows) / c.took.Seconds()
	return fmt.Sprintf("%s, %s rows/s", took, grouped(int64(perSecond)))
}

func (c closing) parts() string {
	var bytes int64
	for _, p := range c.result.Manifest.Parts {
		bytes += p.Bytes
	}
	text := fmt.Sprintf("%s, %s", plural(len(c.result.Manifest.Parts), "part"), size(bytes))
	if c.result.Skipped > 0 && c.result.Made > 0 {
		text += fmt.Sprintf(", %d from earlier runs", c.result.Skipped)
	}
	return text
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%s %ss", grouped(int64(n)), noun)
}

func share(n, of int64) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(of))
}

// shownReasons is how many reasons one line names.
const shownReasons = 6

// reasons lists counts by reason, most frequent first.
func reasons(counts map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var more string
	if len(names) > shownReasons+1 {
		more = fmt.Sprintf(" and %d other reasons", len(names)-shownReasons)
		names = names[:shownReasons]
	}
	for i, name := range names {
		names[i] = name + " " + grouped(counts[name])
	}
	return strings.Join(names, ", ") + more
}

// grouped writes n with commas between thousands.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// size writes a count of bytes in decimal units.
func size(n int64) string {
	const unit = 1000
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, prefix := float64(n)/unit, 0
	for value >= unit-0.05 && prefix < 4 { // what would be printed as 1000.0
		value, prefix = value/unit, prefix+1
	}
	return fmt.Sprintf("%.1f %cB", value, "kMGTP"[prefix])
}
