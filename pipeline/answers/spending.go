package answers

import (
	"cmp"
	"context"
	"iter"
	"maps"
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
func (s *Store) SumSpent(_ context.Context, run string) (p Spending, open []OpenCall, err error) {
	s.logMu.Lock() // no change is made meanwhile
	defer s.logMu.Unlock()
	open = s.mem.callsOf(func(c *OpenCall) bool { return c.Run == run && c.State != UnderWay })
	return s.mem.total(run).Spending, open, nil
}

// Spent is what was paid, as Spending.
type Spent struct {
	ByRun map[string]Spending `json:"spent,omitempty"`
	ByDay map[string]Spending `json:"spent_by_day,omitempty"` // those of DayOf, of one scope
}

// Add counts an answer.
func (s Spent) Add(i Item) {
	run, day := s.ByRun[i.Run], s.ByDay[DayOf(i.Received)]
	run.add(i.Answer)
	day.add(i.Answer)
	s.ByRun[i.Run], s.ByDay[DayOf(i.Received)] = run, day
}

// Plus is what two stores have paid together.
func (s Spent) Plus(other Spent) Spent {
	return Spent{together(s.ByRun, other.ByRun), together(s.ByDay, other.ByDay)}
}

func together(a, b map[string]Spending) map[string]Spending {
	sum := map[string]Spending{}
	maps.Copy(sum, a)
	for key, p := range b {
		sum[key] = sum[key].Plus(p)
	}
	return sum
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
func (s *Store) SpentSince(_ context.Context, day string) ([]DaySpending, error) {
	return since(s.days(), day), nil
}

// days returns what was paid on each day, in order.
func (s *Store) days() []DaySpending {
	s.mem.mu.RLock()
	defer s.mem.mu.RUnlock()
	now := s.newest()
	days := slices.Clone(now.Days)
	for _, g := range []*generation{s.mem.previous, s.mem.current} {
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
func (s *Store) OpenAnywhere(ctx context.Context) iter.Seq2[OpenCall, error] {
	return func(yield func(OpenCall, error) bool) {
		for _, calls := range []iter.Seq2[OpenCall, error]{s.Unknown(ctx), s.Parked(ctx)} {
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

// spent returns what all runs have paid, and what a scope has cost by day.
func (s *Store) spent(of Scope) Spent {
	all := Spent{map[string]Spending{}, map[string]Spending{}}
	s.mem.mu.RLock()
	for name, r := range s.mem.runs {
		all.ByRun[name] = r.Spending
	}
	s.mem.mu.RUnlock()
	for _, d := range s.newest().Days {
		if d.Scope == of {
			all.ByDay[d.Day] = d.Spending
		}
	}
	return all
}

// SetSpent sets what was paid, as counted by another store of the scope.
func (s *Store) SetSpent(_ context.Context, of Scope, spent Spent) error {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	if err := s.flushLocked(); err != nil { // what the log counts comes first
		return err
	}
	err := s.publish(nil, func(m *manifest) error {
		for name, p := range spent.ByRun {
			m.setRun(runTotal{Name: name, Intents: s.mem.runs[name].Intents, Spending: p})
		}
		for day, p := range spent.ByDay {
			m.Days = slices.DeleteFunc(m.Days, func(d DaySpending) bool { return d.Day == day && d.Scope == of })
			m.addDay(dayOf{day, of}, p)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.mem.mu.Lock()
	defer s.mem.mu.Unlock()
	for _, r := range s.newest().Runs {
		s.mem.runs[r.Name] = r
	}
	return nil
}

// Remains counts what a log has lost of which not all records can be read, by the totals in those that can.
// It is for a log whose records are elsewhere than in a folder.
type Remains struct {
	found *salvage
	read  *generation
	any   bool // a record was taken
}

// NewRemains begins to count behind what was spent by runs before, and the calls that were open.
func NewRemains(spent map[string]Spending, open []OpenCall) *Remains {
	r := &Remains{found: newSalvage(), read: newGeneration(0)}
	r.found.logs = []*generation{r.read}
	for name, p := range spent {
		r.found.have[name] = runTotal{Name: name, Spending: p}
	}
	for _, c := range open {
		r.found.open[c.Hash] = true
	}
	return r
}

// Miss says that a record is missing before the next one. bytes is its size; negative if that is not known.
func (r *Remains) Miss(bytes int64) {
	most := int64(maxGroup)
	if bytes >= 0 {
		most = min(most, bytes/leastIntent)
	}
	r.found.miss(most)
}

// Take counts a record. How many calls runs had begun before the first record is not known.
func (r *Remains) Take(record []byte) error {
	if r.found.gap && !r.any {
		r.found.lost.AtMost = byGroups
	}
	r.any = true
	return r.found.take(record, r.read)
}

// End returns what is lost, and by the names of runs the calls that have to be kept as spent.
func (r *Remains) End() (lost Lost, unnamed map[string]int64) {
	if r.found.gap {
		r.found.loseMost(r.found.most, byGroups)
	}
	return r.found.lost, r.found.unnamed
}

// Found returns how many answers the records had, and how many calls are open behind them.
func (r *Remains) Found() (answers, calls int64) {
	return int64(len(r.read.answers)), int64(len(r.found.open))
}
