package pipeline

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/search"
)

// engineSearches asks the run's Searcher.
type engineSearches struct {
	run    *Run
	asking *semaphore.Weighted
}

// ahead is little: each page may hold megabytes, a page is made on several
// cores, and there are other parts.
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
	// searchesAhead is how many searches of a part are in work at a time: each
	// waits for the service most of the time.
	searchesAhead = 64
	// pagesAhead is how many pages of each wait for their turn.
	pagesAhead = 4
)

func (s *boughtSearches) ahead() (searches, pages int) { return searchesAhead, pagesAhead }

func (s *boughtSearches) find(ctx context.Context, q search.Query, emit func(foundPage) error) error {
	first, last := 1, q.Pages(search.DefaultLimits())
	if q.Page > 0 {
		first, last = q.Page, q.Page
	}
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
		if more && n == last && q.Page == 0 {
			p.beyond = got.Total
		}
		if err := emit(p); err != nil || !more || n == last {
			return err
		}
	}
}
