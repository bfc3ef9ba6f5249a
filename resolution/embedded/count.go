package embedded

import (
	"context"
	"fmt"
	"math"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/resolution/directory/searches"
)

// counted bounds the leads whose hashed emails are counted one by one, which takes a tenth of a
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
	found, total, err := e.directory.Searches().Sample(ctx, s, most)
	if err != nil {
		return resolution.SearchCount{}, unsearchable(ctx, err)
	}
	sums, err := inShares(found, func(found []searches.Found) (sum int64, err error) {
		s := newSearchers(e)
		err = s.each(ctx, found, people.Emails, func(i int, _ *searches.Found) { sum += int64(len(s.hashesOf(i, hems))) })
		return sum, err
	})
	if err != nil {
		return resolution.SearchCount{}, err
	}
	count := resolution.SearchCount{Leads: total}
	for _, sum := range sums {
		count.HashedEmails += sum
	}
	if n := int64(len(found)); n < total {
		count.HashedEmails = int64(math.Round(float64(count.HashedEmails) / float64(n) * float64(total)))
		count.Approximate = true
	}
	return count, nil
}
