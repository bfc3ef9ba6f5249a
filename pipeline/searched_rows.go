package pipeline

import (
	"context"
	"errors"

	"github.com/sourcegraph/conc"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/search"
)

// A part of a keyword job is a run of searches. Several are in work at a time,
// each a page after the other; what they find is written in the order of the
// searches and their pages. A search that is ahead of its turn waits after a
// few pages, so that memory is bounded whatever searches find.

// searching finds the pages of one search and hands them over in order. emit
// returns an error when no more are wanted.
type searching interface {
	find(ctx context.Context, q search.Query, emit func(foundPage) error) error
	// ahead is how many searches are in work at a time in a part, and pages how
	// many pages of each wait for their turn.
	ahead() (searches, pages int)
}

// foundPage is one page of a search, or what became of it.
type foundPage struct {
	number int
	answer purchase.Answer
	leads  []resolution.FoundLead
	count  *resolution.SearchCount
	// load gets the leads where they are not held: they are many, and stored.
	load func() ([]resolution.FoundLead, error)
	// beyond says that there are more leads, so many in all, than pages can be
	// asked for.
	beyond int64
}

// searchTurn is what is next in a part: a batch, or a search of one.
type searchTurn struct {
	in     *sources.Batch
	row    int // -1: the batch begins
	query  search.Query
	reason string // why it is not asked
	pages  chan foundPage
	last   bool // nothing else of the batch comes
}

// searched takes a part's rows all the way: its searches, and what each finds.
func (m *partMaker) searched(ctx context.Context, q *partQueue) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var how searching = &engineSearching{m.state}
	if m.buyer != nil {
		how = &boughtSearching{m.buyer, m.Job.Operation}
	}
	searches, pages := how.ahead()
	turns := make(chan *searchTurn, searches)
	var working conc.WaitGroup
	written := make(chan struct{})
	working.Go(func() {
		defer close(written)
		found := newFoundRows(m.write, m.kept, m.Job.Operation, m.buyer != nil)
		for t := range turns {
			if ctx.Err() == nil {
				if err := m.takeTurn(ctx, t, found); err != nil {
					cancel(err)
				}
			}
			if t.last {
				q.done(t.in)
			}
		}
		if ctx.Err() == nil {
			if err := found.flush(); err != nil {
				cancel(err)
			}
		}
	})
	reader := m.newSearchReader()
	ended := m.ended
	if m.buyer != nil {
		ended = nil // it says why itself
	}
	working.Go(func() {
		select {
		case <-q.gone:
			cancel(nil) // what is in work is for nothing
		case <-ended:
			cancel(nil) // a search may take as long as a part of other rows
		case <-ctx.Done():
		}
	})
	for in := range q.batches {
		if ctx.Err() != nil {
			q.done(in)
			continue
		}
		turns <- &searchTurn{in: in, row: -1, last: in.Len() == 0}
		for row := range in.Len() {
			t := &searchTurn{in: in, row: row, last: row == in.Len()-1, pages: make(chan foundPage, pages)}
			if t.query, t.reason = reader.read(in, row); t.reason == "" && ctx.Err() == nil {
				working.Go(func() {
					defer close(t.pages)
					err := how.find(ctx, t.query, func(p foundPage) error {
						select {
						case t.pages <- p:
							return nil
						case <-ctx.Done():
							return context.Cause(ctx)
						}
					})
					if err != nil {
						cancel(err)
					}
					if err != nil && m.buyer != nil && !errors.Is(err, context.Canceled) {
						m.buyer.Stop(err) // or the writer waits for what the service is making
					}
				})
			} else {
				close(t.pages)
			}
			turns <- t
		}
	}
	close(turns)
	<-written
	err := context.Cause(ctx)
	cancel(nil)
	if err != nil && m.buyer != nil {
		m.buyer.Stop(err) // nobody waits for what the service is making
	}
	working.Wait()
	if q.dropped.Load() {
		return nil
	}
	return err
}

// takeTurn writes what is next.
func (m *partMaker) takeTurn(ctx context.Context, t *searchTurn, found *foundRows) error {
	if t.row < 0 {
		return m.take(t.in)
	}
	defer m.add(sinks.Totals{Searches: 1})
	if t.reason != "" {
		return found.add(t.in, t.row, foundRow{answer: purchase.Answer{Outcome: outcome.Rejected, Reason: t.reason}})
	}
	w := searchWriter{searchTurn: t, found: found, key: t.query.Key(), seen: map[string]struct{}{}}
	for p := range t.pages {
		if p.beyond > 0 {
			m.Log.Warn("a search has more leads than its pages can hold; narrow it by days or places",
				"source", t.in.Source, "row", t.in.Rows[t.row], "leads", p.beyond, "most", search.DefaultLimits().Depth)
		}
		if err := w.page(p); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // there may be more pages
	}
	return w.end()
}
