package purchase

import (
	"fmt"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
)

// This file says how long a service that refuses calls is waited for. Where others are answered
// meanwhile, a refusal is that of its key alone. Where none is, it is the service's.

// limits are the refusals of a call for now, in a row.
type limits struct {
	times   int
	since   time.Time // the first
	answers int64     // of the service before it
}

// longWait is a wait that the service asks for, longer than the run has patience. No call was answered
// since.
type longWait struct {
	until time.Time
	first answers.Hash // the question that was told first
	all   bool         // another one was, too
}

// isForNow reports whether a failure asks for another try later.
func isForNow(f *resolution.CallError) bool {
	return f.Class == resolution.Limited || f.Class == resolution.Unavailable && f.Pace.RetryAfter > 0
}

// limit notes a failure of a call, before the service is told of it.
func (o *outage) limit(c *call, f *resolution.CallError) {
	if !isForNow(f) {
		c.limits = limits{}
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if c.limits.times == 0 {
		c.limits = limits{since: time.Now(), answers: o.answers}
	}
	c.limits.times++
}

// isAlone reports whether the service refuses a call for now, and answers others: since its first
// refusal, or before if it is the only one that is refused since. The caller holds the lock.
func (o *outage) isAlone(c *call) bool {
	return c.limits.times > 0 && o.answered && (o.answers > c.limits.answers || o.limited == c.question.Hash() && o.alone >= c.limits.times)
}

// ownRefusals is how many refusals in a row are surely those of one question, if others are answered.
const ownRefusals = 5

// isOwn reports whether a refusal says nothing of the service, but of the question. The caller holds
// the lock.
func (o *outage) isOwn(r *request, giveUp time.Duration) bool {
	c := r.calls[0]
	return len(r.calls) == 1 && giveUp > 0 && o.isAlone(c) && (c.limits.times >= ownRefusals || time.Since(c.limits.since) >= giveUp)
}

// waits notes a failure that asks for a wait. One that is longer than what is left of the patience
// stops no other call: whether the next one is answered decides whose it is. The caller holds the lock.
func (o *outage) waits(r *request, came *pace.Outcome, giveUp time.Duration) {
	now, of := time.Now(), r.calls[0].question.Hash()
	if o.since.IsZero() {
		o.since = now
	}
	ask := came.Asks()
	if giveUp == 0 || ask == 0 || ask <= giveUp-now.Sub(o.since) {
		return
	}
	if o.long == nil {
		o.long = &longWait{first: of}
	}
	o.long.all = o.long.all || o.long.first != of
	if until := now.Add(ask); until.After(o.long.until) {
		o.long.until = until
	}
	came.RetryAfter, came.LookAhead = 0, pace.LookAhead{}
}

// hears notes that the service has answered a call. The caller holds the lock.
func (o *outage) hears() {
	o.answered, o.failing, o.since, o.long = true, answers.Hash{}, time.Time{}, nil
	o.answers++
	if o.news != nil {
		close(o.news)
		o.news = nil
	}
}

// closes returns why no call leaves any more in this run, nil if they do: the service asks for a longer
// wait than the run has patience, and has answered none of the calls that were out, nor the next one.
// The caller holds the lock.
func (o *outage) closes(s pace.Snapshot) error {
	if o.long == nil || o.out > 0 || !o.long.all && s.Waiting+s.InFlight > 0 {
		return nil
	}
	return &waitError{service: o.remote.Name, until: o.long.until, giveUp: o.remote.Pace.GiveUp()}
}

// waitError is ErrUnreachable with the time until which the service wants no call.
type waitError struct {
	service string
	until   time.Time
	giveUp  time.Duration
}

func (e *waitError) Error() string {
	return fmt.Sprintf("%v: %s wants no call before %s, which is longer than --give-up-after %s; run it after that time", ErrUnreachable, e.service, e.until.UTC().Format(time.RFC3339), figures.Plain(e.giveUp))
}

func (e *waitError) Unwrap() error { return ErrUnreachable }

// outlast reports whether a call that the service refuses for now is given up: it was refused for as
// long as the run has patience, or is to wait for longer, and others were answered meanwhile. It
// waits until that is known. left is what is left of the patience.
func (c *call) outlast(f *resolution.CallError) (gone bool, left time.Duration, err error) {
	o, giveUp := &c.buyer.outage, c.buyer.remote.Pace.GiveUp()
	if giveUp == 0 || !isForNow(f) {
		return false, 0, nil
	}
	left = giveUp - time.Since(c.limits.since)
	alone, others, news := o.meanwhile(c)
	switch {
	case left <= 0 && alone, f.Pace.RetryAfter > left && others:
		return true, 0, nil
	case f.Pace.RetryAfter > left && left > 0:
		if err := sleep(c.buyer.ctx, left, news); err != nil {
			return false, 0, err
		}
		_, others, _ = o.meanwhile(c)
		return others, 0, nil
	}
	c.alone = c.alone || others && left < giveUp/2 // it may be another one of its batch that is refused
	return false, max(left, initialWait), nil
}

// meanwhile reports whether the service has answered others than a call that it refuses, and whether
// that was since. news is closed at the next answer.
func (o *outage) meanwhile(c *call) (alone, since bool, news <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.news == nil {
		o.news = make(chan struct{})
	}
	return o.isAlone(c), o.answers > c.limits.answers, o.news
}
