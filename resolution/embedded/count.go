package embedded

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/leadetl/leadetl/resolution"
)

// counted bounds the leads whose hashed emails are counted one by one, which takes about a
// second.
const counted = 20_000

// Count counts the leads, and their hashed emails as Search would return them. For more than
// 20,000 leads, it estimates the emails from a part of the leads, evenly spread over their
// order and always the same.
func (e *Engine) Count(ctx context.Context, s resolution.KeywordSearch, hems int) (resolution.SearchCount, error) {
	count, err := e.count(ctx, s, hems, counted)
	if err != nil {
		return resolution.SearchCount{}, fmt.Errorf("embedded count: %w", err)
	}
	return count, nil
}

func (e *Engine) count(ctx context.Context, s resolution.KeywordSearch, hems, most int) (resolution.SearchCount, error) {
	if hems < 0 {
		return resolution.SearchCount{}, fmt.Errorf("%w: the number of hashed emails is negative", resolution.ErrInvalid)
	}
	if e.directory == nil {
		return resolution.SearchCount{}, withoutDirectory(ctx, s)
	}
	found, total, err := e.directory.SampleSearches(ctx, s, most)
	if err != nil {
		return resolution.SearchCount{}, unsearchable(ctx, err)
	}
	var sum atomic.Int64
	if err := inShares(len(found), func(from, to int) error {
		for _, f := range found[from:to] {
			if err := ctx.Err(); err != nil {
				return err
			}
			who, err := e.searcher(ctx, f)
			if err != nil {
				return err
			}
			hashes, err := who.hashedEmails()
			if err != nil {
				return err
			}
			sum.Add(int64(min(len(hashes), hems)))
		}
		return nil
	}); err != nil {
		return resolution.SearchCount{}, err
	}
	count := resolution.SearchCount{Leads: total, HashedEmails: sum.Load()}
	if n := int64(len(found)); n < total {
		count.HashedEmails = int64(math.Round(float64(sum.Load()) / float64(n) * float64(total)))
		count.Approximate = true
	}
	return count, nil
}
