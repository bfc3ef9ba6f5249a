package purchase

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
)

// maxPollWait is the longest wait between two looks at a page that a service is
// making, unless the service asks for more.
const maxPollWait = 5 * time.Second

// settlingIn is how long after its creation a resolution may not be found yet: services
// that keep what they make in several places know it in one before the others.
const settlingIn = time.Minute

// isNotThereYet reports whether a look found nothing because it came too early.
func isNotThereYet(f *resolution.CallError, created time.Time) bool {
	return !f.Gone && f.Status == http.StatusNotFound && !f.General && time.Since(created) < settlingIn
}

// isGone reports whether a look says that the service has the answer no more.
func isGone(f *resolution.CallError) bool {
	return f.Gone || f.Status == http.StatusNotFound || f.Status == http.StatusGone
}

// promise is a parked call, whose answer the service has promised for later.
type promise struct {
	*call
	news <-chan struct{} // a callback has brought something; nil if none is listened for
}

// resume waits for an answer that was promised to an earlier process.
func (p promise) resume() (Result, error) {
	c := p.call
	if now := time.Now(); c.buyer.codec.poll != nil || c.deadline.Before(now) { // it is waited for however old it is
		c.deadline = now.Add(c.buyer.remote.patience())
	}
	if c.buyer.codec.poll != nil {
		if c.buyer.places != nil {
			c.buyer.places.occupy()
			c.placed = true
			defer c.buyer.places.leave(c, false)
		}
		c.charge.reopen()
	}
	return p.await()
}

// patience is how long an answer that comes later is waited for.
func (r *Remote) patience() time.Duration { return cmp.Or(r.Later.Wait, r.Patience) }

// lookIn is how long to wait for the next look at what is promised, after some looks, of which
// the last was told to wait.
func (c *call) lookIn(looks int, asked time.Duration) time.Duration {
	switch every := c.buyer.remote.Later.Every; {
	case every > 0: // all calls of a task wait alike
		return max(every, min(asked, pace.LongestPause))
	case looks == 0:
		return max(initialWait, min(asked, maxWait))
	}
	return c.backoff(looks, maxPollWait, asked)
}

// await waits for the answer of a parked call, until its deadline.
func (p promise) await() (Result, error) {
	c, b := p.call, p.buyer
	b.counters.Parked(1)
	defer b.counters.Parked(-1)
	if d := b.remote.Deliveries; d != nil {
		listen, forget := d.Listen(c.question.Hash())
		defer forget()
		p.news = listen
	}
	a, err := p.watch()
	if c.state == parked {
		_, _ = c.conclude(answers.Answer{}, overdue) // changes nothing on disk
	}
	return a, err
}

// watch looks for the answer until it is there: in the store, where a callback
// brings it, and at the service if it can be asked for. Asking costs nothing.
func (p promise) watch() (Result, error) {
	c, b := p.call, p.buyer
	wait := c.pollIn // a look too early is one to be told to come back much later
	for looks, failures, denials := 1, 0, 0; ; looks++ {
		if wait > 0 {
			if err := sleep(b.looks, wait, p.news); err != nil {
				return Result{}, err
			}
		}
		open, err := b.remote.Answers.Find(context.WithoutCancel(b.ctx), c.question.Hash())
		switch {
		case errors.Is(err, answers.ErrNoCall):
			return p.takeDelivered()
		case err != nil:
			return Result{}, b.stopFor(err)
		}
		c.resolution = open.Resolution
		if b.codec.poll == nil || open.Resolution == "" { // a callback alone brings it
			if wait = time.Until(c.deadline); wait <= 0 || b.remote.Deliveries == nil {
				return failed(b.codec.late), nil
			}
			continue
		}
		r, err := p.poll(c.resolution)
		var failure *resolution.CallError
		switch {
		case err == nil && r.Pending:
			failures = 0
		case err == nil:
			if b.places != nil { // that of a record is the request which asked for it, with the key in it
				r.ID = cmp.Or(r.ID, open.Resolution)
			}
			a, err := c.answered(r, open.Run)
			return p.orStop(a, err)
		case errors.As(err, &failure) && isNotThereYet(failure, open.Sent):
			failures = 0
		case failure != nil && b.remote.Judged && failure.Over:
			a, err := p.endTask(failure, open)
			return p.orStop(a, err)
		case failure != nil && b.remote.Judged && isGone(failure):
			a, err := p.endPoll(failure, open)
			return p.orStop(a, err)
		case errors.As(err, &failure) && failure.Class == resolution.Denied && !failure.General && denials+1 < maxDenials401:
			denials++ // the key was read again
		case stopOf(err) != nil || failure == nil:
			return Result{}, b.stopFor(err)
		case failure.Over || failure.Class == resolution.Invalid:
			a, err := p.endPoll(failure, open)
			return p.orStop(a, err)
		case failure.Sent && failure.Class != resolution.Limited && !b.outage.isDown():
			failures++
		}
		switch {
		case failures >= b.remote.attempts() && failure.Swapped: // somebody else's answer is all that comes
			a, err := p.endPoll(failure, open)
			return p.orStop(a, err)
		case failures >= b.remote.attempts():
			return p.orStop(failed(outcome.ReasonUnavailable), p.keep(failure))
		case !time.Now().Before(c.deadline) && !b.outage.isDown():
			return failed(b.codec.late), nil
		}
		asked := r.Pace.RetryAfter
		if failure != nil {
			b.counters.Retried(string(failure.Class))
			asked = failure.Pace.RetryAfter
		}
		wait = c.lookIn(looks, asked)
	}
}

// keep keeps the body of a result that cannot be read. The call stays parked.
func (p promise) keep(f *resolution.CallError) error {
	body := f.PaidBody()
	if body == nil {
		return nil
	}
	return p.buyer.remote.Answers.Keep(context.WithoutCancel(p.buyer.ctx), p.question, body)
}

// endPoll concludes a call whose page is not made any more. Either the service
// could not make it, and did not bill it, or it has forgotten it, and may have. An earlier
// request of the call may have been billed too, unless one idempotency key ties them.
func (p promise) endPoll(f *resolution.CallError, open answers.OpenCall) (Result, error) {
	c := p.call
	if f.Over && (!open.MaybeBilled || c.keyTies()) { // the next run asks again
		if d := c.buyer.remote.Deliveries; d != nil {
			if err := sleep(c.buyer.looks, secondThought, p.news); err != nil {
				return Result{}, err
			}
			d.fail(open)
		}
		a := refusal(open.Run, outcome.ReasonUnavailable, f, 0)
		a.Resolution = open.Resolution
		return c.close(a, answered, refusedAs(a))
	}
	if c.buyer.remote.Judged && f.Class == resolution.Invalid && !isGone(f) {
		a := refusal(open.Run, refusedReason(f), f, c.buyer.remote.Price.ofBadRow(f))
		return c.close(a, refused, refusedAs(a))
	}
	a := answers.Answer{Reason: string(f.Class), Status: f.Status, Request: f.RequestID}
	return c.close(a, billed, failed(outcome.ReasonUnknownCall))
}

// endTask concludes a call whose task is over without its answer, and was not billed. It is asked
// again, alone if its task could not be done with others, unless there are no credits.
func (p promise) endTask(f *resolution.CallError, open answers.OpenCall) (Result, error) {
	c, b, end := p.call, p.buyer, answers.Answer{Reason: string(f.Class), Status: f.Status, Request: f.RequestID}
	if open.MaybeBilled { // an earlier request of it
		return c.close(end, billed, failed(outcome.ReasonUnknownCall))
	}
	if _, err := c.conclude(end, unbilled); err != nil {
		return Result{}, err
	}
	switch {
	case stopOf(f) != nil:
		return Result{}, b.stopFor(f)
	case errors.Is(f, resolution.ErrAskAlone):
		c.alone = true
	case b.remote.PassOver:
		return passedOver, nil
	case b.unbilled.add(c.question.Hash(), 1) >= maxUnbilled:
		return failed(outcome.ReasonUnavailable), nil
	}
	b.counters.Retried(string(f.Class))
	c.again = true
	return Result{}, nil
}

// afterWait finishes a call that has waited for its answer, or sends it again.
func (c *call) afterWait(a Result, err error) {
	if !c.again || err != nil {
		c.finish(a, err)
		return
	}
	c.again, c.resolution = false, ""
	c.buyer.workers.start(c.buyer.ctx, []*call{c})
}

// orStop ends the run for an error of the store. ErrNoCall does not count: a callback
// has closed the call.
func (p promise) orStop(a Result, err error) (Result, error) {
	switch {
	case errors.Is(err, answers.ErrNoCall):
		return p.takeDelivered()
	case err != nil:
		return Result{}, p.buyer.stopFor(err)
	}
	return a, nil
}

// secondThought is how long a call waits for the answer after it was told that there is
// none: services that try again say first that it failed, and then that it is completed.
const secondThought = 2 * time.Second

// takeDelivered takes the answer that a callback has brought. If it has brought a failure,
// the answer may still come, or be there to be asked for by its id.
func (p promise) takeDelivered() (Result, error) {
	c, b := p.call, p.buyer
	f, err := b.lookUp(c.question.Key)
	if err == nil && (!f.Stored || !f.Fresh) && b.remote.Deliveries != nil {
		if b.codec.poll != nil && c.resolution != "" {
			if r, err := p.poll(c.resolution); err == nil && !r.Pending {
				r.ID = cmp.Or(r.ID, c.resolution)
				a, err := c.answered(r, b.run)
				if err != nil {
					return Result{}, b.stopFor(err)
				}
				return a, nil
			}
		}
		if err := sleep(b.looks, secondThought, p.news); err != nil {
			return Result{}, err
		}
		f, err = b.lookUp(c.question.Key)
	}
	if err != nil {
		return Result{}, b.stopFor(err)
	}
	if !f.Stored || !f.Fresh {
		_, err := c.conclude(answers.Answer{}, abandoned)
		return failed(outcome.ReasonUnavailable), err
	}
	if _, err := c.conclude(f.Answer, delivered); err != nil {
		return Result{}, err
	}
	return c.buyer.codec.answer(f.Answer, nil)
}

// poll asks for a promised answer once, with the other calls of its task.
func (p promise) poll(id string) (resolution.Reply, error) {
	c, b := p.call, p.buyer
	task, size := id, 1
	if s, shared := b.remote.Service.(Poller); shared && b.places == nil {
		task, size = s.Task(id), math.MaxInt
		if err := sleep(b.looks, b.batches.untilLook(task, b.remote.Later.Every), nil); err != nil {
			return resolution.Reply{}, err
		}
	}
	if err := b.batches.join(c, task, size); err != nil {
		return resolution.Reply{}, EndOf(b.looks, err)
	}
	err := c.request.sendWith(c)
	c.releaseSlot()
	switch {
	case errors.Is(err, pace.ErrHeld):
		return p.poll(id)
	case err != nil:
		return resolution.Reply{}, EndOf(b.looks, err)
	}
	return c.result.Reply, c.result.Err
}
