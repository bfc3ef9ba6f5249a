package answers

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"
)

// Spending is what a run has paid. What it may have paid besides is in its open calls.
type Spending struct {
	// Answers counts the answers that the run paid for, including forgotten
	// answers. Unpriced counts those of them for which the service sent no
	// price. The others cost Credits in total.
	Answers  int64 `json:"answers"`
	Unpriced int64 `json:"unpriced"`
	Credits  int64 `json:"credits"`
}

// add counts an answer.
func (p *Spending) add(a Answer) {
	p.Answers++
	if a.Credits == nil {
		p.Unpriced++
	} else {
		p.Credits += *a.Credits
	}
}

// Plus is what two runs have paid together.
func (p Spending) Plus(other Spending) Spending {
	return Spending{Answers: p.Answers + other.Answers, Unpriced: p.Unpriced + other.Unpriced, Credits: p.Credits + other.Credits}
}

// SumSpent returns a run's spending, and its calls that may have been billed, or will be, and
// have no answer. Both are of one moment: an answer that comes meanwhile is in one of them.
func (s *recent) SumSpent(_ context.Context, run string) (p Spending, open []OpenCall, err error) {
	s.logMu.Lock() // no change is made meanwhile
	defer s.logMu.Unlock()
	open = s.memtable.callsOf(func(c *OpenCall) bool { return c.Run == run && c.State != UnderWay })
	return s.memtable.total(run).Spending, open, nil
}

// DayOf is the day of a moment, in UTC: 2026-11-26.
func DayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// DaySpending is what the questions of a scope have cost on a day.
type DaySpending struct {
	Day string // of DayOf
	Scope
	Spending
}

// Compare orders by day, service and operation.
func (d DaySpending) Compare(other DaySpending) int {
	return cmp.Or(cmp.Compare(d.Day, other.Day), d.Scope.Compare(other.Scope))
}

// SpentSince returns what was paid on a day and later, in order.
// Answers that are forgotten count too.
func (s *recent) SpentSince(_ context.Context, day string) ([]DaySpending, error) {
	return since(s.days(), day), nil
}

// days returns what was paid on each day, in order.
func (s *recent) days() []DaySpending {
	s.memtable.mu.RLock()
	defer s.memtable.mu.RUnlock()
	now := s.newest()
	days := slices.Clone(now.Days)
	for _, g := range []*generation{s.memtable.previous, s.memtable.current} {
		if g != nil && g.number >= now.Log.Number { // the manifest has the others
			days = addDays(days, g)
		}
	}
	return days
}

func addDays(days []DaySpending, g *generation) []DaySpending {
	for of, p := range g.days {
		days = addDay(days, DaySpending{of.Day, of.Scope, p})
	}
	return days
}

func since(days []DaySpending, day string) []DaySpending {
	i, _ := slices.BinarySearchFunc(days, day, func(d DaySpending, day string) int { return cmp.Compare(d.Day, day) })
	return days[i:]
}

// OpenAnywhere lists the calls that may have been billed, or will be, and have no answer.
func (m *memtable) OpenAnywhere(ctx context.Context) iter.Seq2[OpenCall, error] {
	return func(yield func(OpenCall, error) bool) {
		for _, calls := range []iter.Seq2[OpenCall, error]{m.Unknown(ctx), m.Parked(ctx)} {
			for c, err := range calls {
				if !yield(c, err) {
					return
				}
			}
		}
	}
}

// SpentSince is that of Store.
func (c *Contents) SpentSince(_ context.Context, day string) ([]DaySpending, error) {
	return since(addDays(slices.Clone(c.days), c.later), day), nil
}
