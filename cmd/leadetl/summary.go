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

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// closing is the table at the end of a run.
type closing struct {
	job      pipeline.Job
	files    []sources.File
	out      string
	took     time.Duration
	result   *pipeline.Result
	progress stats.Snapshot
}

// closingLine is a line of the table; a line without a count begins with its
// note.
type closingLine struct {
	name  string
	count int64
	note  string
	bare  bool
}

// print writes the table of a run that finished.
func (c closing) print(to io.Writer) error {
	t := c.result.Totals
	lines := []closingLine{
		{name: "rows", count: t.Rows, note: c.source(t)},
		{name: "matched", count: t.Matched, note: figures.Share(t.Matched, t.Rows)},
		{name: "no match", count: t.NoMatch, note: reasons(t.Reasons["no_match"])},
		{name: "rejected", count: t.Rejected, note: reasons(t.Reasons["rejected"])},
	}
	for _, seldom := range []closingLine{
		{name: "failed", count: t.Failed, note: reasons(t.Reasons["failed"])},
		{name: "suppressed", count: t.Suppressed, note: reasons(t.Reasons["suppressed"])},
		{name: "skipped", count: t.Skipped, note: reasons(t.Reasons["skipped"])},
	} {
		if seldom.count > 0 {
			lines = append(lines, seldom)
		}
	}
	lines = append(lines, closingLine{name: "malformed", count: t.Malformed, note: reasons(t.Reasons["malformed"])})
	lines = append(lines, c.service()...)
	lines = append(lines, closingLine{name: "took", note: c.speed(), bare: true})
	lines = append(lines, c.times()...)
	lines = append(lines, closingLine{name: "files", note: c.parts(), bare: true}, closingLine{name: "dataset", note: c.out, bare: true})
	return printClosing(to, string(c.job.Operation), append(lines, c.report()...))
}

// printStopped writes what a run came to that was stopped while it asked a
// service; nothing of any other. Why it stopped, and how it goes on, is the
// error's to say.
func (c closing) printStopped(to io.Writer) error {
	if c.result == nil || c.result.Report == nil || c.result.Report.Service == nil {
		return nil
	}
	p := c.progress
	lines := []closingLine{
		{name: "rows", count: p.InputDone(), note: c.ofAll()},
		{name: "matched", count: p.Matched, note: figures.Share(p.Matched, p.Rows)},
	}
	if calls := c.result.Report.Service.Calls; p.Rows == 0 { // no batch is whole
		lines[1] = closingLine{name: "matched", count: calls.Matched, note: fmt.Sprintf("of %s answered", figures.Plural(calls.Closed, "question"))}
	}
	for _, seldom := range []closingLine{{name: "failed", count: p.Failed}, {name: "suppressed", count: p.Suppressed}, {name: "skipped", count: p.Skipped}} {
		if seldom.count > 0 {
			lines = append(lines, seldom)
		}
	}
	lines = append(lines, c.service()...)
	lines = append(lines, closingLine{name: "took", note: c.took.Round(10 * time.Millisecond).String(), bare: true})
	lines = append(lines, c.times()...)
	lines = append(lines, closingLine{name: "files", note: figures.Plural(c.result.Made+c.result.Skipped, "part") + "; answers of unfinished parts are stored", bare: true})
	return printClosing(to, string(c.job.Operation)+", not finished", append(lines, c.report()...))
}

// ofAll says how many input rows there are to be done, as far as is known.
func (c closing) ofAll() string {
	done, all := c.progress.InputDone(), c.progress.InputRows()
	if all == 0 {
		return c.input()
	}
	about := "about "
	if c.progress.BytesRead >= c.progress.BytesTotal {
		about = ""
	}
	return fmt.Sprintf("of %s%s %s, %s left", about, figures.Grouped(all), c.input(), figures.Grouped(max(all-done, 0)))
}

func printClosing(to io.Writer, title string, lines []closingLine) error {
	names, counts := 0, 0
	for _, line := range lines {
		names = max(names, len(line.name))
		if !line.bare {
			counts = max(counts, len(figures.Grouped(line.count)))
		}
	}
	out := bufio.NewWriter(to)
	fmt.Fprintln(out, title)
	for _, line := range lines {
		text := fmt.Sprintf("  %-*s  ", names, line.name)
		if !line.bare {
			text += fmt.Sprintf("%*s  ", counts, figures.Grouped(line.count))
		}
		fmt.Fprintln(out, strings.TrimRight(text+line.note, " "))
	}
	return out.Flush()
}

// service is what was asked of a service, and what it cost.
func (c closing) service() []closingLine {
	if c.result.Report == nil || c.result.Report.Service == nil {
		return nil
	}
	s := c.result.Report.Service
	lines := []closingLine{
		{name: "stored", count: s.Calls.Stored, note: "answered without a call"},
		{name: "twins", count: s.Calls.Duplicates, note: "rows that shared another's question"},
		{name: "calls", count: s.Calls.Calls, note: reasons(s.Calls.ByClass)},
		{name: "retries", count: total(s.Calls.Retries), note: reasons(s.Calls.Retries)},
		{name: "credits", count: s.Calls.Credits, note: credits(s)},
		{name: "unknown", count: s.Unknown.Count, note: "calls"},
	}
	if s.Unknown.Count > 0 {
		lines[5].note = "calls that may have been billed; leadetl answers list --unknown names them"
	}
	if n := s.Parked; n > 0 {
		lines = append(lines, closingLine{name: "parked", count: n, note: "calls whose answer was promised and is not there"})
	}
	if n := s.Calls.Quarantined; n > 0 {
		lines = append(lines, closingLine{name: "left out", count: n, note: "members of answers that were not what they claimed to be"})
	}
	return lines
}

// credits says what the whole unfinished job has spent where earlier runs did,
// and what it may.
func credits(s *report.Service) string {
	var notes []string
	if s.Calls.EarlierCredits > 0 {
		notes = append(notes, figures.Grouped(s.Budget.Credits)+" with earlier runs of this job")
	}
	if most := s.Budget.MaxCredits; most != nil {
		notes = append(notes, "budget "+figures.Grouped(*most))
	}
	return strings.Join(notes, ", ")
}

// times are how long calls waited and took.
func (c closing) times() (lines []closingLine) {
	if c.result.Report == nil || c.result.Report.Service == nil {
		return nil
	}
	calls := c.result.Report.Service.Calls
	var waits []string
	for _, reason := range waitReasons {
		if waited := calls.Waits[string(reason)]; waited >= time.Second && reason != pace.Concurrency {
			waits = append(waits, figures.Compact(waited.Round(time.Second))+" "+waitNames[reason])
		}
	}
	if len(waits) > 0 {
		lines = append(lines, closingLine{name: "waited", note: strings.Join(waits, ", "), bare: true})
	}
	if calls.P50 > 0 {
		note := fmt.Sprintf("p50 %s, p95 %s, p99 %s", figures.Digits(calls.P50), figures.Digits(calls.P95), figures.Digits(calls.P99))
		lines = append(lines, closingLine{name: "latency", note: note, bare: true})
	}
	return lines
}

// report says where the report is, of runs that have more to say than fits
// the table.
func (c closing) report() []closingLine {
	if c.result.Report == nil || c.result.Report.Service == nil {
		return nil
	}
	return []closingLine{{name: "report", note: below(c.out, sinks.ReportPageName), bare: true}}
}

func total(counts map[string]int64) (n int64) {
	for _, count := range counts {
		n += count
	}
	return n
}

// source is where the rows of a dataset come from.
func (c closing) source(t sinks.Totals) string {
	if t.Searches == 0 {
		return c.input()
	}
	noun := " search "
	if t.Searches != 1 {
		noun = " searches "
	}
	return "of " + figures.Grouped(t.Searches) + noun + c.input()
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
	return fmt.Sprintf("%s, %s rows/s", took, figures.Grouped(int64(perSecond)))
}

func (c closing) parts() string {
	var bytes int64
	files := 0
	for _, p := range c.result.Manifest.Parts {
		bytes += p.Bytes
		files += len(p.Files)
	}
	text := figures.Plural(len(c.result.Manifest.Parts), "part")
	if files > 0 {
		text += " in " + figures.Plural(files, "file")
	}
	text += ", " + figures.Size(bytes)
	if c.result.Skipped > 0 && c.result.Made > 0 {
		text += fmt.Sprintf(", %d from earlier runs", c.result.Skipped)
	}
	return text
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
		names[i] = name + " " + figures.Grouped(counts[name])
	}
	return strings.Join(names, ", ") + more
}
