package purchase

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
)

// outage remembers why a service does not answer, and logs when it goes down and comes back. It
// is safe from many goroutines.
type outage struct {
	remote  *Remote
	log     *slog.Logger
	probing atomic.Bool // a call probes a service that is down

	mu       sync.Mutex
	last     *resolution.CallError // the last call that failed or was refused because of the service
	down     bool                  // as last logged
	answered bool                  // an answer of this process is there
	failing  answers.Hash          // the only question that failed since the last answer
	limited  map[answers.Hash]bool // questions refused for now since the last answer, but for many
	answers  int64                 // of this process
	out      int                   // requests under way
	coming   int                   // calls that are about to be sent, or are under way
	since    time.Time             // the first failure since the last answer
	long     *longWait             // that the service asks for; nil without one
	news     chan struct{}         // closed at the next answer, for calls that wait for it
}

// sends notes that a request is under way.
func (o *outage) sends(r *request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.out++
	r.sent = true
}

// done gives the permit of a request back and remembers its failure. After the first answer,
// failures of one question alone say nothing about the service, but for the one that may have
// been billed first.
func (o *outage) done(r *request) {
	came, failure, of, shared := r.outcome, r.failure, r.calls[0].question.Hash(), len(r.calls) > 1
	failed, giveUp := came.Kind == pace.Unavailable || came.Kind == pace.Unreachable, o.remote.Pace.GiveUp()
	o.mu.Lock()
	if r.sent {
		o.out--
	}
	switch {
	case failed:
		o.last = failure // before the pace gives up
		if o.failing == (answers.Hash{}) {
			o.failing = of
		}
		if o.answered && o.failing == of && !shared && failure.Sent && !came.Lost {
			came.Kind, failed = pace.NotCounted, false
		}
		o.waits(r, &came, giveUp)
	case came.Kind == pace.Limited:
		o.last = failure // before the pace gives up
		o.refuses(r)
		if o.isOwn(r, giveUp) {
			came.Kind = pace.NotCounted
		} else {
			o.waits(r, &came, giveUp)
		}
	case came.Kind == pace.Answered:
		o.hears()
	}
	o.mu.Unlock()
	r.permit.Done(came)
	o.mu.Lock()
	closes := o.closes()
	o.logLife(failed, o.remote.Pace.Snapshot())
	o.mu.Unlock()
	o.close(r.buyer, closes)
}

// logLife logs when the service goes down and comes back. The caller holds the lock.
func (o *outage) logLife(failed bool, s pace.Snapshot) {
	if !failed && !o.down {
		return
	}
	switch dead := !s.DeadSince.IsZero(); {
	case dead && !o.down:
		o.down = true
		o.log.Warn(fmt.Sprintf("the service is down: %s; trying one call at a time until it is back%s", o.last.Reason(), orFor(s)), o.service()...)
	case !dead && o.down:
		o.down = false
		o.log.Info("the service is back", o.service()...)
	}
}

// isDown reports whether the service is down.
func (o *outage) isDown() bool { return !o.remote.Pace.Snapshot().DeadSince.IsZero() }

// orFor describes how long a dead service is tried at most.
func orFor(s pace.Snapshot) string {
	if s.GivesUp.IsZero() {
		return ""
	}
	return fmt.Sprintf(", or for the %s of give_up_after", figures.Plain(s.GivesUp.Sub(s.DeadSince)))
}

// service returns the name of the service for the log.
func (o *outage) service() []any {
	attrs := []any{slog.String("service", o.remote.Name)}
	if o.remote.Through != "" {
		attrs = append(attrs, slog.String("by", o.remote.Through))
	}
	return attrs
}

// explain adds the last failure of an unreachable service to the error that ends the run.
func (o *outage) explain(why error) error {
	if _, told := errors.AsType[*waitError](why); told || !errors.Is(why, ErrUnreachable) {
		return why
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return &outageError{service: o.remote.Name, through: o.remote.Through, last: o.last}
}

// outageError is ErrUnreachable with the service and its last failure.
type outageError struct {
	service, through string
	last             *resolution.CallError
}

func (e *outageError) Error() string {
	who := e.service
	if e.through != "" {
		who += " by " + e.through
	}
	did := "gave no answer"
	if e.last != nil && e.last.Status != 0 {
		did = "did not answer successfully"
	}
	text := fmt.Sprintf("%v: %s %s for too long", ErrUnreachable, who, did)
	if e.last != nil {
		text += ", at last: " + e.last.Reason()
	}
	return text
}

func (e *outageError) Unwrap() []error { return []error{ErrUnreachable, pace.ErrDead} }

// mayProbe reports whether a call passes over a service that does not answer now, for one that
// passes over. While the service is down, one call at a time probes it.
func (o *outage) mayProbe(c *call) (probes, passes bool) {
	if !o.remote.PassOver || c.maybeBilled() {
		return false, false
	}
	switch o.remote.Pace.Snapshot().Reason {
	case pace.RetryAfter:
		return false, true
	case pace.Dead:
		probes = o.probing.CompareAndSwap(false, true)
		return probes, !probes
	}
	return false, false
}
