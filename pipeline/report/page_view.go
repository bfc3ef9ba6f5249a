package report

import (
	"html/template"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/transforms/orgtype"
)

// view is the data of page.html. Sections without content are left out.
type view struct {
	Style     template.CSS
	Operation string
	Output    string
	Outcome   outcome
	Facts     []fact
	Tiles     []tile
	Columns   int // number of tiles in a row, if there is space
	Flow      *flow
	Questions *flow
	Reasons   []barTable
	Resolvers *resolverTable // nil for one
	Charts    []*chart
	Calls     []barTable
	Meters    []meter
	Notes     []note
	Machines  *barTable // nil without workers
	Inputs    fileTable
	Files     fileTable
	Program   string
	JobID     string
}

// outcome says how a run ended.
type outcome struct {
	Kind string // good, mixed, stopped or bad
	Word string
	Text string
	// Detail is the run's error message.
	Detail string
}

// fact is a line of the page's head.
type fact struct{ Name, Value, Time string }

// tile is one of the main numbers at the top.
type tile struct{ Name, Value, Note, Kind string }

// Long reports whether the value needs a smaller font on narrow screens.
func (t tile) Long() bool { return len(t.Value) >= 8 }

// note is a hint, with a command that helps.
type note struct{ Text, Command string }

// fileTable lists the files that were read, or the files that were written.
type fileTable struct {
	Rows  []fileRow
	Total string
	More  string // how many files are not listed
	Open  bool
}

type fileRow struct{ Name, Rows, Bytes, Changed, Sum, Short string }

// maxColumns is how many tiles fit side by side.
const maxColumns = 6

func newView(r *Report) *view {
	v := &view{
		Operation: r.Operation, Output: invisible.Escape(r.Output), Outcome: newOutcome(r).warnOfWords(r.Totals).warnOfOdd(r), Facts: facts(r), Tiles: tiles(r),
		Reasons: reasonTables(r), Resolvers: newResolverTable(r), Charts: charts(r), Machines: machineTable(r), Inputs: inputs(r), Files: files(r), Program: r.Program, JobID: r.JobID,
	}
	if v.Columns = len(v.Tiles); v.Columns > maxColumns {
		v.Columns = (v.Columns + 1) / 2
	}
	if unfinished(r) && r.Asked().Calls.Asked > 0 {
		v.Questions = questionsFlow(r)
	}
	if lines(r.Totals) > 0 {
		v.Flow = rowsFlow(r)
	}
	if r.Asked() != nil {
		v.Calls, v.Meters, v.Notes = callTables(r.Asked()), meters(r), append(notes(r), resolverNotes(r)...)
	}
	return v
}

// unfinished reports whether a run with a service stopped early. Such a run has
// bought more answers than its parts show.
func unfinished(r *Report) bool { return r.Stop.Reason != StopFinished && r.Asked() != nil }

// stops describes how an unfinished run ended.
var stops = map[StopReason]outcome{
	StopInterrupted: {"stopped", "Interrupted", "Run the same command to resume.", ""},
	StopBudget:      {"stopped", "Stopped at its budget", "Raise the limit and run the same command to resume.", ""},
	StopNoCredits:   {"stopped", "Out of credits", "The service's account is empty. Add credits and run the same command to resume.", ""},
	StopRefused:     {"bad", "Refused by the service", "The service does not accept the credentials. Correct them and run the same command to resume.", ""},
	StopUnreachable: {"bad", "The service could not be reached", "Run the same command to resume.", ""},
	StopFailed:      {"bad", "Failed", "Remove the cause and run the same command to resume.", ""},
}

func newOutcome(r *Report) outcome {
	if r.Stop.Reason != StopFinished {
		o, known := stops[r.Stop.Reason]
		if !known {
			o = outcome{Kind: "bad", Word: "Stopped: " + words(string(r.Stop.Reason))}
		}
		o.Detail = r.Stop.Detail
		return o
	}
	t := r.Totals
	o := outcome{Kind: "good", Word: "Finished"}
	switch {
	case t.Failed > 0:
		o = outcome{Kind: "mixed", Word: "Finished, with failed rows", Text: count(t.Failed, "row") + " got no answer. The column reason says why."}
	case t.Skipped > 0:
		o = outcome{Kind: "mixed", Word: "Finished, with skipped rows", Text: count(t.Skipped, "row") + " were not asked."}
	case passed(t):
		o = outcome{Kind: "mixed", Word: "Finished, without some answers", Text: "Rows went on without a resolver. Run the same command to ask again."}
	case t.ManyRejects():
		o = outcome{Kind: "mixed", Word: "Finished, with rejected lines"}
	case t.InputRows() == 0:
		o = outcome{Kind: "mixed", Word: "Finished, without rows", Text: "The input held no rows."}
	}
	if t.ManyRejects() {
		o.Text = strings.TrimSpace(o.Text + " " + percent(t.RejectShare()) + " of the lines were rejected: " + figures.Counts(t.RejectReasons()))
	}
	return o
}

// warnOfWords adds that words of org_type are not known, if they have 1% of the rows.
func (o outcome) warnOfWords(t sinks.Totals) outcome {
	words := orgtype.InReasons(t.Reasons["no_match"])
	n, worth := orgtype.Notable(words, t.Rows)
	if !worth {
		return o
	}
	if o.Kind == "good" {
		o.Kind, o.Word = "mixed", "Finished, with unknown kinds of organizations"
	}
	o.Text = strings.TrimSpace(o.Text + " " + count(n, "row") + " (" + percent(n, t.Rows) + ") got no company because words of org_type are not known: " + orgtype.Names(words) +
		". leadetl directory import --org-type WORD=KIND gives a word a kind.")
	return o
}

func facts(r *Report) []fact {
	var list []fact
	add := func(name, value string, at time.Time) {
		if value != "" {
			f := fact{Name: name, Value: value}
			if !at.IsZero() {
				f.Time = at.UTC().Format(time.RFC3339)
			}
			list = append(list, f)
		}
	}
	if !r.StartedAt.IsZero() {
		add("Started", moment(r.StartedAt)+" UTC", r.StartedAt)
	}
	ended := moment(r.EndedAt)
	if r.EndedAt.UTC().Truncate(24 * time.Hour).Equal(r.StartedAt.UTC().Truncate(24 * time.Hour)) {
		ended = r.EndedAt.UTC().Format("15:04:05")
	}
	if ended != "" {
		add("Ended", ended+" UTC", r.EndedAt)
	}
	if r.Seconds > 0 {
		add("Took", took(r.Seconds), time.Time{})
	}
	add("Changes", changesFact(r), time.Time{})
	add("Before", previousFact(r.Previous), time.Time{})
	add("Resolvers", resolverNames(r), time.Time{})
	if s := r.Service; s != nil {
		name := s.Name
		if s.Offline {
			name += ", stored answers only"
		}
		add("Service", name, time.Time{})
	}
	return list
}

// tileList are the figures above the flow of rows, each with a note and the kind that colours it.
type tileList []tile

func (l *tileList) add(name, value, note, kind string) {
	*l = append(*l, tile{name, value, note, kind})
}

func tiles(r *Report) (l tileList) {
	t := r.Totals
	l.addRows(r)
	if t.NotSelected > 0 {
		l.add("Not selected", figures.Grouped(t.NotSelected), "by --where", "")
	}
	for _, seldom := range []struct {
		name, kind string
		n          int64
	}{{"Failed", "failed", t.Failed}, {"Skipped", "skipped", t.Skipped}, {"Suppressed", "suppressed", t.Suppressed}} {
		if seldom.n > 0 && unfinished(r) { // else the flow shows them
			l.add(seldom.name, figures.Grouped(seldom.n), percent(seldom.n, t.Rows)+" of the rows", seldom.kind)
		}
	}
	if bad := t.Rejects(); bad > 0 && unfinished(r) {
		note := percent(t.RejectShare()) + " of the lines"
		if t.Malformed > 0 && t.Rejected > 0 {
			note += ", " + figures.Grouped(t.Malformed) + " malformed"
		}
		l.add("Rejected", figures.Grouped(bad), note, "rejected")
	}
	if t.Unusual > 0 {
		l.add("Unusual addresses", figures.Grouped(t.Unusual), "forbidden by RFC 5321, hashed as typed", "")
	}
	l.addCalls(r)
	if r.Seconds > 0 {
		note := count(int64(r.Parts.Made), "part") + " made"
		if r.Seconds >= 1 && r.Fresh.Rows > 0 {
			note = rate(float64(r.Fresh.Rows)/r.Seconds) + " rows/s"
		}
		l.add("Time", took(r.Seconds), note, "")
	}
	if len(r.Files) > 0 {
		var bytes int64
		for _, f := range r.Files {
			bytes += f.Bytes
		}
		l.add("Size", figures.Size(bytes), count(int64(len(r.Files)), "file"), "")
	}
	return l
}

func (l *tileList) addRows(r *Report) {
	t := r.Totals
	if unfinished(r) {
		if p := r.Progress; p.Of > 0 {
			of := "of about "
			if p.Exact {
				of = "of "
			}
			l.add("Rows done", figures.Grouped(p.Rows), of+count(p.Of, "row"), "")
		}
		c := r.Asked().Calls
		l.add("Identifiers closed", figures.Grouped(c.Closed), "of "+figures.Grouped(c.Asked)+" so far", "")
		if c.Closed > 0 {
			l.add("Matched", percent(c.Matched, c.Closed), count(c.Matched, "identifier"), "matched")
		}
		l.add("Rows in parts", figures.Grouped(t.Rows), count(int64(r.Parts.Made+r.Parts.Earlier), "part")+" written", "")
	} else {
		note := from(r)
		if t.Searches > 0 {
			note = "of " + plural(t.Searches, "search", "searches")
		} else if t.SourceRows > 0 {
			note = "of " + count(t.SourceRows, "input row")
		}
		l.add("Rows", figures.Grouped(t.Rows), note, "")
		if t.Rows > 0 {
			l.add("Matched", percent(t.Matched, t.Rows), "of the rows", "matched")
		}
		if t.Complete > 0 {
			l.add("Complete", percent(t.Complete, t.Rows), "with all that is wanted", "matched")
		}
	}
}

func (l *tileList) addCalls(r *Report) {
	s, t := r.Asked(), r.Totals
	if s == nil || s.Offline {
		return
	}
	note := "no answer was stored"
	if r.Resolvers != nil {
		note = count(s.Calls.Stored, "identifier") + " without a call"
	} else if s.Calls.Stored > 0 {
		note = count(s.Calls.Stored, "stored answer") + " reused"
	}
	l.add("Calls", figures.Grouped(s.Calls.Calls), note, "")
	note = "without a budget"
	if s.Budget.MaxCredits != nil {
		note = "of the budget below"
	}
	if !unfinished(r) && t.Matched > 0 {
		paid := s.Calls.EarlierCredits + s.Calls.Credits
		if note = perMatch(paid, t.Matched); paid > s.Calls.Credits {
			note = figures.Grouped(paid) + " in all, " + note
		}
	}
	l.add("Credits", figures.Grouped(s.Calls.Credits), note, "")
}

func from(r *Report) string {
	if len(r.Inputs) == 0 {
		return ""
	}
	return "from " + count(int64(len(r.Inputs)), "file")
}

const (
	openFiles = 12  // the rest is collapsed
	maxFiles  = 500 // more are not listed
)

func inputs(r *Report) fileTable {
	var rows []fileRow
	var sum int64
	for _, in := range r.Inputs {
		f := fileRow{Name: invisible.Escape(in.URI), Bytes: "not known", Changed: moment(in.ModifiedAt)}
		if in.Bytes >= 0 {
			f.Bytes = figures.Size(in.Bytes)
			sum += in.Bytes
		}
		rows = append(rows, f)
	}
	return newFileTable(rows, sum)
}

func files(r *Report) fileTable {
	var rows []fileRow
	var sum int64
	for _, f := range r.Files {
		short := f.SHA256
		if len(short) > 12 {
			short = short[:12]
		}
		rows = append(rows, fileRow{Name: invisible.Escape(f.Name), Rows: figures.Grouped(f.Rows), Bytes: figures.Size(f.Bytes), Sum: f.SHA256, Short: short})
		sum += f.Bytes
	}
	return newFileTable(rows, sum)
}

func newFileTable(rows []fileRow, bytes int64) fileTable {
	t := fileTable{Rows: rows, Total: count(int64(len(rows)), "file"), Open: len(rows) <= openFiles}
	if bytes > 0 {
		t.Total += ", " + figures.Size(bytes)
	}
	if rest := len(rows) - maxFiles; rest > 0 {
		t.Rows, t.More = rows[:maxFiles], count(int64(rest), "more file")+", all in _report.json"
	}
	return t
}
