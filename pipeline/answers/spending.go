package answers

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
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
func (s *Store) SumSpent(ctx context.Context, run string) (p Spending, open []OpenCall, err error) {
	s.logMu.Lock() // no change is made meanwhile
	defer s.logMu.Unlock()
	if err := s.flushLocked(); err != nil {
		return Spending{}, nil, err
	}
	err = s.reads.QueryRowContext(ctx, "SELECT answers, unpriced, credits FROM runs WHERE name = ?", run).Scan(&p.Answers, &p.Unpriced, &p.Credits)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil // the run has asked nothing yet
	}
	open = s.mem.callsOf(func(c *OpenCall) bool { return c.Run == run && c.State != UnderWay })
	return p, open, fault(err)
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
func (s *Store) SpentSince(ctx context.Context, day string) ([]DaySpending, error) {
	c, err := s.Contents()
	if err != nil {
		return nil, err
	}
	return c.SpentSince(ctx, day)
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
func (c *Contents) SpentSince(ctx context.Context, day string) ([]DaySpending, error) {
	spent, err := collect(ctx, c.from, func(row interface{ Scan(...any) error }) (d DaySpending, err error) {
		err = row.Scan(&d.Day, &d.Service, &d.Operation, &d.Answers, &d.Unpriced, &d.Credits)
		return d, err
	}, "SELECT d.day, s.service, s.operation, d.answers, d.unpriced, d.credits FROM days d JOIN scopes s ON s.id = d.scope WHERE d.day >= ?", day)
	if err != nil {
		return nil, err
	}
	for of, p := range c.later.days {
		scope := c.scopes[of.scope]
		i := slices.IndexFunc(spent, func(d DaySpending) bool { return d.Day == of.day && d.Scope == scope })
		switch {
		case of.day < day:
		case i < 0:
			spent = append(spent, DaySpending{of.day, scope, *p})
		default:
			spent[i].Spending = spent[i].Plus(*p)
		}
	}
	slices.SortFunc(spent, DaySpending.Compare)
	return spent, nil
}

// spent returns what all runs have paid, and what a scope has cost by day.
func (s *Store) spent(ctx context.Context, of Scope) (all Spent, err error) {
	read := func(query string, args ...any) (map[string]Spending, error) {
		sums := map[string]Spending{}
		_, err := collect(ctx, s.reads, func(row interface{ Scan(...any) error }) (key string, err error) {
			var p Spending
			err = row.Scan(&key, &p.Answers, &p.Unpriced, &p.Credits)
			sums[key] = p
			return key, err
		}, query, args...)
		return sums, err
	}
	if all.ByRun, err = read("SELECT name, answers, unpriced, credits FROM runs"); err != nil {
		return all, err
	}
	all.ByDay, err = read(`SELECT d.day, d.answers, d.unpriced, d.credits FROM days d JOIN scopes s ON s.id = d.scope
		WHERE s.service = ? AND s.operation = ?`, of.Service, string(of.Operation))
	return all, err
}

// SetSpent sets what was paid, as counted by another store of the scope.
func (s *Store) SetSpent(ctx context.Context, of Scope, spent Spent) error {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	if err := s.flushLocked(); err != nil { // what the log counts comes first
		return err
	}
	return s.writer.Write(ctx, func(g *sqliteTx) error {
		scope, err := g.scopeID(of)
		if err != nil {
			return err
		}
		for name, p := range spent.ByRun {
			err := g.Exec(`INSERT INTO runs(name, answers, unpriced, credits) VALUES (?, ?, ?, ?) ON CONFLICT(name) DO UPDATE
				SET answers = excluded.answers, unpriced = excluded.unpriced, credits = excluded.credits`, name, p.Answers, p.Unpriced, p.Credits)
			if err != nil {
				return err
			}
		}
		for day, p := range spent.ByDay {
			err := g.Exec("INSERT OR REPLACE INTO days(day, scope, answers, unpriced, credits) VALUES (?, ?, ?, ?, ?)", day, scope, p.Answers, p.Unpriced, p.Credits)
			if err != nil {
				return err
			}
		}
		return s.names.reload(g)
	})
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
	r.found.gap, r.found.most = true, r.found.most+most
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
	return int64(len(r.read.latest)), int64(len(r.found.open))
}
