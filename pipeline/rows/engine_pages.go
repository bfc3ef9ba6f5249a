package rows

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/search"
)

// EnginePages are the pages that the embedded engine makes.
type EnginePages struct {
	Searcher  resolution.Searcher
	Operation resolution.Operation
	Slots     *semaphore.Weighted // bounds the questions to Searcher
}

// Page makes a page, or a count.
func (e *EnginePages) Page(ctx context.Context, q search.Query) (p purchase.Page, err error) {
	if err := e.Slots.Acquire(ctx, 1); err != nil {
		return p, err
	}
	defer e.Slots.Release(1)
	which, page := purchase.SearchOf(q)
	which.Edition = e.Searcher.Edition()
	p.Answer.Outcome = outcome.Matched
	if e.Operation.Gives() == resolution.GivesCount {
		count, err := e.Searcher.Count(ctx, which, page.HEMs)
		p.Count = &count
		return p, err
	}
	found, err := e.Searcher.Search(ctx, which, page)
	if err != nil {
		return p, err
	}
	p.Total = found.Total
	p.HasMore = found.Total > int64(page.Number)*int64(page.Limit) && found.Leads.Len() > 0
	p.Leads = func() (*resolution.Answers, error) { return found.Leads, nil }
	return p, nil
}
