package pipeline

import (
	"context"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/purchase"
)

// count counts n questions by their stored answer or call and the decision that follows.
func (p *PlannedCalls) count(q order.Question, n int64) {
	switch {
	case q.Stored && q.Decision == purchase.UseStored:
		p.Stored += n
	case q.Stored:
		p.Stale += n
	case q.Open == "":
		p.New += n
	}
	if q.Changed {
		p.Changed += n
	}
	switch q.Open {
	case answers.Parked:
		p.Parked += n
	case answers.Unknown:
		p.Unknown += n
	}
	switch q.Decision {
	case purchase.Ask:
		p.Calls += n
		p.Credits += n * int64(q.Price)
	case purchase.Resend:
		p.Calls += n
		p.Again += n
		p.Credits += n * int64(q.Price)
	case purchase.Await:
		p.Awaited += n
		p.Credits += n * int64(q.Price)
	case purchase.GiveUp:
		p.Failed += n
	case purchase.Skip:
		p.Skipped += n
	}
}

// takes sets how long the calls take.
func (p *PlannedCalls) takes(remote *purchase.Remote) {
	if remote.Pace == nil {
		return
	}
	p.Rate = remote.Pace.Snapshot().Rate * float64(max(remote.CallsAtOnce, 1))
	if p.Later = remote.Later.Wait > 0; p.Later { // looks take places, too
		p.Rate /= 2
	}
	if p.Rate > 0 {
		p.Seconds = float64(p.Calls) / p.Rate
	}
}

// Allow lowers the rate to the one that the service allows.
func (p *PlannedCalls) Allow(perSecond float64) {
	if p.Allowed = perSecond; perSecond > 0 && (p.Rate == 0 || p.Rate > perSecond) {
		p.Rate, p.Seconds = perSecond, float64(p.Calls)/perSecond
	}
}

// spent is what a run spent before it was stopped.
func (r *rowPlanner) spent(ctx context.Context, remote *purchase.Remote, run string) (s purchase.Spending, err error) {
	if remote.Answers == nil {
		return purchase.Spending{}, nil
	}
	return remote.Spent(ctx, run, r.decision.Run.Job.Operation)
}

// limit names the budgets that may be too small, and those that are too small
// even if nothing matches. It includes what the run spent before it was
// stopped, as a resumed run does.
func (r *rowPlanner) limit(ctx context.Context, p *PlannedCalls, remote *purchase.Remote, spent purchase.Spending, tooManyNew bool) error {
	b, fresh := remote.Budget, p.Calls-p.Again // the others may be part of what was spent
	if b.MaxCalls >= 0 && spent.Calls+p.Calls > b.MaxCalls {
		p.Short = append(p.Short, "max_calls")
		if spent.Calls+fresh > b.MaxCalls {
			p.NotEnough = append(p.NotEnough, "max_calls")
		}
	}
	compare := func(name string, spent, most int64) {
		if spent+p.Credits <= most {
			return
		}
		p.Short = append(p.Short, name)
		// The budget is too small for one call, and nothing spent is put back.
		if price := max(p.Price, 1); fresh > 0 && p.Again == 0 && p.Awaited == 0 && spent+price > most {
			p.NotEnough = append(p.NotEnough, name)
		}
	}
	if b.MaxCredits >= 0 {
		compare("max_credits", spent.Credits(), b.MaxCredits)
	}
	if tooManyNew {
		p.Short, p.NotEnough = append(p.Short, "max_new_keys"), append(p.NotEnough, "max_new_keys")
	}
	if allowed := b.Allowance; allowed.Days > 0 {
		of, err := remote.SpentOfAllowance(ctx, r.decision.Run.Job.Operation, r.began)
		if err != nil {
			return err
		}
		compare("max_credits_per", of, allowed.Credits)
	}
	return nil
}
