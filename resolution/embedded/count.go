package embedded

import (
	"context"
	"fmt"
	"math"

	"github.com/leadetl/leadetl/resolution"
)

// counted is up to how many leads hashed emails are counted one by one: a
// person takes some twenty microseconds to find.
const counted = 20_000

// Count counts the leads, and their hashed emails as Search would deliver
// them. Beyond 20,000 leads the emails are estimated from a part of the leads,
// evenly spread over their order and always the same.
func (e *Engine) Count(ctx context.Context, s resolution.KeywordSearch, hems int) (resolution.SearchCount, error) {
	count, err := e.count(ctx, s, hems, counted)
	if err != nil {
		return resolution.SearchCount{}, fmt.Errorf("embedded count: %w", err)
	}
	return count, nil
}

func (e *Engine) count(ctx context.Context, s resolution.KeywordSearch, hems, most int) (resolution.SearchCount, error) {
	if hems < 0 {
		return resolution.SearchCount{}, fmt.Errorf("%w: fewer than no hashed emails", resolution.ErrInvalid)
	}
	if e.directory == nil {
		return resolution.SearchCount{}, withoutDirectory(ctx, s)
	}
	found, total, err := e.directory.SampleSearches(ctx, s, most)
	if err != nil {
		return resolution.SearchCount{}, unsearchable(ctx, err)
	}
	var sum int64
	for _, f := range found {
		if err := ctx.Err(); err != nil {
			return resolution.SearchCount{}, err
		}
		who, err := e.searcher(ctx, f)
		if err != nil {
			return resolution.SearchCount{}, err
		}
		hashes, err := who.hashedEmails()
		if err != nil {
			return resolution.SearchCount{}, err
		}
		sum += int64(min(len(hashes), hems))
	}
	count := resolution.SearchCount{Leads: total, HashedEmails: sum}
	if n := int64(len(found)); n < total {
		count.HashedEmails = int64(math.Round(float64(sum) / float64(n) * float64(total)))
		count.Approximate = true
	}
	return count, nil
}
