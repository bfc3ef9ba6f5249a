package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
)

// callPlanner counts the calls that the questions of a run need.
type callPlanner struct {
	decision *begin.Decision
	began    time.Time
	former   *formerKeys

	mu    sync.Mutex
	keys  int64
	calls PlannedCalls
}

// count adds questions, given by their hashes. It is safe for concurrent use.
func (c *callPlanner) count(ctx context.Context, some []distinct.Key) error {
	var calls PlannedCalls
	if run := c.decision.Run; run.Remote != nil {
		var hashes []answers.Hash
		var found []answers.Found
		for keys := range slices.Chunk(some, purchase.MaxLookups) {
			hashes = hashes[:0]
			for _, k := range keys {
				hashes = append(hashes, k.Hash)
			}
			var err error
			if found, err = c.look(ctx, hashes, found[:0]); err != nil {
				return err
			}
			hashes = hashes[:0]
			for i, f := range found {
				decided := run.Remote.Decide(run.Job.Operation, f, c.began, c.began)
				calls.count(f, decided, int64(keys[i].Cost))
				if decided == purchase.GiveUp && run.Remote.Keys != nil {
					calls.TooOld++
				}
				if former, changed := c.former.of[keys[i].Hash]; changed && decided == purchase.Ask {
					hashes = append(hashes, former)
				}
			}
			if found, err = c.look(ctx, hashes, found[:0]); err != nil {
				return err
			}
			for _, f := range found {
				if f.Stored || f.Open != "" {
					calls.FormChanged++
				}
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys += int64(len(some))
	c.calls.sum(calls)
	return nil
}

func (c *callPlanner) look(ctx context.Context, hashes []answers.Hash, into []answers.Found) ([]answers.Found, error) {
	remote := c.decision.Run.Remote
	if remote.Answers == nil {
		return append(into, make([]answers.Found, len(hashes))...), nil
	}
	return remote.Answers.LookupHashes(ctx, hashes, remote.Freshness(c.began), into)
}

// count counts one question by its stored answer or call and the decision that
// follows.
func (p *PlannedCalls) count(f answers.Found, s purchase.Decision, price int64) {
	switch {
	case f.Stored && s == purchase.UseStored:
		p.Stored++
	case f.Stored:
		p.Stale++
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

// sum adds the counts of o.
func (p *PlannedCalls) sum(o PlannedCalls) {
	p.Stored += o.Stored
	p.Stale += o.Stale
	p.Unknown += o.Unknown
	p.Parked += o.Parked
	p.Calls += o.Calls
	p.Again += o.Again
	p.FormChanged += o.FormChanged
	p.Awaited += o.Awaited
	p.Failed += o.Failed
	p.TooOld += o.TooOld
	p.Skipped += o.Skipped
	p.Credits += o.Credits
}

// bill returns the cost and the duration of the calls. It is nil without a
// service.
func (c *callPlanner) bill(ctx context.Context, morePages bool) (*PlannedCalls, error) {
	remote := c.decision.Run.Remote
	if remote == nil {
		return nil, nil
	}
	p := &c.calls
	if c.decision.Run.Job.Operation != resolution.KeywordToLead {
		p.Price = remote.Price.Max()
	}
	p.MorePages = morePages && !remote.Offline
	p.FormChangedAtLeast = c.former.more
	if remote.Pace != nil {
		if p.Rate = remote.Pace.Snapshot().Rate; p.Rate > 0 {
			p.Seconds = float64(p.Calls) / p.Rate
		}
	}
	var err error
	p.Short, p.NotEnough, err = c.short(ctx, p)
	return p, err
}

// short names the budgets that may be too small, and those that are too small
// even if nothing matches. It includes what the run spent before it was
// stopped, as a resumed run does.
func (c *callPlanner) short(ctx context.Context, p *PlannedCalls) (short, notEnough []string, err error) {
	var calls, credits int64
	remote := c.decision.Remote()
	credits = remote.PaidBefore
	if remote.Answers != nil {
		spent, err := remote.Spent(ctx, c.decision.Header.Run)
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
	if b.MaxCredits >= 0 && credits+p.Credits > b.MaxCredits {
		short = append(short, "max_credits")
		// The budget is too small for one call, and nothing spent is put back.
		if price := max(p.Price, 1); fresh > 0 && p.Again == 0 && p.Awaited == 0 && credits+price > b.MaxCredits {
			notEnough = append(notEnough, "max_credits")
		}
	}
	return short, notEnough, nil
}
