package report

import (
	"fmt"
	"strings"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/sinks"
)

// resolverTable has a line for each of several resolvers; nil for one.
type resolverTable struct {
	Rows []resolverRow
	// Added has the rows that each has added to, with bars.
	Added *barTable
}

type resolverRow struct {
	Name    string
	Figures []string // in the order of the heads
	Waited  string
}

// Heads are those of the figures.
func (resolverTable) Heads() []string {
	return []string{"Asked", "Matched", "Added", "Credits", "Each added row", "Calls of this run", "Unknown calls"}
}

func newResolverTable(r *Report) *resolverTable {
	if len(r.Resolvers) == 0 {
		return nil
	}
	t := &resolverTable{}
	var added []tally
	for _, of := range r.Resolvers {
		name := invisible.Escape(of.Name)
		row := resolverRow{Name: name, Figures: []string{figures.Grouped(of.Asked), figures.Grouped(of.Matched), figures.Grouped(of.Added), figures.Grouped(of.Credits), "", "", ""}}
		if of.CreditsPerAdded != nil {
			row.Figures[4] = fmt.Sprintf("%.2f", *of.CreditsPerAdded)
		}
		if s := of.Service; s != nil {
			row.Figures[5], row.Figures[6] = figures.Grouped(s.Calls.Calls), figures.Grouped(s.Unknown.Count)
			row.Waited = waitedFor(s.Waits)
		}
		t.Rows = append(t.Rows, row)
		if of.Added > 0 {
			added = append(added, tally{"matched", name, of.Added})
		}
	}
	if len(added) > 0 {
		table := countTable("Added to", "row", r.Totals.Rows, added)
		table.Heads[0] = "Resolver"
		t.Added = &table
	}
	return t
}

// waitedFor says for what calls waited a second or longer.
func waitedFor(waits map[string]float64) string {
	var texts []string
	for _, reason := range figures.LargestFirst(waits) {
		if waits[reason] >= 1 && reason != "concurrency" {
			_, name := waitName(reason)
			texts = append(texts, took(waits[reason])+" for "+name)
		}
	}
	return strings.Join(texts, ", ")
}

// resolverNames lists the resolvers in their order; "" for one.
func resolverNames(r *Report) string {
	var names []string
	for _, of := range r.Resolvers {
		names = append(names, invisible.Escape(of.Name))
	}
	return strings.Join(names, ", ")
}

// resolverNotes names the resolvers that rows went on without.
func resolverNotes(r *Report) (list []note) {
	for _, of := range r.Resolvers {
		if of.Passed > 0 {
			list = append(list, note{count(of.Passed, "row") + " went on without " + invisible.Escape(of.Name) + ". Run the same command to ask again.", ""})
		}
	}
	return list
}

// passed reports whether rows went on without a resolver.
func passed(t sinks.Totals) bool {
	for _, of := range t.Resolvers {
		if of.Passed > 0 {
			return true
		}
	}
	return false
}
