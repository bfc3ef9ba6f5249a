package purchase

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/leadetl/leadetl/internal/retry"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
)

// maxPollWait is the longest wait between two looks at a page that a service
// is making, unless the service asks for more.
const maxPollWait = 5 * time.Second

// poll waits for a page that the service is making. Asking costs nothing, so
// what is parked is asked for however old it is. first is when to look for the
// first time: a look too early is one to be told to come back much later. cost
// is what the page cost, or may have.
func (p *purchase) poll(first time.Duration) (page boughtPage, cost int64, err error) {
	open, err := p.buyer.remote.Answers.Find(context.WithoutCancel(p.buyer.ctx), p.question.Hash())
	if errors.Is(err, answers.ErrNoCall) {
		return p.delivered()
	}
	if err != nil {
		return boughtPage{}, p.charge.price, p.buyer.stopFor(err)
	}
	p.buyer.counters.Parked(1)
	defer p.buyer.counters.Parked(-1)
	var arrived <-chan struct{}
	if p.buyer.remote.Deliveries != nil {
		news, forget := p.buyer.remote.Deliveries.Listen(p.question.Hash())
		defer forget()
		arrived = news
	}
	end := time.Now().Add(p.buyer.remote.Patience)
	if first > 0 {
		if _, err := p.pausePoll(first, arrived); err != nil {
			return boughtPage{}, p.charge.price, err
		}
	}
	backoff := retry.Backoff{Initial: initialWait, Max: maxPollWait}
	for polls, failures := 1, 0; ; polls++ {
		reply, err := p.look(open.Resolution)
		var failure *resolution.CallError
		switch {
		case err == nil && !reply.Pending:
			return p.finished(reply, open)
		case err == nil:
			failures = 0
		case stopOf(err) != nil || !errors.As(err, &failure):
			return boughtPage{}, p.charge.price, p.buyer.stopFor(err)
		case failure.Over:
			return p.gaveUp(failure, open)
		case failure.Class == resolution.Invalid:
			return p.lost(failure)
		case failure.Sent && failure.Class != resolution.Limited && !p.buyer.outage.isDown():
			failures++
		}
		switch {
		case failures >= maxAttempts:
			return failedPage(outcome.ReasonUnavailable), p.charge.price, nil
		case !time.Now().Before(end) && !p.buyer.outage.isDown():
			return failedPage(outcome.ReasonUnfinished), p.charge.price, nil
		}
		asked := reply.Pace.RetryAfter
		if failure != nil {
			p.buyer.counters.Retried(string(failure.Class))
			asked = failure.Pace.RetryAfter
		}
		news, err := p.pausePoll(max(backoff.Jittered(polls, rand.Float64()), min(asked, maxWait)), arrived)
		if err != nil {
			return boughtPage{}, p.charge.price, err
		}
		if news {
			if f, err := p.buyer.lookUp(p.question.Key); err != nil || f.Open == "" {
				return p.delivered()
			}
		}
	}
}

// pausePoll waits, and no longer than until there is news of the page.
func (p *purchase) pausePoll(wait time.Duration, arrived <-chan struct{}) (news bool, err error) {
	end := time.NewTimer(wait)
	defer end.Stop()
	select {
	case <-end.C:
		return false, nil
	case <-arrived:
		return true, nil
	case <-p.buyer.ctx.Done():
		return false, context.Cause(p.buyer.ctx)
	}
}

// look asks for a page once.
func (p *purchase) look(id string) (resolution.SearchReply, error) {
	permit, err := p.buyer.remote.Pace.Acquire(p.buyer.ctx)
	if err != nil {
		return resolution.SearchReply{}, EndOf(p.buyer.ctx, err)
	}
	began := time.Now()
	reply, err := p.buyer.remote.Service.Poll(context.WithoutCancel(p.buyer.ctx), p.buyer.codec.operation, id)
	took := time.Since(began)
	var failure *resolution.CallError
	switch {
	case err == nil:
		p.buyer.countReply(reply.About, took)
		// What is said of a limit is said of looks, of which there are many
		// more than of what has to be paced: that the service makes pages.
		p.buyer.outage.done(permit, pace.Outcome{Kind: pace.Answered, Latency: took}, nil)
	case errors.As(err, &failure):
		p.buyer.counters.Called(took, string(failure.Class))
		o := outcomeOf(failure, took)
		if failure.Over {
			o.Kind = pace.Answered // the search failed, not the service
		}
		p.buyer.outage.done(permit, o, failure)
	default:
		permit.Done(pace.Outcome{Kind: pace.NotCounted})
	}
	return reply, err
}

// finished stores a page that the service has made. Who asked for it pays.
func (p *purchase) finished(reply resolution.SearchReply, open answers.OpenCall) (boughtPage, int64, error) {
	a := p.answerOf(reply, open.Run)
	a.Resolution = cmp.Or(a.Resolution, open.Resolution)
	err := p.buyer.remote.Answers.Settle(context.WithoutCancel(p.buyer.ctx), p.question, a)
	if errors.Is(err, answers.ErrNoCall) { // the callback was faster
		return p.delivered()
	}
	if err != nil {
		return boughtPage{}, p.charge.price, p.buyer.stopFor(err)
	}
	p.buyer.counters.Settled(*a.Credits)
	return boughtPage{pageAnswer(a), reply}, *a.Credits, nil
}

// delivered reads a page that a callback has brought.
func (p *purchase) delivered() (boughtPage, int64, error) {
	f, err := p.buyer.lookUp(p.question.Key)
	switch {
	case err != nil:
		return boughtPage{}, p.charge.price, p.buyer.stopFor(err)
	case !f.Stored || !f.Fresh:
		return failedPage(outcome.ReasonUnavailable), 0, nil // the service gave it up
	}
	cost := p.costOfStored(f.Answer)
	p.buyer.counters.Settled(cost)
	page, err := p.buyer.readPage(f.Answer)
	return page, cost, err
}

// gaveUp stores that the service could not make a page. It was not billed, and
// the next run asks again.
func (p *purchase) gaveUp(f *resolution.CallError, open answers.OpenCall) (boughtPage, int64, error) {
	free := int64(0)
	err := p.buyer.remote.Answers.Settle(context.WithoutCancel(p.buyer.ctx), p.question, answers.Answer{
		Run: open.Run, Outcome: answers.Refused, Reason: outcome.ReasonUnavailable, Status: f.Status, Body: f.Body,
		Resolution: open.Resolution, Request: f.RequestID, Credits: &free, Received: time.Now(),
	})
	if errors.Is(err, answers.ErrNoCall) {
		return p.delivered()
	}
	if err != nil {
		return boughtPage{}, p.charge.price, p.buyer.stopFor(err)
	}
	return failedPage(outcome.ReasonUnavailable), 0, nil
}

// lost stores that the service does not know a page any more that it began to
// make: it may have been billed.
func (p *purchase) lost(f *resolution.CallError) (boughtPage, int64, error) {
	err := p.buyer.remote.Answers.Fail(context.WithoutCancel(p.buyer.ctx), p.question, answers.Failure{
		Reason: string(f.Class), Status: f.Status, Request: f.RequestID, MayBeBilled: true,
	})
	if errors.Is(err, answers.ErrNoCall) {
		return p.delivered()
	}
	if err != nil {
		return boughtPage{}, p.charge.price, p.buyer.stopFor(err)
	}
	p.markUnknown()
	return failedPage(outcome.ReasonUnknownCall), p.charge.price, nil
}
