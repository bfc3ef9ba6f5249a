package pipeline

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/rows"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/search"
)

// rowPlanner normalizes the identifiers of rows as a run does, and notes their keys.
type rowPlanner struct {
	decision *begin.Decision
	keys     *distinct.Set
	later    *distinct.Set  // pages after the first of searches that were begun
	order    *order.Planner // nil if nobody has to be asked, and if only hashes are needed
	cases    *order.Cases   // in place of routes, to compare orders; else nil
	began    time.Time
	// morePages means that for some searches the number of pages is not known.
	morePages atomic.Bool
}

// rowLooker gives rows without answers. It adds their keys with the routes of these, and pages after the first of
// searches that were begun.
type rowLooker struct {
	planner  *rowPlanner
	run      *job.Run
	maker    *keys.Maker
	reader   keys.SearchReader
	hash     func(key []byte) answers.Hash // tells keys apart
	suppress order.Suppress
	batch    columns.Batch
	asked    []distinct.Key
}

// lookers returns one for each batch that is read at a time.
func (r *rowPlanner) lookers() (all []rows.Looker) {
	d := r.decision
	for range d.Run.Workers {
		all = append(all, &rowLooker{
			planner: r, run: d.Run, maker: d.Columns.Keys(d.Run.Suppressor(&d.Columns)), reader: d.Columns.Searches(d.AsOf),
			hash: answers.Scope{Operation: d.Run.Job.Operation}.Hasher(), suppress: rows.SuppressBy(d.Run.Suppressor(&d.Columns)),
		})
	}
	return all
}

// LookUp is rows.Looker's.
func (w *rowLooker) LookUp(ctx context.Context, in *sources.Batch, each func(*columns.Batch) error) (err error) {
	b := &w.batch
	w.asked = w.asked[:0]
	if w.run.Job.Operation.IsKeyword() {
		w.maker.Begin(b, in)
		err = w.searches(ctx, b, in)
	} else {
		w.maker.Fill(b, in)
		asked, _ := keys.Asked(b)
		w.asked, err = w.routes(ctx, asked, w.asked)
	}
	if err != nil {
		return err
	}
	if err := w.planner.keys.Add(w.asked); err != nil {
		return err
	}
	return each(b)
}

// routes adds keys with their routes to to.
func (w *rowLooker) routes(ctx context.Context, asked []string, to []distinct.Key) ([]distinct.Key, error) {
	codes := make([]int32, len(asked)) // all the same for the engine
	var err error
	switch {
	case w.planner.cases != nil:
		codes, err = w.planner.cases.Walk(ctx, asked, w.suppress)
	case w.planner.order != nil:
		codes, err = w.planner.order.Walk(ctx, asked, w.suppress)
	}
	if err != nil {
		return nil, err
	}
	for i, a := range asked {
		to = append(to, distinct.Key{Hash: w.hash([]byte(resolution.Distinct(a))), Cost: codes[i]})
	}
	return to, nil
}

// searches adds the first pages of a batch's searches and, for searches that
// were begun, the later pages that still need work.
func (w *rowLooker) searches(ctx context.Context, b *columns.Batch, in *sources.Batch) (err error) {
	var asked []string
	for i := range b.Outcomes {
		q, reason := w.reader.Read(in, i)
		if reason != "" {
			b.Outcomes[i], b.Reasons[i] = outcome.Rejected, reason
			continue
		}
		if w.run.Job.Operation.Gives() == resolution.GivesLeads {
			if q.Page == 0 {
				w.planner.morePages.Store(true)
				if err := w.laterPages(ctx, q); err != nil {
					return err
				}
			}
			q = q.On(max(q.Page, 1))
		}
		asked = append(asked, q.Key())
	}
	w.asked, err = w.routes(ctx, asked, w.asked)
	return err
}

// laterPages adds the pages after a search's first that were begun and have no
// valid answer. Pages are fetched in order, so it stops at the first page with
// nothing stored.
func (w *rowLooker) laterPages(ctx context.Context, q search.Query) (err error) {
	if w.planner.order == nil {
		return nil
	}
	for n := 2; n <= q.Pages(search.DefaultLimits()); n++ {
		page := []string{q.On(n).Key()}
		routes, err := w.routes(ctx, page, nil)
		if err != nil {
			return err
		}
		switch _, known, free := w.planner.order.Known(routes[0].Cost); {
		case !known:
			return nil
		case free:
			continue
		}
		if err := w.planner.later.Add(routes); err != nil {
			return err
		}
	}
	return nil
}
