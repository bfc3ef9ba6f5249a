// Package runview shows a run to its user: the live progress line, the table at the
// end, and the table of a plan.
package runview

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/rows"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// Summary is the table at the end of a run.
type Summary struct {
	Operation resolution.Operation
	Files     []sources.File // of the input
	Sample    int            // lines of a sample, 0 for all
	Out       string         // the dataset
	Report    string         // the page of the report
	Took      time.Duration
	Result    *finish.Result
	Progress  stats.Snapshot // when the run ended
}

// Print writes the table of a run that finished.
func (s Summary) Print(to io.Writer) error {
	totals := s.Result.Totals
	t := Table{Title: string(s.Operation)}
	t.Count("rows", totals.Rows, s.source(totals)+s.duplicates())
	t.Count("matched", totals.Matched, figures.Share(totals.Matched, totals.Rows))
	t.CountIfAny("complete", totals.Complete, figures.Share(totals.Complete, totals.Rows)+", with all that is wanted")
	t.Count("no match", totals.NoMatch, figures.Counts(totals.Reasons["no_match"]))
	t.Count("rejected", totals.Rejected, figures.Counts(totals.Reasons["rejected"]))
	t.CountIfAny("failed", totals.Failed, figures.Counts(totals.Reasons["failed"]))
	s.addSuppressed(&t, totals)
	t.CountIfAny("skipped", totals.Skipped, figures.Counts(totals.Reasons["skipped"]))
	if text := passed(totals); text != "" {
		t.Text("passed over", text+"; the same command asks again")
	}
	t.CountIfAny("unusual", totals.Unusual, unusual)
	t.CountIfAny("not selected", totals.NotSelected, "by --where")
	t.Count("malformed", totals.Malformed, figures.Counts(totals.Reasons["malformed"]))
	if first := s.Result.FirstReject; first != nil {
		t.Text("first bad", fmt.Sprintf("%s: row %d: %s", rows.Shown(first.URI), first.Row, first.Reason))
	}
	s.addChanges(&t)
	s.addCalls(&t)
	t.Text("took", s.speed())
	s.addTimes(&t)
	s.addMachines(&t)
	t.Text("files", s.parts())
	t.Text("dataset", s.Out)
	s.addReport(&t)
	s.addResolvers(&t)
	return t.Print(to)
}

// addChanges adds what differs from the earlier dataset, and what the run has paid.
func (s Summary) addChanges(t *Table) {
	c := s.Result.Changes
	if c == nil {
		return
	}
	line := c.String()
	if service := s.service(); service != nil {
		line += ", " + figures.Plural(service.Calls.Credits, "credit")
	}
	t.Text("changes", line)
}

// unusual explains sinks.Totals.Unusual.
const unusual = "addresses that RFC 5321 forbids, hashed as typed"

// duplicates says how many rows have the key of another row. With a service, a
// line of the table says so.
func (s Summary) duplicates() string {
	if n := s.Result.Duplicates; n != nil && *n > 0 && s.service() == nil {
		return ", " + figures.Plural(*n, "duplicate")
	}
	return ""
}

// addSuppressed adds how many rows the suppression lists left out, and the
// length of the lists.
func (s Summary) addSuppressed(t *Table, totals sinks.Totals) {
	entries := s.Result.SuppressionEntries
	if entries == nil {
		t.CountIfAny("suppressed", totals.Suppressed, figures.Counts(totals.Reasons["suppressed"]))
		return
	}
	note := "by lists of " + figures.Plural(*entries, "entry")
	if totals.Suppressed > 0 {
		note = figures.Counts(totals.Reasons["suppressed"]) + ", " + note
	}
	t.Count("suppressed", totals.Suppressed, note)
}

// PrintStopped prints what a run with a service did before it stopped, and
// nothing for other runs. The rows that were read are those with an outcome and those of not yet.
// The error says why it stopped and how to resume.
func (s Summary) PrintStopped(to io.Writer) error {
	service := s.service()
	if service == nil {
		return nil
	}
	p := s.Progress
	read := max(p.RowsRead, p.Done.InputRows())
	t := Table{Title: string(s.Operation) + ", not finished"}
	t.Count("rows", read, s.ofAll(read))
	t.CountIfAny("not selected", p.Done.NotSelected, "by --where")
	if has := p.Done.InputRows() - p.Done.NotSelected; p.Done.Rows != has {
		t.Count("output rows", p.Done.Rows, fmt.Sprintf("of %s of these", figures.Grouped(has)))
	}
	t.CountIfAny("matched", p.Done.Matched, figures.Share(p.Done.Matched, p.Done.Rows))
	reasons := s.Result.Totals.Reasons
	if s.Result.Totals.Rows != p.Done.Rows { // rows of parts that are not recorded yet have reasons too
		reasons = nil
	}
	t.CountIfAny("no match", p.Done.NoMatch, figures.Counts(reasons["no_match"]))
	t.CountIfAny("rejected", p.Done.Rejected, figures.Counts(reasons["rejected"]))
	t.CountIfAny("failed", p.Done.Failed, figures.Counts(reasons["failed"]))
	t.CountIfAny("suppressed", p.Done.Suppressed, figures.Counts(reasons["suppressed"]))
	t.CountIfAny("skipped", p.Done.Skipped, figures.Counts(reasons["skipped"]))
	c := service.Calls
	t.Count("not yet", read-p.Done.InputRows(), fmt.Sprintf("%s of %s answered, %s matched", figures.Grouped(c.Closed), figures.Plural(c.Asked, "identifier"), figures.Grouped(c.Matched)))
	t.CountIfAny("malformed", p.Done.Malformed, figures.Counts(reasons["malformed"]))
	s.addCalls(&t)
	t.Text("took", s.Took.Round(10*time.Millisecond).String())
	s.addTimes(&t)
	t.Text("files", figures.Plural(s.Result.Parts.All(), "part")+"; answers of unfinished parts are stored")
	s.addReport(&t)
	s.addResolvers(&t)
	return t.Print(to)
}

// service returns the report on the service, or on several resolvers together; nil for a run without
// one.
func (s Summary) service() *report.Service {
	if s.Result == nil || s.Result.Report == nil {
		return nil
	}
	return s.Result.Report.Asked()
}

// ofAll returns the total number of input rows, as far as it is known and more than were read.
func (s Summary) ofAll(read int64) string {
	p := report.ProgressOf(s.Progress)
	if p.Exact || p.Of <= read {
		return inputNames(s.Files, s.Sample)
	}
	return fmt.Sprintf("of about %s %s", figures.Grouped(p.Of), inputNames(s.Files, s.Sample))
}

// addCalls adds the calls to the service and their cost.
func (s Summary) addCalls(t *Table) {
	service := s.service()
	if service == nil {
		return
	}
	c := service.Calls
	t.Count("stored", c.Stored, "answered without a call")
	t.Count("duplicates", c.Duplicates, "rows with an identifier of another row")
	t.Count("calls", c.Calls, figures.Counts(c.ByClass))
	t.Count("retries", total(c.Retries), figures.Counts(c.Retries))
	t.Count("credits", c.Credits, credits(service))
	if n := service.Unknown.Count; n > 0 {
		t.Count("unknown", n, "calls that may have been billed; list them with leadetl answers list --unknown")
	} else {
		t.Count("unknown", 0, "calls")
	}
	t.CountIfAny("parked", service.Parked, "calls whose answers have not arrived yet")
	t.CountIfAny("left out", c.Quarantined, "invalid fields of answers")
	t.CountIfAny("over price", c.OverPrice, "answers that cost more than the price held before a call")
	t.CountIfAny("elsewhere", c.OtherAddress, "answers under another address than was asked about")
}

// credits describes what the whole job has paid, if earlier runs were part of
// it; what calls without an answer may have cost; and the limit.
func credits(s *report.Service) string {
	var notes []string
	paid := s.Calls.EarlierCredits + s.Calls.Credits
	if s.Calls.EarlierCredits > 0 {
		notes = append(notes, figures.Grouped(paid)+" including earlier runs of this job")
	}
	if open := s.Budget.Credits - paid; open > 0 {
		notes = append(notes, "up to "+figures.Grouped(open)+" more for calls without an answer")
	}
	if most := s.Budget.MaxCredits; most != nil {
		notes = append(notes, "budget "+figures.Grouped(*most))
	}
	if a := s.Budget.Allowance; a != nil {
		notes = append(notes, fmt.Sprintf("%s of %s by all jobs in %s", figures.Grouped(a.Credits), figures.Grouped(a.MaxCredits), figures.Plural(int64(a.Days), "day")))
	}
	return strings.Join(notes, ", ")
}

// addTimes adds how long calls waited and took.
func (s Summary) addTimes(t *Table) {
	service := s.service()
	if service == nil {
		return
	}
	calls := service.Calls
	if waited := waits(calls); waited != "" {
		t.Text("waited", waited)
	}
	if calls.P50 > 0 {
		t.Text("latency", fmt.Sprintf("p50 %s, p95 %s, p99 %s", figures.Digits(calls.P50), figures.Digits(calls.P95), figures.Digits(calls.P99)))
	}
}

// waits says how long calls waited, without what is less than a second.
func waits(calls stats.CallSnapshot) string {
	var texts []string
	for _, reason := range stats.WaitReasons {
		if waited := calls.Waits[string(reason)]; waited >= time.Second && reason != pace.Concurrency {
			texts = append(texts, waited.Round(10*time.Millisecond).String()+" "+waitNames[reason])
		}
	}
	return strings.Join(texts, ", ")
}

// addResolvers adds what each of several resolvers has done.
func (s Summary) addResolvers(t *Table) {
	if s.Result.Report == nil || len(s.Result.Report.Resolvers) == 0 {
		return
	}
	t.Below = Grid{Heads: []string{"resolver", "asked", "matched", "added", "credits", "each added", "unknown", "waited"}, Notes: 1}
	for _, r := range s.Result.Report.Resolvers {
		each, unknown, waited := "", "", ""
		if r.CreditsPerAdded != nil {
			each = fmt.Sprintf("%.2f", *r.CreditsPerAdded)
		}
		if r.Service != nil {
			unknown, waited = figures.Grouped(r.Service.Unknown.Count), waits(r.Service.Calls)
		}
		t.Below.Rows = append(t.Below.Rows, []string{r.Name, figures.Grouped(r.Asked), figures.Grouped(r.Matched), figures.Grouped(r.Added), figures.Grouped(r.Credits), each, unknown, waited})
	}
}

// passed says how many rows went on without a resolver, which the same command asks again.
func passed(totals sinks.Totals) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(totals.Resolvers)) {
		if n := totals.Resolvers[name].Passed; n > 0 {
			texts = append(texts, figures.Plural(n, "row")+" without "+name)
		}
	}
	return strings.Join(texts, ", ")
}

// addMachines adds how many workers did the run.
func (s Summary) addMachines(t *Table) {
	if s.Result.Report == nil || len(s.Result.Report.Machines) == 0 {
		return
	}
	var steps int64
	for _, m := range s.Result.Report.Machines {
		steps += total(m.Steps)
	}
	t.Count("workers", int64(len(s.Result.Report.Machines)), figures.Plural(steps, "step"))
}

// addReport adds the location of the report, for runs with more details than
// the table shows.
func (s Summary) addReport(t *Table) {
	if s.service() != nil {
		t.Text("report", s.Report)
	}
}

func total(counts map[string]int64) (n int64) {
	for _, count := range counts {
		n += count
	}
	return n
}

// source describes where the rows of a dataset come from.
func (s Summary) source(t sinks.Totals) string {
	switch {
	case t.SourceRows > 0:
		return "of " + figures.Plural(t.SourceRows, "input row") + " " + inputNames(s.Files, s.Sample)
	case t.Searches == 0:
		return inputNames(s.Files, s.Sample)
	}
	noun := " search "
	if t.Searches != 1 {
		noun = " searches "
	}
	return "of " + figures.Grouped(t.Searches) + noun + inputNames(s.Files, s.Sample)
}

// inputNames describes the inputs.
func inputNames(files []sources.File, sample int) string {
	from := "from "
	if sample > 0 {
		from = "sample of "
	}
	if len(files) == 1 {
		return from + rows.Shown(files[0].URI)
	}
	return fmt.Sprintf("%s%d files", from, len(files))
}

// speed returns how long the run took, and its speed for the rows that it made
// itself.
func (s Summary) speed() string {
	if s.Result.Parts.Made == 0 {
		return "nothing to do: the dataset is complete"
	}
	took := s.Took.Round(10 * time.Millisecond).String()
	if s.Took < time.Second { // mostly start-up time
		return took
	}
	perSecond := float64(s.Result.Fresh.Rows) / s.Took.Seconds()
	return fmt.Sprintf("%s, %s rows/s", took, figures.Grouped(int64(perSecond)))
}

func (s Summary) parts() string {
	var bytes int64
	files := 0
	for _, p := range s.Result.Manifest.Parts {
		bytes += p.Bytes
		files += len(p.Files)
	}
	text := figures.Plural(len(s.Result.Manifest.Parts), "part")
	if files > 0 {
		text += " in " + figures.Plural(files, "file")
	}
	text += ", " + figures.Size(bytes)
	if s.Result.Parts.Earlier > 0 && s.Result.Parts.Made > 0 {
		text += fmt.Sprintf(", %d from earlier runs", s.Result.Parts.Earlier)
	}
	return text
}
