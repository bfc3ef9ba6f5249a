package pipeline

import (
	"context"
	"slices"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
)

// countCalls counts the calls that some questions need. It is safe for concurrent use.
func (r *rowPlanner) countCalls(ctx context.Context, some []distinct.Key) error {
	r.mu.Lock()
	r.distinct += int64(len(some))
	r.mu.Unlock()
	if r.decision.Run.Remote == nil {
		return nil
	}
	var hashes []answers.Hash
	var found []answers.Found
	for keys := range slices.Chunk(some, purchase.MaxLookups) {
		hashes = hashes[:0]
		for _, k := range keys {
			hashes = append(hashes, k.Hash)
		}
		var err error
		if found, err = r.lookUp(ctx, hashes, found[:0]); err != nil {
			return err
		}
		if found, err = r.lookUp(ctx, r.countFound(keys, found, hashes[:0]), found[:0]); err != nil {
			return err
		}
		r.mu.Lock()
		for _, f := range found {
			if f.Stored || f.Open != "" {
				r.calls.FormChanged++
			}
		}
		r.mu.Unlock()
	}
	return nil
}

// countFound counts questions by what is stored of them. It adds the former hashes of those
// to ask to former.
func (r *rowPlanner) countFound(keys []distinct.Key, found []answers.Found, former []answers.Hash) []answers.Hash {
	run := r.decision.Run
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, f := range found {
		decided := run.Remote.Decide(run.Job.Operation, f, r.began, r.began)
		r.calls.count(f, decided, int64(keys[i].Cost))
		if decided == purchase.GiveUp && run.Remote.Keys != nil {
			r.calls.TooOld++
		}
		if was, changed := r.former.of[keys[i].Hash]; changed && decided == purchase.Ask {
			former = append(former, was)
		}
	}
	return former
}

func (r *rowPlanner) lookUp(ctx context.Context, hashes []answers.Hash, into []answers.Found) ([]answers.Found, error) {
	remote := r.decision.Run.Remote
	if remote.Answers == nil {
		return append(into, make([]answers.Found, len(hashes))...), nil
	}
	return remote.Answers.LookupHashes(ctx, hashes, remote.Freshness(r.began), into)
}

// count counts one question by its stored answer or call and the decision that
// follows.
func (p *PlannedCalls) count(f answers.Found, s purchase.Decision, price int64) {
	switch {
	case f.Stored && s == purchase.UseStored:
		p.Stored++
	case f.Stored:
		p.Stale++
	case f.Open == "":
		p.New++
	}
	switch f.Open {
	case answers.Parked:
		p.Parked++
	case answers.Unknown:
		p.Unknown++
	}
	switch s {
	case purchase.Ask:
		p.Calls++
		p.Credits += price
	case purchase.Resend:
		p.Calls++
		p.Again++
		p.Credits += price
	case purchase.Await:
		p.Awaited++
		p.Credits += price
	case purchase.GiveUp:
		p.Failed++
	case purchase.Skip:
		p.Skipped++
	}
}

// bill returns the calls to the service with their cost and duration.
func (r *rowPlanner) bill(ctx context.Context) (*PlannedCalls, error) {
	remote, p := r.decision.Run.Remote, &r.calls
	if r.decision.Run.Job.Operation != resolution.KeywordToLead {
		p.Price = remote.Price.Max()
	}
	p.MorePages = r.morePages && !remote.Offline
	p.FormChangedAtLeast = r.former.more
	if remote.Pace != nil {
		if p.Rate = remote.Pace.Snapshot().Rate; p.Rate > 0 {
			p.Seconds = float64(p.Calls) / p.Rate
		}
	}
	var err error
	p.Short, p.NotEnough, err = r.short(ctx, p)
	return p, err
}

// short names the budgets that may be too small, and those that are too small
// even if nothing matches. It includes what the run spent before it was
// stopped, as a resumed run does.
func (r *rowPlanner) short(ctx context.Context, p *PlannedCalls) (short, notEnough []string, err error) {
	var calls, credits int64
	remote := r.decision.Remote()
	credits = remote.PaidBefore
	if remote.Answers != nil {
		spent, err := remote.Spent(ctx, r.decision.Header.Run)
		if err != nil {
			return nil, nil, err
		}
		calls, credits = spent.Calls, spent.Credits()
	}
	b, fresh := remote.Budget, p.Calls-p.Again // the others may be part of what was spent
	if b.MaxCalls >= 0 && calls+p.Calls > b.MaxCalls {
		short = append(short, "max_calls")
		if calls+fresh > b.MaxCalls {
			notEnough = append(notEnough, "max_calls")
		}
	}
	compare := func(name string, spent, most int64) {
		if spent+p.Credits <= most {
			return
		}
		short = append(short, name)
		// The budget is too small for one call, and nothing spent is put back.
		if price := max(p.Price, 1); fresh > 0 && p.Again == 0 && p.Awaited == 0 && spent+price > most {
			notEnough = append(notEnough, name)
		}
	}
	if b.MaxCredits >= 0 {
		compare("max_credits", credits, b.MaxCredits)
	}
	if tooManyNewKeys(r.decision, p) {
		short, notEnough = append(short, "max_new_keys"), append(notEnough, "max_new_keys")
	}
	if allowed := b.Allowance; allowed.Days > 0 {
		of, err := remote.SpentOfAllowance(ctx, r.decision.Run.Job.Operation, r.began)
		if err != nil {
			return nil, nil, err
		}
		compare("max_credits_per", of, allowed.Credits)
	}
	return short, notEnough, nil
}
