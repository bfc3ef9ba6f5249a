package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/searches"
)

var _ resolution.Searcher = (*Engine)(nil)

// noDirectory is the edition of an engine without a directory.
const noDirectory = "none"

// Edition names the searches of the directory.
func (e *Engine) Edition() string {
	if e.directory == nil {
		return noDirectory
	}
	return e.directory.Searches().Edition()
}

// Search finds a page of leads. Without searches there are no leads.
func (e *Engine) Search(ctx context.Context, s resolution.KeywordSearch, p resolution.SearchPage) (resolution.SearchResult, error) {
	result, err := e.search(ctx, s, p)
	if err != nil {
		return resolution.SearchResult{}, fmt.Errorf("embedded search: %w", err)
	}
	return result, nil
}

func (e *Engine) search(ctx context.Context, s resolution.KeywordSearch, p resolution.SearchPage) (resolution.SearchResult, error) {
	result := resolution.SearchResult{}
	if p.Number < 1 || p.Limit < 1 || p.HEMs < 0 {
		return result, fmt.Errorf("%w: a page and its limit are counted from 1", resolution.ErrInvalid)
	}
	skip := int64(math.MaxInt64) // a page after the last one
	if p.Number-1 <= math.MaxInt64/p.Limit {
		skip = int64(p.Number-1) * int64(p.Limit)
	}
	if e.directory == nil {
		return result, withoutDirectory(ctx, s)
	}
	found, total, err := e.directory.Searches().Find(ctx, s, skip, p.Limit)
	if err != nil {
		return result, unsearchable(ctx, err)
	}
	result.Total = total
	leads, err := inShares(found, func(found []searches.Found) (*resolution.Answers, error) {
		leads := resolution.NewAnswers()
		return leads, newSearchers(e).addLeads(ctx, found, p, leads)
	})
	if err != nil {
		return result, err
	}
	result.Leads = leads[0]
	for _, more := range leads[1:] {
		for i := range more.Len() {
			result.Leads.Add(more, i)
		}
	}
	return result, nil
}

// withoutDirectory is the error of a search without data: nil, unless it names an edition of
// other data.
func withoutDirectory(ctx context.Context, s resolution.KeywordSearch) error {
	if s.Edition != "" && s.Edition != noDirectory {
		return resolution.ErrNoEdition
	}
	return ctx.Err()
}

// unsearchable returns the error of the directory, or that of a caller who gave up.
func unsearchable(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, resolution.ErrNoEdition) || errors.Is(err, resolution.ErrUnavailable) {
		return cmp.Or(ctx.Err(), err)
	}
	return readable(err)
}
