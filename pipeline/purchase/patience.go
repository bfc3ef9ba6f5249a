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
	all   bool // more than a few questions were told, or two whose calls may have been billed
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

// fewQuestions is how many questions may be the only ones that are refused, in place of the service, while
// no other is asked: the last ones of a list.
const fewQuestions = 4

// refuses notes that the service refuses the calls of a request for now. The caller holds the lock.
func (o *outage) refuses(r *request) {
	if o.limited == nil {
		o.limited = map[answers.Hash]bool{}
	}
	for _, c := range r.calls {
		if len(o.limited) <= fewQuestions {
			o.limited[c.question.Hash()] = true
		}
	}
}

// isAlone reports whether the service refuses a call for now, and answers others: since its first
// refusal, or before if few others are refused since. The caller holds the lock.
func (o *outage) isAlone(c *call) bool {
	return c.limits.times > 0 && o.answered && (o.answers > c.limits.answers || len(o.limited) <= fewQuestions)
}

// ownRefusals is how many refusals in a row are surely those of one question, if others are answered.
const ownRefusals = 5

// isOwn reports whether a refusal says nothing of the service, but of the question. The caller holds
// the lock.
func (o *outage) isOwn(r *request, giveUp time.Duration) bool {
	c := r.calls[0]
	return len(r.calls) == 1 && o.isAlone(c) && (c.limits.times >= ownRefusals || giveUp > 0 && time.Since(c.limits.since) >= giveUp)
}

// waits notes a failure that asks for a wait. One that is longer than what is left of the patience
// stops no other call: whether the next ones are answered decides whose it is. The caller holds the lock.
func (o *outage) waits(r *request, came *pace.Outcome, giveUp time.Duration) {
	now := time.Now()
	if o.since.IsZero() {
		o.since = now
	}
	ask := came.Asks()
	if giveUp == 0 || ask == 0 || ask <= giveUp-now.Sub(o.since) {
		return
	}
	if o.long == nil {
		o.long = &longWait{}
	}
	few := fewQuestions
	if came.Kind != pace.Limited { // each may have been billed
		few = 1
	}
	o.refuses(r)
	o.long.all = o.long.all || len(o.limited) > few
	if until := now.Add(ask); until.After(o.long.until) {
		o.long.until = until
	}
	if came.RetryAfter, came.LookAhead = 0, (pace.LookAhead{}); came.Kind == pace.Limited {
		came.Kind = pace.NotCounted
	}
}

// hears notes that the service has answered a call. The caller holds the lock.
func (o *outage) hears() {
	o.answered, o.failing, o.since, o.long = true, answers.Hash{}, time.Time{}, nil
	clear(o.limited)
	o.answers++
	if o.news != nil {
		close(o.news)
		o.news = nil
	}
}

// expect notes that more calls, or fewer, are about to be sent. One that waits is not.
func (o *outage) expect(b *Buyer, more int) {
	o.mu.Lock()
	o.coming += more
	closes := o.closes()
	o.mu.Unlock()
	o.close(b, closes)
}

// closes returns why no call leaves any more in this run, nil if they do: the service asks for a longer
// wait than the run has patience, and has answered none of the calls that were out, nor the next ones.
// The caller holds the lock.
func (o *outage) closes() error {
	if o.long == nil || o.out > 0 || !o.long.all && o.coming > 0 {
		return nil
	}
	return &waitError{service: o.remote.Name, until: o.long.until, giveUp: o.remote.Pace.GiveUp()}
}

// close stops the calls of a run, if there is a reason. Where the next resolver is asked, the run says
// no more of it.
func (o *outage) close(b *Buyer, why error) {
	if why == nil {
		return
	}
	if o.remote.PassOver && b.looks.Err() == nil {
		o.log.Warn(why.Error(), o.service()...)
	}
	_ = b.stopFor(why)
}

// waitError is ErrUnreachable with the time until which the service wants no call.
type waitError struct {
	service string
	until   time.Time
	giveUp  time.Duration
}

func (e *waitError) Error() string {
	return fmt.Sprintf("%v: %s wants no call before %s, which is longer than give_up_after %s; run it after that time", ErrUnreachable, e.service, e.until.UTC().Format(time.RFC3339), figures.Plain(e.giveUp))
}

func (e *waitError) Unwrap() error { return ErrUnreachable }

// outlast reports whether a call that the service refuses for now is given up: it was refused for as
// long as the run has patience, or is to wait for longer, and others were answered meanwhile. It
// waits until that is known. left is what is left of the patience. A run that waits for ever has as much
// for one question as any other, and asks it as often as one that fails.
func (o *outage) outlast(c *call, f *resolution.CallError) (gone bool, left time.Duration, err error) {
	giveUp := o.remote.Pace.GiveUp()
	if !isForNow(f) {
		return false, 0, nil
	}
	alone, others, news := o.meanwhile(c)
	if giveUp == 0 {
		return alone && c.limits.times >= c.buyer.remote.attempts() && time.Since(c.limits.since) >= pace.LongestPause, 0, nil
	}
	left = giveUp - time.Since(c.limits.since)
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
