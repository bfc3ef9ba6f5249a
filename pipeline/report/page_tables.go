package report

import (
	"strings"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/invisible"
)

// barTable is a table with a bar in each row.
type barTable struct {
	Title string
	Note  string
	Heads [3]string // name, figure, share; share may be empty
	Rows  []barRow
}

type barRow struct {
	Name, Title, Kind string
	Figure, Share     string
	Width             float64 // percent
}

// maxReasons is how many rows a table shows. The last row sums up the rest.
const maxReasons = 12

// reasonTables counts the rows by outcome and reason.
func reasonTables(r *Report) (tables []barTable) {
	t := r.Totals
	reasons := func(list []tally, kind, outcome string) []tally {
		for _, name := range figures.LargestFirst(t.Reasons[outcome]) {
			list = append(list, tally{kind, name, t.Reasons[outcome][name]})
		}
		return list
	}
	for _, o := range []struct{ title, kind, outcome string }{
		{"No match", "no-match", "no_match"}, {"Failed", "failed", "failed"}, {"Skipped", "skipped", "skipped"}, {"Suppressed", "suppressed", "suppressed"},
	} {
		if items := reasons(nil, o.kind, o.outcome); len(items) > 0 {
			tables = append(tables, countTable(o.title, "row", t.Rows, items))
		}
	}
	rejected := reasons(reasons(nil, "rejected", "rejected"), "malformed", "malformed")
	if len(rejected) > 0 {
		tables = append(tables, countTable("Rejected", "line", lines(t), rejected))
	}
	return tables
}

// countTable shows counts, with bars as long as their shares of all.
func countTable(title, of string, all int64, items []tally) barTable {
	table := barTable{Title: title, Note: "of " + count(all, of), Heads: [3]string{"Reason", "Rows", "Share"}}
	if rest := len(items) - maxReasons; rest > 1 {
		other := tally{name: count(int64(rest), "other reason"), kind: items[maxReasons].kind}
		for _, i := range items[maxReasons:] {
			other.count += i.count
		}
		items = append(items[:maxReasons:maxReasons], other)
	}
	for _, i := range items {
		table.Rows = append(table.Rows, barRow{Name: i.name, Kind: i.kind, Figure: figures.Grouped(i.count), Share: percent(i.count, all), Width: width(float64(i.count), float64(all))})
	}
	return table
}

// callClasses explains the classes of calls.
var callClasses = map[string]string{
	"answered":    "data, no match, or a refusal of this one record",
	"replayed":    "a repeated answer, free of charge",
	"pending":     "the answer comes later",
	"invalid":     "the service refused the identifier as invalid",
	"denied":      "the service does not accept the credentials",
	"no_credits":  "the service's account is empty",
	"limited":     "the service asked for fewer calls",
	"unavailable": "the service gave no answer",
	"protocol":    "the answer could not be understood",
}

// callTables shows how the calls of a run went.
func callTables(s *Service) (tables []barTable) {
	if items := classItems(s.Calls.ByClass); len(items) > 0 {
		table := countTable("How calls ended", "call", s.Calls.Calls, items)
		table.Heads[0], table.Heads[1] = "Class", "Calls"
		tables = append(tables, explain(table, s.Calls.ByClass))
	}
	if l := s.Latency; l.P99 > 0 {
		table := barTable{Title: "From request to answer", Heads: [3]string{"Of the calls", "Took at most", ""}}
		for _, p := range []struct {
			name    string
			seconds float64
		}{{"half", l.P50}, {"95%", l.P95}, {"99%", l.P99}} {
			table.Rows = append(table.Rows, barRow{Name: p.name, Kind: "call", Figure: took(p.seconds), Width: width(p.seconds, l.P99)})
		}
		tables = append(tables, table)
	}
	if len(s.Waits) > 0 {
		table := barTable{Title: "Waited before a call", Heads: [3]string{"For", "Time", ""}}
		names := figures.LargestFirst(s.Waits)
		for _, reason := range names {
			kind, name := waitName(reason)
			table.Rows = append(table.Rows, barRow{Name: name, Kind: kind, Figure: took(s.Waits[reason]), Width: width(s.Waits[reason], s.Waits[names[0]])})
		}
		tables = append(tables, table)
	}
	if items := classItems(s.Calls.Retries); len(items) > 0 {
		var all int64
		for _, n := range s.Calls.Retries {
			all += n
		}
		table := countTable("Sent again", "identifier", all, items)
		table.Heads[0], table.Heads[1] = "After", "Identifiers"
		tables = append(tables, explain(table, s.Calls.Retries))
	}
	return tables
}

func classItems(counts map[string]int64) (items []tally) {
	for _, name := range figures.LargestFirst(counts) {
		kind := "bad-call"
		switch name {
		case "answered", "replayed", "pending":
			kind = "call"
		}
		items = append(items, tally{kind, name, counts[name]})
	}
	return items
}

// explain adds titles to the rows of a table of classes.
func explain(table barTable, counts map[string]int64) barTable {
	for i, name := range figures.LargestFirst(counts) {
		if i < len(table.Rows) {
			table.Rows[i].Title = callClasses[name]
		}
	}
	return table
}

// machineTable shows what each worker has done; nil without workers.
func machineTable(r *Report) *barTable {
	if len(r.Machines) == 0 {
		return nil
	}
	table := &barTable{Title: "Workers", Heads: [3]string{"Worker", "Busy", "Steps"}}
	longest := 0.0
	for _, m := range r.Machines {
		longest = max(longest, m.BusySeconds)
	}
	for i, m := range r.Machines {
		if rest := r.Machines[i:]; i == maxMachines && len(rest) > 1 {
			table.Note = "and " + count(int64(len(rest)), "more worker")
			break
		}
		var steps int64
		for _, n := range m.Steps {
			steps += n
		}
		table.Rows = append(table.Rows, barRow{
			Name: "worker " + figures.Grouped(int64(m.Number)), Title: stepsOf(m), Kind: "call", Figure: took(m.BusySeconds), Share: figures.Grouped(steps),
			Width: width(m.BusySeconds, longest),
		})
	}
	return table
}

// maxMachines is how many workers the page lists.
const maxMachines = 50

// stepsOf lists the steps that a worker has done.
func stepsOf(m Machine) string {
	var list []string
	for _, step := range figures.LargestFirst(m.Steps) {
		list = append(list, step+" "+figures.Grouped(m.Steps[step]))
	}
	return strings.Join(list, ", ")
}

// meter shows how much of a budget was used.
type meter struct {
	Name   string
	Figure string
	Note   string
	Text   string
	Parts  []meterPart
	Full   bool
}

type meterPart struct {
	Kind, Name, Figure string
	Width              float64
}

// meters shows credits, calls and time against their limits, and those of each of several
// resolvers that has a limit.
func meters(r *Report) (list []meter) {
	s := r.Asked()
	if s.Offline {
		return nil
	}
	ours := s.Calls.Credits
	open := max(s.Budget.Credits-ours-s.Calls.EarlierCredits, 0)
	if s.Budget.MaxCredits != nil || s.Calls.EarlierCredits > 0 || open > 0 { // else a tile has it
		list = append(list, creditsMeter("Credits", s))
	}
	if a := s.Budget.Allowance; a != nil {
		list = append(list, newMeter("Credits of all jobs in "+count(int64(a.Days), "day"), a.Credits, &a.MaxCredits,
			tally{"earlier", "by all jobs before", max(a.Credits-ours-open, 0)}, tally{"ours", "by this run", ours}, tally{"maybe", "may have been billed", open}))
	}
	if s.Budget.MaxCalls != nil {
		list = append(list, callsMeter("Identifiers sent", s))
	}
	if most := s.Budget.MaxDurationSeconds; most != nil && *most > 0 {
		m := meter{Name: "Time", Figure: took(r.Seconds) + " of " + took(*most), Full: r.Seconds >= *most}
		m.Parts = []meterPart{{"ours", "this run", took(r.Seconds), width(r.Seconds, *most)}}
		m.Text = m.Name + ": " + m.Figure
		list = append(list, m)
	}
	for _, of := range r.Resolvers {
		if of.Service == nil {
			continue
		}
		if of.Service.Budget.MaxCredits != nil {
			list = append(list, creditsMeter("Credits of "+invisible.Escape(of.Name), of.Service))
		}
		if of.Service.Budget.MaxCalls != nil {
			list = append(list, callsMeter("Identifiers sent to "+invisible.Escape(of.Name), of.Service))
		}
	}
	return list
}

func creditsMeter(name string, s *Service) meter {
	ours := s.Calls.Credits
	open := max(s.Budget.Credits-ours-s.Calls.EarlierCredits, 0)
	return newMeter(name, s.Budget.Credits, s.Budget.MaxCredits,
		tally{"earlier", "paid by earlier runs", s.Calls.EarlierCredits}, tally{"ours", "paid by this run", ours}, tally{"maybe", "may have been billed", open})
}

func callsMeter(name string, s *Service) meter {
	return newMeter(name, s.Budget.Calls, s.Budget.MaxCalls,
		tally{"earlier", "by earlier runs", s.Calls.EarlierCalls}, tally{"ours", "by this run", max(s.Budget.Calls-s.Calls.EarlierCalls, 0)})
}

func newMeter(name string, used int64, most *int64, items ...tally) meter {
	m := meter{Name: name, Figure: figures.Grouped(used), Note: "without a budget"}
	all := used
	if most != nil {
		m.Figure, m.Note = figures.Grouped(used)+" of "+figures.Grouped(*most), figures.Grouped(max(*most-used, 0))+" left"
		m.Full = used >= *most
		all = max(used, *most)
	}
	m.Text = name + ": " + m.Figure + ", " + m.Note
	for _, i := range items {
		if i.count > 0 {
			m.Parts = append(m.Parts, meterPart{i.kind, i.name, figures.Grouped(i.count), width(float64(i.count), float64(all))})
			m.Text += ", " + i.name + " " + figures.Grouped(i.count)
		}
	}
	return m
}

// notes lists what the user has to decide or wait for.
func notes(r *Report) (list []note) {
	s := r.Asked()
	if n := s.Unknown.Count; n > 0 {
		list = append(list, note{count(n, "call") + " of this operation, other lists included, may have been billed and got no answer. They are not sent again unless you ask for it. To list them:", "leadetl answers list --unknown"})
	}
	switch {
	case s.Parked == 1:
		list = append(list, note{"1 answer is still to come. Run the same command to wait for it.", ""})
	case s.Parked > 1:
		list = append(list, note{figures.Grouped(s.Parked) + " answers are still to come. Run the same command to wait for them.", ""})
	}
	if n := s.Calls.Quarantined; n > 0 {
		list = append(list, note{count(n, "member") + " of answers left out because of an invalid value.", ""})
	}
	if n := s.Calls.OverPrice; n > 0 {
		list = append(list, note{count(n, "answer") + " cost more than the price that is held before a call.", ""})
	}
	if n := s.Calls.OtherAddress; n > 0 {
		list = append(list, note{count(n, "answer") + " under another address than was asked about, such as the present one of a profile.", ""})
	}
	return list
}
