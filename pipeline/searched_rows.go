package pipeline

import (
	"context"
	"errors"

	"github.com/sourcegraph/conc"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/search"
)

// searchedRows runs the searches of a part. Several searches run at a time,
// each one page after another. Results are written in the order of the searches
// and their pages. A search that is ahead of its turn waits after a few pages,
// so that memory is bounded whatever searches find.
type searchedRows struct {
	part   *partMaker
	finder searchFinder
	reader keys.SearchReader
}

// searchFinder finds the pages of one search and passes them to emit in order.
// emit returns an error when no more pages are wanted.
type searchFinder interface {
	find(ctx context.Context, q search.Query, emit func(foundPage) error) error
	// ahead returns how many searches of a part run at a time, and how many
	// pages of each may wait for their turn.
	ahead() (searches, pages int)
}

// foundPage is one page of a search, or its outcome.
type foundPage struct {
	number int
	answer purchase.Answer
	leads  []resolution.FoundLead
	count  *resolution.SearchCount
	// load loads the leads if they are stored instead of held in memory.
	load func() ([]resolution.FoundLead, error)
	// beyond is the total number of leads if it exceeds what pages can be
	// requested for; otherwise 0.
	beyond int64
	// ends says why no further page is asked for although the service has more; "" if
	// it has not.
	ends string
}

// searchTurn is the next thing to write: the start of a batch, or the result of
// one of its searches.
type searchTurn struct {
	in     *sources.Batch
	row    int // -1 at the start of the batch
	query  search.Query
	reason string // why the search is not made
	pages  chan foundPage
	last   bool // nothing else of the batch follows
}

func newSearchedRows(m *partMaker) *searchedRows {
	s := &searchedRows{part: m, finder: &engineSearches{m.decision.run, m.work.asking}, reader: m.decision.newSearchReader()}
	if m.work.buyer != nil {
		s.finder = &boughtSearches{m.work.buyer, m.decision.run.Job.Operation}
	}
	return s
}

// fill starts the searches and writes what they find. One goroutine writes, one
// watches for the end of the run, and each running search has one.
func (s *searchedRows) fill(ctx context.Context, q *partQueue, _ func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	searches, _ := s.finder.ahead()
	turns := make(chan *searchTurn, searches)
	written := make(chan struct{})
	var working conc.WaitGroup
	working.Go(func() {
		defer close(written)
		s.writeTurns(ctx, cancel, q, turns)
	})
	working.Go(func() { s.watchEnd(ctx, cancel, q) })
	s.startSearches(ctx, cancel, q, turns, &working)
	<-written
	err := context.Cause(ctx)
	cancel(nil)
	if err != nil {
		s.part.work.stopBuying(err) // no row waits for the service any more
	}
	working.Wait()
	if q.dropped.Load() {
		return nil
	}
	return err
}

// startSearches starts the searches of all batches, then closes turns.
func (s *searchedRows) startSearches(ctx context.Context, cancel context.CancelCauseFunc, q *partQueue, turns chan<- *searchTurn, working *conc.WaitGroup) {
	defer close(turns)
	_, pages := s.finder.ahead()
	for in := range q.batches {
		if ctx.Err() != nil {
			q.done(in)
			continue
		}
		turns <- &searchTurn{in: in, row: -1, last: in.Len() == 0}
		for row := range in.Len() {
			t := &searchTurn{in: in, row: row, last: row == in.Len()-1, pages: make(chan foundPage, pages)}
			if t.query, t.reason = s.reader.Read(in, row); t.reason == "" && ctx.Err() == nil {
				working.Go(func() { s.search(ctx, cancel, t) })
			} else {
				close(t.pages)
			}
			turns <- t
		}
	}
}

// search finds the pages of one search.
func (s *searchedRows) search(ctx context.Context, cancel context.CancelCauseFunc, t *searchTurn) {
	defer close(t.pages)
	err := s.finder.find(ctx, t.query, func(p foundPage) error {
		select {
		case t.pages <- p:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err == nil {
		return
	}
	cancel(err)
	if !errors.Is(err, context.Canceled) {
		s.part.work.stopBuying(err) // otherwise the writer waits for the service
	}
}

// watchEnd cancels the searches when the rest of the part will not come, and
// when the run has to stop: one search may take as long as a whole part of
// other rows. A buyer ends its searches itself, with its own reason.
func (s *searchedRows) watchEnd(ctx context.Context, cancel context.CancelCauseFunc, q *partQueue) {
	ended := s.part.work.ended
	if s.part.work.buyer != nil {
		ended = nil
	}
	select {
	case <-q.gone:
		cancel(nil)
	case <-ended:
		cancel(nil)
	case <-ctx.Done():
	}
}

// writeTurns writes the turns in their order.
func (s *searchedRows) writeTurns(ctx context.Context, cancel context.CancelCauseFunc, q *partQueue, turns <-chan *searchTurn) {
	m := s.part
	found := newFoundRows(m.write, m.decision.columns.Layout, m.decision.columns.Kept, m.decision.run.Job.Operation, m.work.buyer != nil)
	for t := range turns {
		if ctx.Err() == nil {
			if err := s.writeTurn(ctx, t, found); err != nil {
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
}

func (s *searchedRows) writeTurn(ctx context.Context, t *searchTurn, found *foundRows) error {
	if t.row < 0 {
		return s.part.take(t.in)
	}
	defer s.part.add(sinks.Totals{Searches: 1})
	if t.reason != "" {
		s.part.noteReject(t.in.Source, t.in.Rows[t.row], t.reason)
		return found.add(t.in, t.row, foundRow{answer: purchase.Answer{Outcome: outcome.Rejected, Reason: t.reason}})
	}
	w := searchWriter{turn: t, found: found, key: t.query.Key(), seen: map[string]struct{}{}}
	for p := range t.pages {
		if p.beyond > 0 {
			s.part.decision.run.Log.Warn("a search has more leads than its pages can hold; narrow it by days or places",
				"source", t.in.Source, "row", t.in.Rows[t.row], "leads", p.beyond, "most", search.DefaultLimits().Depth)
		}
		if p.ends != "" {
			s.part.decision.run.Log.Warn("a search ended before its last page: "+p.ends, "source", t.in.Source, "row", t.in.Rows[t.row], "page", p.number)
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

// engineSearches calls the run's Searcher.
type engineSearches struct {
	run    *Run
	asking *semaphore.Weighted
}

// ahead is small: a page may hold megabytes, several cores make one page, and
// other parts run too.
func (e *engineSearches) ahead() (searches, pages int) { return 2, 0 }

func (e *engineSearches) find(ctx context.Context, q search.Query, emit func(foundPage) error) error {
	which, page := purchase.SearchOf(q)
	which.Edition = e.run.Searcher.Edition()
	if e.run.Job.Operation == resolution.KeywordToLeadCount {
		count, err := e.counted(ctx, which, page.HEMs)
		if err != nil {
			return err
		}
		return emit(foundPage{number: 1, answer: purchase.Answer{Outcome: outcome.Matched}, count: &count})
	}
	first, last := 1, q.Pages(search.DefaultLimits())
	if q.Page > 0 {
		first, last = q.Page, q.Page
	}
	for page.Number = first; ; page.Number++ {
		result, err := e.found(ctx, which, page)
		if err != nil {
			return err
		}
		p := foundPage{number: page.Number, answer: purchase.Answer{Outcome: outcome.Matched}, leads: result.Leads}
		more := result.Total > int64(page.Number)*int64(page.Limit) && len(result.Leads) > 0
		if more && page.Number == last && q.Page == 0 {
			p.beyond = result.Total
		}
		if err := emit(p); err != nil || !more || page.Number == last {
			return err
		}
	}
}

func (e *engineSearches) found(ctx context.Context, s resolution.KeywordSearch, p resolution.SearchPage) (resolution.SearchResult, error) {
	if err := e.asking.Acquire(ctx, 1); err != nil {
		return resolution.SearchResult{}, err
	}
	defer e.asking.Release(1)
	return e.run.Searcher.Search(ctx, s, p)
}

func (e *engineSearches) counted(ctx context.Context, s resolution.KeywordSearch, hems int) (resolution.SearchCount, error) {
	if err := e.asking.Acquire(ctx, 1); err != nil {
		return resolution.SearchCount{}, err
	}
	defer e.asking.Release(1)
	return e.run.Searcher.Count(ctx, s, hems)
}

// boughtSearches gets the pages of searches from a buyer.
type boughtSearches struct {
	buyer     *purchase.Buyer
	operation resolution.Operation
}

const (
	// searchesAhead is how many searches of a part run at a time. Each of them
	// mostly waits for the service.
	searchesAhead = 64
	// pagesAhead is how many pages of each search may wait for their turn.
	pagesAhead = 4
)

func (s *boughtSearches) ahead() (searches, pages int) { return searchesAhead, pagesAhead }

func (s *boughtSearches) find(ctx context.Context, q search.Query, emit func(foundPage) error) error {
	first, last := 1, q.Pages(search.DefaultLimits())
	if q.Page > 0 {
		first, last = q.Page, q.Page
	}
	var w walk
	for n := first; ; n++ {
		of := q
		if s.operation == resolution.KeywordToLead {
			of = q.On(n)
		}
		got, err := s.buyer.Page(ctx, of)
		if err != nil {
			return err
		}
		p := foundPage{number: n, answer: got.Answer, count: got.Count, load: got.Leads}
		more := got.HasMore
		if more {
			p.ends = w.ends(got)
		}
		switch {
		case p.ends == onlyRepeats:
			more, p.load = false, func() ([]resolution.FoundLead, error) { return nil, nil }
		case p.ends != "":
			more = false
		case more && n == last && q.Page == 0:
			p.beyond = max(got.Total, int64(len(w.seen)))
		}
		if err := emit(p); err != nil || !more || n == last {
			return err
		}
	}
}

// walk is the way through the pages of a search. A service that ignores the number of
// the page, or counts wrongly, would be paid for pages without end.
type walk struct {
	seen  map[uint64]bool // leads, by their marks
	total int64           // as last announced
}

const onlyRepeats = "the page has only leads of earlier ones"

// ends says why a page that has others after it is the last one to ask for; "" if it is
// not.
func (w *walk) ends(page purchase.Page) string {
	before := len(w.seen)
	if w.seen == nil {
		w.seen = map[uint64]bool{}
	}
	for _, mark := range page.Marks {
		w.seen[mark] = true
	}
	if page.Total > 0 {
		w.total = page.Total
	}
	switch {
	case len(w.seen) == before:
		return onlyRepeats
	case w.total > 0 && int64(len(w.seen)) >= w.total:
		return "all leads that the service has announced are there"
	}
	return ""
}
