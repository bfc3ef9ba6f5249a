package rows

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"sync"

	"github.com/sourcegraph/conc"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/search"
)

// Searches says which searches the rows of a part are, and who makes them.
type Searches struct {
	Operation resolution.Operation
	Reader    keys.SearchReader
	Layout    *columns.Layout
	Kept      int // columns of the input that are kept
	Pages     Pages
	Stop      func(cause error) // ends the calls of a run that has failed
	Log       *slog.Logger
	Done      func() // is called for each search whose rows are all written
}

// Pages makes pages of searches, or counts. Many goroutines call it.
type Pages interface {
	Page(ctx context.Context, q search.Query) (purchase.Page, error)
}

// searched runs the searches of a part. Several searches run at a time,
// each one page after another. Results are handed over in the order of the searches
// and their pages. A search that is ahead of its turn waits after a few pages,
// so that memory is bounded whatever searches find.
type searched struct {
	Searches
	in Input

	begin   sync.Once
	working conc.WaitGroup // one goroutine starts the searches, and each of these has one
	cancel  context.CancelCauseFunc
	next    func() (*columns.Batch, error, bool)
	stop    func()
}

// foundPage is one page of a search, or its outcome.
type foundPage struct {
	number int
	answer purchase.Result
	count  *resolution.SearchCount
	// load loads the leads, from memory or from the store; nil for a count.
	load func() (*resolution.Answers, error)
	// beyond is the total number of leads if it exceeds what pages can be
	// requested for; otherwise 0.
	beyond int64
	// ends says why no further page is asked for although the service has more; "" if
	// it has not.
	ends string
}

// searchTurn is one search, of which the rows are handed over when it is its turn.
type searchTurn struct {
	in     *sources.Batch
	row    int
	query  search.Query
	reason string // why the search is not made
	pages  chan foundPage
}

// FromSearches gives the rows that searches find. When its ctx ends, the searches end too:
// one may take as long as a whole part of other rows.
func FromSearches(in Input, of Searches) Source {
	return &searched{Searches: of, in: in}
}

func (s *searched) Next(ctx context.Context) (*columns.Batch, error) {
	s.begin.Do(func() {
		ctx, s.cancel = context.WithCancelCause(ctx)
		searches, _ := s.ahead()
		turns := make(chan *searchTurn, searches)
		s.working.Go(func() { s.startSearches(ctx, turns) })
		s.next, s.stop = iter.Pull2(s.takeTurns(ctx, turns))
	})
	b, err, more := s.next()
	if !more {
		return nil, io.EOF
	}
	return b, err
}

func (s *searched) Close() {
	s.cancel(nil)
	s.stop()
	s.working.Wait()
}

// startSearches starts the searches of all batches, then closes turns.
func (s *searched) startSearches(ctx context.Context, turns chan<- *searchTurn) {
	defer close(turns)
	_, pages := s.ahead()
	for {
		in, err := s.in.Next(ctx)
		if err != nil {
			if err != io.EOF {
				s.cancel(err)
			}
			return
		}
		rows := in.Len() // the batch is freed with the turn of its last row
		for row := range rows {
			t := &searchTurn{in: in, row: row, pages: make(chan foundPage, pages)}
			if t.query, t.reason = s.Reader.Read(in, row); t.reason == "" && ctx.Err() == nil {
				s.working.Go(func() { s.search(ctx, t) })
			} else {
				close(t.pages)
			}
			turns <- t
		}
		if rows == 0 {
			s.in.Done(in)
		}
	}
}

// search finds the pages of one search.
func (s *searched) search(ctx context.Context, t *searchTurn) {
	defer close(t.pages)
	err := s.find(ctx, t.query, func(p foundPage) error {
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
	s.cancel(err)
	if !errors.Is(err, context.Canceled) {
		s.Stop(err) // otherwise the next turn waits for the service
	}
}

// takeTurns yields the rows of the turns in their order. It takes all turns, also when
// no further rows are wanted.
func (s *searched) takeTurns(ctx context.Context, turns <-chan *searchTurn) iter.Seq2[*columns.Batch, error] {
	return func(yield func(*columns.Batch, error) bool) {
		closed := false
		found := newFoundRows(func(b *columns.Batch) error {
			if closed = !yield(b, nil); closed {
				return context.Canceled
			}
			return nil
		}, s.Layout, s.Kept, s.Operation, !s.isLocal())
		for t := range turns {
			if ctx.Err() == nil {
				if err := s.takeTurn(ctx, t, found); err != nil {
					s.cancel(err)
				}
			}
			if t.row == t.in.Len()-1 {
				s.in.Done(t.in)
			}
		}
		if ctx.Err() == nil {
			if err := found.flush(); err != nil {
				s.cancel(err)
			}
		}
		if err := context.Cause(ctx); err != nil && !closed {
			s.Stop(err) // no row waits for the service any more
			yield(nil, err)
		}
	}
}

func (s *searched) takeTurn(ctx context.Context, t *searchTurn, found *foundRows) error {
	defer s.Done()
	if t.reason != "" {
		return found.add(t.in, t.row, foundRow{answer: purchase.Result{Outcome: outcome.Rejected, Reason: t.reason}})
	}
	w := searchWriter{turn: t, found: found, key: t.query.Key(), seen: map[string]struct{}{}}
	for p := range t.pages {
		if p.beyond > 0 {
			s.Log.Warn("a search has more leads than its pages can hold; narrow it by days or places",
				"source", t.in.Source, "row", t.in.Rows[t.row], "leads", p.beyond, "most", search.DefaultLimits().Depth)
		}
		if p.ends != "" {
			s.Log.Warn("a search ended before its last page: "+p.ends, "source", t.in.Source, "row", t.in.Rows[t.row], "page", p.number)
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

const (
	// searchesAhead is how many searches of a part run at a time. Each of them
	// mostly waits for the service.
	searchesAhead = 64
	// pagesAhead is how many pages of each search may wait for their turn.
	pagesAhead = 4
)

// isLocal reports whether the embedded engine makes the pages.
func (s *searched) isLocal() bool {
	_, is := s.Pages.(*EnginePages)
	return is
}

// ahead returns how many searches of a part run at a time, and how many pages of each may wait for
// their turn. Of the engine they are few: a page may hold megabytes, several cores make one page, and
// other parts run too.
func (s *searched) ahead() (searches, pages int) {
	if s.isLocal() {
		return 2, 0
	}
	return searchesAhead, pagesAhead
}

// find finds the pages of one search and passes them to emit in order. emit returns an error when no
// more pages are wanted.
func (s *searched) find(ctx context.Context, q search.Query, emit func(foundPage) error) error {
	first, last := 1, q.Pages(search.DefaultLimits())
	if q.Page > 0 {
		first, last = q.Page, q.Page
	}
	var w walk
	for n := first; ; n++ {
		of := q
		if s.Operation.Gives() == resolution.GivesLeads {
			of = q.On(n)
		}
		got, err := s.Pages.Page(ctx, of)
		if err != nil {
			return err
		}
		p := foundPage{number: n, answer: got.Answer, count: got.Count, load: got.Leads}
		more := got.HasMore
		if more && !s.isLocal() {
			p.ends = w.ends(got)
		}
		switch {
		case p.ends == onlyRepeats:
			more, p.load = false, func() (*resolution.Answers, error) { return nil, nil }
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
