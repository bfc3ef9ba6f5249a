package purchase

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
)

// This file keeps the promise on money. A question that was answered is never
// bought again, a call that may have been billed is never sent again unless
// that is safe or the user says so, and the budget is never exceeded. It holds
// at every moment at which the process may be killed:
//
//   - send holds the price in the budget, waits for its turn, and puts the intent
//     on disk before the request leaves;
//   - conclude ends the request. It puts on disk what came of it before anything
//     of it counts.
//
// The states of a call:
//
//	unsent  ──> sent ──> closed    answered, or refused
//	              │ ├──> parked    the answer is promised
//	              │ ├──> unknown   it may have been billed, and has no answer
//	              │ └──> unsent    it failed, and was surely not billed
//	unknown ──> resent ──> closed, parked, or unknown again
//	parked  ──> closed; unknown when the service has forgotten it; unsent when its task ended unbilled

// state is where a call is in its life.
type state uint8

const (
	unsent  state = iota // no request of it may have been billed
	sent                 // its first request is out
	unknown              // a request may have been billed, and has no answer
	resent               // another request is out, under the same idempotency key
	parked               // the service promised the answer for later
	closed               // it is answered, refused, or given up by the service
)

// call is one question that is not answered yet, on its way to an answer. It
// is used by one goroutine at a time.
type call struct {
	buyer    *Buyer
	entry    *entry
	question answers.Question
	state    state
	charge   charge
	request  *request // that it makes, alone or with others; nil before and after
	intent   answers.Call
	late     int                   // intents that came too late to be used, in a row
	notSent  error                 // why the request was sent without it; nil if it was not
	result   resolution.Result     // of the request
	failure  *resolution.CallError // of the result, if that is what its error is
	failures failures              // that it is sent again after
	limits   limits                // refusals for now
	apart    bool                  // it failed, and others of its batch were answered
	alone    bool                  // it shares no request any more
	again    bool                  // it is sent once more: a request or a task brought no answer
	placed   bool                  // it has one of the service's places for pages
	// resolution is the id under which its answer is promised, "" without one.
	resolution string
	deadline   time.Time     // until when a promised answer is waited for
	pollIn     time.Duration // when to ask for a promised page first
	newKey     bool          // its next request has a new idempotency key
	rekeyed    bool          // an earlier request had another one, or may have had
	first      time.Time     // when its idempotency key was first sent
	forgets    time.Time     // when the service forgets that, as it said to an earlier process
	freshKey   bool          // its last request had one
	chosen     bool          // the user wants it sent once more, however old its key is
}

// newCall takes up a question where the store has it.
func (b *Buyer) newCall(e *entry, f answers.Found, d Decision) *call {
	c := &call{buyer: b, entry: e, question: answers.Question{Scope: b.scope, Key: e.key}, deadline: f.Deadline, rekeyed: f.Rekeyed, first: f.FirstSent, forgets: forgotten(f)}
	c.charge = charge{account: b.account, price: b.remote.Price.MaxCost(c.question)}
	switch mine := f.Run == b.run; {
	case f.Open != "" && mine:
		c.charge.status, c.charge.cost = booked, c.charge.price
		b.reservedEarlier.take(c.question.Hash())
	case f.Open != "":
		c.charge.status = foreign
	}
	switch {
	case d == Await:
		c.state = parked
	case d == Resend:
		c.state = unknown
		c.chosen = b.remote.retries(f, b.began)
		c.newKey = b.remote.NewKey && c.chosen
		if f.Open != answers.Unknown || f.Sent.Before(b.began) { // this process has not counted it
			b.counters.Unknown(1)
		}
	}
	return c
}

// maybeBilled reports whether an earlier request of the call may have been
// billed.
func (c *call) maybeBilled() bool { return c.state == unknown || c.state == resent }

// maySend reports whether a request of the call may be sent: it is the first, or the
// service still knows the key of those before, or the user wants it.
func (c *call) maySend() bool { return !c.maybeBilled() || c.chosen || c.keyHolds() }

// keyHolds reports whether the service still knows the idempotency key.
func (c *call) keyHolds() bool {
	r := c.buyer.remote
	return !r.RetryBills && r.Keys.Holds(c.first, c.forgets, time.Now())
}

// keyTies reports whether the service knows all requests of the call by one idempotency key, so
// that what it says of one is so of all.
func (c *call) keyTies() bool { return !c.rekeyed && c.keyHolds() }

// errKeyTooOld says that a call may not be sent again, because the service may have
// forgotten its idempotency key.
var errKeyTooOld = errors.New("the idempotency key is too old")

// become changes the state, and keeps the count of unknown calls in step.
func (c *call) become(next state) {
	if c.state == unknown {
		c.buyer.counters.Unknown(-1)
	}
	if next == unknown {
		c.buyer.counters.Unknown(1)
	}
	c.state = next
}

// releaseSlot gives the place of the request in flight to the next one, with the last call
// that shares it. It may be called again.
func (c *call) releaseSlot() {
	if r := c.request; r != nil {
		c.request = nil
		r.release()
	}
}

// send makes one request, or takes part in that of a batch. Without an error the call is
// closed, and has the answer, or is parked. The error is the request's, or why none was made,
// or answers.ErrNoCall when a callback has brought the answer meanwhile.
//
// The request gives its place in flight back as soon as its end is ahead of the
// next intent in the store's log. So a kill leaves at most as many calls under way
// on disk as there are places, times the size of a batch, and one wait for the disk serves
// both changes. Unknown and parked calls stay open on disk too, in any number.
func (c *call) send() (Result, error) {
	b := c.buyer
	if c.charge.status == free && !b.codec.operation.IsKeyword() { // a booked charge has the price that was declared
		c.charge.price = max(c.charge.price, b.surcharge.most.Load())
	}
	if err := c.charge.hold(b.ctx); err != nil {
		return Result{}, err
	}
	size := b.batch
	if c.alone {
		size = 1
	}
	if err := b.batches.join(c, "", size); err != nil {
		c.charge.putBack()
		return Result{}, EndOf(b.ctx, err)
	}
	if err := c.prepare(); err != nil {
		c.request.sendWithout(c)
		c.charge.putBack()
		return Result{}, err
	}
	if err := c.request.sendWith(c); err != nil {
		_, stored := c.conclude(answers.Answer{}, notSent)
		if errors.Is(err, pace.ErrHeld) {
			err = nil // another request may leave later
		}
		if err := errors.Join(EndOf(b.ctx, err), stored); err != nil {
			return Result{}, err
		}
		if c.late > 0 { // the next intent may be too late as well: each is an object on S3
			if err := sleep(b.ctx, c.backoff(c.late, maxWait, 0), nil); err != nil {
				return Result{}, EndOf(b.ctx, err)
			}
		}
		return c.send()
	}
	switch r, err := c.result.Reply, c.result.Err; {
	case errors.Is(err, resolution.ErrAskAlone) && !c.alone:
		c.alone = true
		if _, err := c.conclude(answers.Answer{}, unbilled); err != nil {
			return Result{}, err
		}
		return c.send()
	case c.failure != nil:
		return c.fail(c.failure)
	case err != nil: // nothing is known, so it may have been billed
		_, stored := c.conclude(answers.Answer{}, billed)
		return Result{}, errors.Join(err, stored)
	case r.Pending:
		b.refusals.answer()
		c.resolution = r.ID
		if b.codec.poll != nil {
			c.pollIn = c.lookIn(0, r.Pace.RetryAfter)
		}
		_, err := c.conclude(answers.Answer{Resolution: r.ID, Request: r.RequestID}, promised)
		return Result{}, err
	default:
		return c.answered(r, b.run)
	}
}

// prepare puts the intent of a request on disk.
func (c *call) prepare() error {
	b := c.buyer
	if !c.maySend() { // after a long wait
		return errKeyTooOld
	}
	durable := context.WithoutCancel(b.ctx) // what may be billed is waited for
	intent, err := b.remote.Answers.Intent(durable, c.question, answers.Send{Run: b.run, At: time.Now(), Address: c.entry.sent, Again: c.maybeBilled(), NewKey: c.newKey, KeyWindow: b.remote.Keys.Said()})
	if err != nil {
		return err
	}
	c.freshKey = c.newKey
	c.intent, c.newKey, c.rekeyed, c.first, c.forgets = intent, false, intent.Rekeyed, intent.FirstSent, intent.Deadline
	return nil
}

// markSent reports whether the call may still be sent, and marks it sent. It may not if its intent is too old: the
// process slept, or the store was away.
func (c *call) markSent() bool {
	late := c.intent.LeaveBefore
	if !late.IsZero() && time.Now().After(late) {
		c.late++
		return false
	}
	if c.late = 0; !c.maySend() {
		return false
	}
	if c.maybeBilled() {
		c.become(resent)
	} else {
		c.become(sent)
	}
	return true
}

// answered concludes a call with a finished reply, which run pays for.
func (c *call) answered(r resolution.Reply, run string) (Result, error) {
	c.buyer.refusals.answer()
	a := c.buyer.codec.stored(c.question.Key, r)
	a.Run = run
	return c.close(a, answered, answerOf(a, r))
}

// fail concludes a request that failed. The error is the failure, unless that
// was the last word on the question.
func (c *call) fail(f *resolution.CallError) (Result, error) {
	c.buyer.outage.limit(c, f)
	if miss, err := c.buyer.refusals.isMiss404(c, f); err != nil {
		return Result{}, err
	} else if miss {
		return c.answered(miss404(f), c.buyer.run)
	}
	if f.Class == resolution.Invalid && !c.buyer.remote.Judged {
		c.buyer.refusals.answer()
	}
	if f.Class == resolution.Invalid && c.settles(f) {
		a := refusal(c.buyer.run, refusedReason(f), f, c.buyer.remote.Price.ofBadRow(f))
		given, err := c.close(a, refused, refusedAs(a))
		if err == nil && c.buyer.remote.Judged && c.buyer.refusals.areBad(c.question.Hash()) {
			err = c.buyer.stopFor(allBad(c.buyer.codec.operation, c.buyer.refusals.badRows))
		}
		return given, err
	}
	how := unbilled
	if f.Billed() {
		how = billed
	}
	if _, err := c.conclude(answers.Answer{Reason: string(f.Class), Status: f.Status, Request: f.RequestID, Body: f.PaidBody()}, how); err != nil {
		return Result{}, err
	}
	return Result{}, f
}

// close concludes a call. The answer is the one given, or the one that a
// callback stored first.
func (c *call) close(a answers.Answer, how ending, given Result) (Result, error) {
	earlier, err := c.conclude(a, how)
	switch {
	case err != nil:
		return Result{}, err
	case earlier != nil:
		return c.buyer.codec.answer(*earlier, nil)
	}
	return given, nil
}

// settles reports whether a refusal is the last word on the question. Where an earlier request
// may have been billed it is so from a provider whose rules say so; from a service that still honours
// its idempotency key, which would have sent that request's answer; and where the user wanted one
// more. A 422 may be about a key that was used with another body.
func (c *call) settles(f *resolution.CallError) bool {
	r := c.buyer.remote
	switch {
	case !c.maybeBilled(), r.Judged:
		return true
	case f.Status == http.StatusUnprocessableEntity && r.Keys != nil && !c.freshKey:
		return false
	}
	return c.keyTies() || c.chosen
}

// refusal is a failure as it is stored in the place of an answer, with its cost.
func refusal(run, reason string, f *resolution.CallError, cost int64) answers.Answer {
	return answers.Answer{
		Run: run, Outcome: answers.Refused, Reason: reason, Status: f.Status, Body: f.Body, Request: f.RequestID,
		Credits: &cost, Received: time.Now().UTC().Truncate(time.Millisecond),
	}
}

// refusedReason is the reason of a row that the service refused.
func refusedReason(f *resolution.CallError) string {
	if f.Code == "" {
		return outcome.ReasonRefused
	}
	return outcome.ReasonRefused + ":" + f.Code
}

// ending is how a request ended, or the wait for a promised answer.
type ending uint8

const (
	notSent   ending = iota // no request left after all
	unbilled                // it failed, and was surely not billed
	billed                  // it failed, and may have been billed
	promised                // the answer comes later
	answered                // the service answered
	refused                 // the service refuses the question
	delivered               // a callback has stored the answer
	abandoned               // the service gave the promised answer up: it was not billed
	overdue                 // the promised answer did not come: a later run may look again
)

// conclude ends a request, or the wait for a promised answer: it changes the
// store first, and then the budget, the counters and the state. a is what is
// known of the reply. earlier is the answer that holds in its place, because a
// callback stored it first. The error is the store's; it is answers.ErrNoCall
// when a callback closed a call that failed here.
func (c *call) conclude(a answers.Answer, how ending) (earlier *answers.Answer, err error) {
	b, ctx := c.buyer, context.WithoutCancel(c.buyer.ctx)
	defer c.releaseSlot() // where storing the end did not
	switch how {
	case notSent:
		err = b.remote.Answers.Fail(ctx, c.question, answers.Failure{Placed: c.releaseSlot})
		c.charge.putBack()
	case unbilled, billed:
		err = b.remote.Answers.Fail(ctx, c.question, answers.Failure{
			Reason: a.Reason, Status: a.Status, Request: a.Request, MayBeBilled: how == billed, Body: a.Body, Placed: c.releaseSlot,
		})
		c.chosen = c.chosen && how == unbilled
		if how == billed || c.maybeBilled() {
			c.charge.settle(c.charge.price)
			c.become(unknown)
		} else {
			c.charge.giveBack()
			c.become(unsent)
		}
	case promised:
		c.deadline = time.Now()
		if b.codec.poll != nil || b.remote.Deliveries != nil { // else a later run may listen
			c.deadline = c.deadline.Add(b.remote.patience())
		}
		err = b.remote.Answers.Park(ctx, c.question, answers.Parking{Resolution: a.Resolution, Request: a.Request, Deadline: c.deadline})
		if errors.Is(err, answers.ErrNoCall) {
			err = nil // the callback was faster: the wait finds its answer
		}
		if b.codec.poll == nil { // the price of a page stays held, since its result comes soon
			c.charge.settle(c.charge.price)
		}
		c.become(parked)
	case overdue:
		c.charge.settle(c.charge.price)
	case abandoned:
		c.charge.settle(0)
		c.become(closed)
	case answered, refused, delivered:
		if a.Credits != nil {
			b.learnCost(c.question, *a.Credits) // before the next request leaves, in the place of this one
		}
		if how != delivered {
			earlier, err = c.store(ctx, a)
		}
		if earlier != nil {
			a = *earlier
		}
		cost := c.charge.price
		if a.Credits != nil {
			cost = *a.Credits
		}
		c.charge.settle(cost)
		b.counters.Settled(cost)
		if how == refused {
			b.counters.Refused(1)
		} else if a.Outcome != answers.Refused {
			b.refusals.state()
		}
		c.become(closed)
	}
	return earlier, err
}

// store stores an answer, and gives the request's place in flight back as soon
// as the answer has its place in the log. Only the first answer to a question
// is stored: a service may post what it answers, too, and be faster that way.
func (c *call) store(ctx context.Context, a answers.Answer) (earlier *answers.Answer, err error) {
	b := c.buyer
	if err := b.remote.Answers.Place(ctx, c.question, a, c.releaseSlot); !errors.Is(err, answers.ErrNoCall) {
		return nil, err
	}
	f, err := b.lookUp(c.question.Key)
	if err != nil {
		return nil, err
	}
	if !f.Stored || !f.Fresh { // it had posted that there is no answer
		return nil, b.remote.Answers.Put(ctx, c.question, a)
	}
	return &f.Answer, nil
}
