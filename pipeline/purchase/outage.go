package purchase

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
)

// outage knows why a service gives no answers, and tells the log when it goes
// down and when it is back. It is safe for many goroutines.
type outage struct {
	mu   sync.Mutex
	last *resolution.CallError // the last call that failed for the service's sake
	down bool                  // as the log was told
}

// done gives a permit back and keeps what its call says of the service.
// failure is nil for an answer.
func (a *Buyer) done(permit pace.Permit, o pace.Outcome, failure *resolution.CallError) {
	out := &a.outage
	failed := o.Kind == pace.Unavailable || o.Kind == pace.Unreachable
	if failed {
		out.mu.Lock()
		out.last = failure // before anybody is told to give up
		out.mu.Unlock()
	}
	permit.Done(o)
	out.mu.Lock()
	defer out.mu.Unlock()
	if !failed && !out.down {
		return
	}
	s := a.Pace.Snapshot()
	switch dead := !s.DeadSince.IsZero(); {
	case dead && !out.down:
		out.down = true
		a.log.Warn(fmt.Sprintf("the service is down: %s; trying one call at a time until it is back%s", out.last.Reason(), orFor(s)), a.asked()...)
	case !dead && out.down:
		out.down = false
		a.log.Info("the service is back", a.asked()...)
	}
}

// orFor is how long a dead service is tried at most.
func orFor(s pace.Snapshot) string {
	if s.GivesUp.IsZero() {
		return ""
	}
	return ", or for " + plainly(s.GivesUp.Sub(s.DeadSince))
}

// plainly writes a time without units that are zero: 15m.
func plainly(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// asked says in a log who is asked.
func (a *Buyer) asked() []any {
	attrs := []any{slog.String("service", a.Name)}
	if a.Through != "" {
		attrs = append(attrs, slog.String("by", a.Through))
	}
	return attrs
}

// explained is an error that ends the run, with the reason of an outage.
func (a *Buyer) explained(why error) error {
	if !errors.Is(why, ErrUnreachable) {
		return why
	}
	a.outage.mu.Lock()
	defer a.outage.mu.Unlock()
	return &outageError{service: a.Name, through: a.Through, last: a.outage.last}
}

// outageError is ErrUnreachable with who was asked and what came of it.
type outageError struct {
	service, through string
	last             *resolution.CallError
}

func (e *outageError) Error() string {
	who := e.service
	if e.through != "" {
		who += " by " + e.through
	}
	text := fmt.Sprintf("%v: %s gave no answer for too long", ErrUnreachable, who)
	if e.last != nil {
		text += ", at last: " + e.last.Reason()
	}
	return text
}

func (e *outageError) Unwrap() []error { return []error{ErrUnreachable, pace.ErrDead} }
