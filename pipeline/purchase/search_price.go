package purchase

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/search"
)

// ofLead is the price of a lead of a search.
func (p Price) ofLead(q search.Query) int64 {
	price := p.Match
	if q.Deanonymize {
		price += p.Extra
	}
	if q.SuperEnrichment {
		price += p.Extra
	}
	return price
}

// MaxCost is the most that the answer to a question can cost: of a page
// that it is full.
func (p Price) MaxCost(q answers.Question) int64 {
	if q.Operation != resolution.KeywordToLead {
		return p.Max()
	}
	page, err := search.ParseKey(q.Key)
	if err != nil {
		return int64(search.DefaultLimits().PageLimit) * (p.Match + 2*p.Extra) // no key of ours
	}
	return int64(page.Limit) * p.ofLead(page)
}

// costOfSearch is what a page or a count cost: what the service said, or its
// price where it did not.
func (p Price) costOfSearch(q answers.Question, r resolution.SearchReply) int64 {
	if r.Spent != nil && (*r.Spent > 0 || !r.Replayed) {
		return *r.Spent
	}
	if q.Operation != resolution.KeywordToLead {
		return p.Match
	}
	page, err := search.ParseKey(q.Key)
	if err != nil {
		page.Deanonymize, page.SuperEnrichment = true, true
	}
	return int64(len(r.Result.Leads)) * p.ofLead(page)
}

// setAside adds to an error for want of credits what a page needs: a service
// holds the price of a full one back, and refuses while there are credits left.
func (p *purchase) setAside(err error) error {
	var failed *resolution.CallError
	page, notPage := search.ParseKey(p.question.Key)
	if p.operation != resolution.KeywordToLead || notPage != nil || !errors.As(err, &failed) || failed.Class != resolution.NoCredits {
		return err
	}
	return fmt.Errorf("%w; for a page of limit %d up to %d credits are set aside at the service: give a smaller limit or more credits", err, page.Limit, p.price)
}

// uncertainPages are the prices of the pages that a run may have been billed
// for without having them.
func (r *Remote) uncertainPages(ctx context.Context, run string) (credits int64, err error) {
	for _, calls := range []iter.Seq2[answers.OpenCall, error]{r.Answers.Unknown(ctx), r.Answers.Parked(ctx)} {
		for c, err := range calls {
			if err != nil {
				return 0, err
			}
			if c.Run == run {
				credits += r.Price.MaxCost(c.Question)
			}
		}
	}
	return credits, nil
}
