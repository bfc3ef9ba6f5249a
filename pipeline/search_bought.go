package pipeline

import (
	"context"

	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/search"
)

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
