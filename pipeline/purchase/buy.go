package purchase

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/retry"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/search"
)

const (
	// maxAttempts is how often a question is sent that the service keeps
	// failing at while it lives.
	maxAttempts = 10
	// initialWait and maxWait are between two attempts.
	initialWait, maxWait = 200 * time.Millisecond, 20 * time.Second
)

// purchase is one question that is not answered yet, on its way to an answer.
// It is used by one goroutine at a time.
type purchase struct {
	buyer    *Buyer
	entry    *entry
	question answers.Question
	charge   charge
	// parked says that the answer was promised to an earlier process, and until
	// when that waited for it.
	parked   bool
	deadline time.Time
	// maybeBilled says that an earlier call may have been billed: its open call
	// is sent again, under the same idempotency key.
	maybeBilled bool
	// unknown says that the meter counts that call among the unknown ones.
	unknown bool
	// answered gives the place of the call under way to the next one. It may be
	// called again.
	answered func()
}

func (a *Buyer) purchase(e *entry, f answers.Found, parked bool) *purchase {
	open := f.Open != ""
	q := answers.Question{Scope: a.scope, Key: e.key}
	p := &purchase{
		buyer: a, entry: e, question: q, parked: parked, deadline: f.Deadline, charge: charge{account: a.account, price: a.remote.Price.MaxCost(q)}, maybeBilled: open,
		unknown: f.Open == answers.Unknown && !f.Sent.Before(a.began),
	}
	switch {
	case open && f.Run == a.run:
		p.charge.status, p.charge.cost = booked, p.charge.price
	case open:
		p.charge.status = foreign
	}
	if p.charge.status != booked && !a.codec.operation.IsKeyword() { // a booked charge has the price that was declared
		p.charge.price = max(p.charge.price, a.surcharge.most.Load())
	}
	return p
}

// buy has a page made and gets it.
func (p *purchase) buy() (Answer, error) {
	defer func() { <-p.buyer.slots }()
	q, err := search.ParseKey(p.question.Key)
	if err != nil {
		return Answer{}, err
	}
	page, err := p.buyPage(q)
	return page.withPage(err)
}

// resume gets a page that an earlier process had the service make.
func (p *purchase) resume() (Answer, error) {
	page, err := p.resumePage()
	return page.withPage(err)
}

// errArrived says that a callback has brought the answer while the question
// was asked, or was about to be asked again.
var errArrived = errors.New("the answer has come by a callback")

// posted counts the answer that a callback has brought, and is nil when it
// brought that there is none.
func (p *purchase) posted() (*answers.Answer, error) {
	f, err := p.buyer.lookUp(p.question.Key)
	switch {
	case err != nil:
		return nil, p.buyer.stopFor(err)
	case !f.Stored || !f.Fresh:
		return nil, nil // the service gave it up
	}
	cost := p.costOfStored(f.Answer)
	p.charge.settle(cost)
	p.clearUnknown()
	p.buyer.counters.Settled(cost)
	return &f.Answer, nil
}

// isUnknown counts a call that may have been billed and has no answer.
func (p *purchase) markUnknown() {
	if !p.unknown {
		p.buyer.counters.Unknown(1)
	}
	p.unknown = true
}

// isKnown ends that. What was unknown before this process is counted in the
// store alone.
func (p *purchase) clearUnknown() {
	if p.unknown {
		p.buyer.counters.Unknown(-1)
	}
	p.unknown = false
}

// retryUntilSettled sends until there is an answer, or none may be asked for any more:
// then the row goes without one, and the Answer says why.
func (p *purchase) retryUntilSettled(send func() error) (without *Answer, err error) {
	give := func(reason string) (*Answer, error) {
		v := failed(reason)
		return &v, nil
	}
	for failures := 0; ; {
		err := send()
		var failure *resolution.CallError
		switch {
		case err == nil:
			return nil, nil
		case errors.Is(err, answers.ErrNoCall):
			return nil, errArrived
		case stopOf(err) != nil || !errors.As(err, &failure):
			return nil, p.buyer.stopFor(err)
		case failure.Class == resolution.Invalid:
			return give(refusedReason(failure))
		case p.maybeBilled && !p.buyer.remote.Idempotent && failure.Billed():
			return give(outcome.ReasonUnknownCall)
		}
		if p.rowSpecific(failure) {
			failures++
		}
		switch {
		case failures < maxAttempts:
		case p.maybeBilled:
			return give(outcome.ReasonUnknownCall)
		default:
			return give(outcome.ReasonUnavailable)
		}
		p.buyer.counters.Retried(string(failure.Class))
		if err := p.pause(failures, failure); err != nil {
			return nil, err
		}
	}
}

// rowSpecific reports whether a failure may be due to the question. Neither is
// one to be paced or to reach the service, nor one of a service that answers
// nobody: then it is the pace that waits, and gives up at some time, for the
// run and not for a row.
func (p *purchase) rowSpecific(f *resolution.CallError) bool {
	if !f.Sent || f.Class == resolution.Limited {
		return false
	}
	return f.Billed() || f.Over || !p.buyer.outage.isDown()
}

// send makes one call: money, pace, intent, call, and then what came of it on
// disk, before any of it counts. The place among the calls in flight is given
// back when its end has a place in the store before the next call's intent, so
// that there are never more open calls on disk than places, and one wait for
// the disk serves both.
//
// The error is the call's, or why no call was made; keep stores an answer.
func (p *purchase) send(call func(answers.Call) (resolution.About, error), keep func() error) error {
	if err := p.charge.hold(p.buyer.ctx); err != nil {
		return err
	}
	permit, err := p.buyer.remote.Pace.Acquire(p.buyer.ctx)
	if err != nil {
		p.charge.putBack()
		return EndOf(p.buyer.ctx, err)
	}
	durable := context.WithoutCancel(p.buyer.ctx)
	intent, err := p.buyer.remote.Answers.Intent(durable, p.question, answers.Send{Run: p.buyer.run, At: time.Now(), Again: p.maybeBilled})
	if err != nil {
		permit.Done(pace.Outcome{Kind: pace.NotCounted})
		p.charge.putBack()
		return err
	}
	if err := permit.Leave(p.buyer.ctx); err != nil { // a slow disk held the intent up
		permit.Done(pace.Outcome{Kind: pace.NotCounted})
		p.charge.putBack()
		return errors.Join(EndOf(p.buyer.ctx, err), p.buyer.remote.Answers.Fail(durable, p.question, answers.Failure{}))
	}
	began := time.Now()
	about, err := call(intent)
	took := time.Since(began)
	if err != nil {
		var failure *resolution.CallError
		if !errors.As(err, &failure) {
			permit.Done(pace.Outcome{Kind: pace.NotCounted})
			return err // nothing is known: the call stays open, and counted
		}
		p.buyer.counters.Called(took, string(failure.Class))
		stored := p.fail(durable, failure)
		p.buyer.outage.done(permit, outcomeOf(failure, took), failure)
		if stored != nil {
			return stored
		}
		return err
	}
	p.buyer.countReply(about, took)
	p.answered = sync.OnceFunc(func() {
		p.buyer.outage.done(permit, pace.Outcome{Kind: pace.Answered, LookAhead: lookAheadOf(about.Pace), Latency: took}, nil)
	})
	defer p.answered()
	return keep()
}

// fail stores how a call ended without an answer, and counts it where it may
// have been billed.
func (p *purchase) fail(ctx context.Context, f *resolution.CallError) error {
	if f.Class == resolution.Invalid && p.settles(f) {
		p.clearUnknown()
		free := int64(0)
		theirs, err := p.store(answers.Answer{
			Run: p.buyer.run, Outcome: answers.Refused, Reason: refusedReason(f), Status: f.Status, Body: f.Body,
			Request: f.RequestID, Credits: &free, Received: time.Now(),
		})
		cost := int64(0)
		if theirs != nil {
			cost = p.costOfStored(*theirs)
		}
		p.charge.settle(cost)
		p.buyer.counters.Refused(1)
		return err
	}
	billed := f.Billed()
	err := p.buyer.remote.Answers.Fail(ctx, p.question, answers.Failure{
		Reason: string(f.Class), Status: f.Status, Request: f.RequestID, MayBeBilled: billed,
	})
	if billed || p.maybeBilled {
		p.markUnknown()
		p.charge.settle(p.charge.price)
		p.maybeBilled = true
		return err
	}
	p.charge.release()
	return err
}

// settles reports whether a refusal of the question is the last word on it.
// Where an earlier call may have been billed it is so from a service that
// honours the idempotency key, which would have sent that call's answer; but
// not when what is refused is the key, used for another body.
func (p *purchase) settles(f *resolution.CallError) bool {
	return !p.maybeBilled || p.buyer.remote.Idempotent && f.Status != http.StatusUnprocessableEntity
}

// store stores an answer. A service may post what it answers, too, and be
// faster so: then that is the stored answer, and holds.
func (p *purchase) store(a answers.Answer) (theirs *answers.Answer, err error) {
	ctx := context.WithoutCancel(p.buyer.ctx)
	if p.buyer.remote.Deliveries == nil {
		return nil, p.buyer.remote.Answers.Place(ctx, p.question, a, p.answered)
	}
	if err := p.buyer.remote.Answers.Settle(ctx, p.question, a); !errors.Is(err, answers.ErrNoCall) {
		return nil, err
	}
	f, err := p.buyer.lookUp(p.question.Key)
	if err != nil {
		return nil, err
	}
	if !f.Stored || !f.Fresh { // it had posted that there is no answer
		return nil, p.buyer.remote.Answers.Put(ctx, p.question, a)
	}
	return &f.Answer, nil
}

// costOfStored is what a stored answer cost, or may have.
func (p *purchase) costOfStored(a answers.Answer) int64 {
	if a.Credits == nil {
		return p.charge.price
	}
	return *a.Credits
}

// paid settles a call that cost so much.
func (p *purchase) paid(cost int64) {
	p.clearUnknown()
	p.buyer.surcharge.learn(p.charge.price, cost)
	p.charge.settle(cost)
	p.buyer.counters.Settled(cost)
}

// pause waits before a question is sent again that failed so often. Where the
// whole service is in trouble, or asks for patience, the pace waits.
func (p *purchase) pause(failures int, f *resolution.CallError) error {
	if f.Class == resolution.Limited || !f.Sent {
		return nil
	}
	backoff := retry.Backoff{Initial: initialWait, Max: maxWait}
	wait := max(backoff.Jittered(failures, rand.Float64()), min(f.Pace.RetryAfter, maxWait))
	select {
	case <-time.After(wait):
		return nil
	case <-p.buyer.ctx.Done():
		return context.Cause(p.buyer.ctx)
	}
}

// refusedReason is the reason of a row that the service refused.
func refusedReason(f *resolution.CallError) string {
	if f.Code == "" {
		return outcome.ReasonRefused
	}
	return outcome.ReasonRefused + ":" + f.Code
}
