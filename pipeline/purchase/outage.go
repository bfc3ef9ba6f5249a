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
// down and when it is back. It is safe from many goroutines.
type outage struct {
	remote *Remote
	log    *slog.Logger

	mu   sync.Mutex
	last *resolution.CallError // the last call that failed because of the service
	down bool                  // as the log was told
}

// done gives a permit back and keeps what its call says of the service.
// failure is nil for an answer.
func (o *outage) done(permit pace.Permit, came pace.Outcome, failure *resolution.CallError) {
	failed := came.Kind == pace.Unavailable || came.Kind == pace.Unreachable
	if failed {
		o.mu.Lock()
		o.last = failure // before anybody is told to give up
		o.mu.Unlock()
	}
	permit.Done(came)
	o.mu.Lock()
	defer o.mu.Unlock()
	if !failed && !o.down {
		return
	}
	s := o.remote.Pace.Snapshot()
	switch dead := !s.DeadSince.IsZero(); {
	case dead && !o.down:
		o.down = true
		o.log.Warn(fmt.Sprintf("the service is down: %s; trying one call at a time until it is back%s", o.last.Reason(), orFor(s)), o.service()...)
	case !dead && o.down:
		o.down = false
		o.log.Info("the service is back", o.service()...)
	}
}

// isDown reports whether the service gives no answers at all.
func (o *outage) isDown() bool { return !o.remote.Pace.Snapshot().DeadSince.IsZero() }

// orFor says how long a dead service is tried at most.
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

// service names the service in the log.
func (o *outage) service() []any {
	attrs := []any{slog.String("service", o.remote.Name)}
	if o.remote.Through != "" {
		attrs = append(attrs, slog.String("by", o.remote.Through))
	}
	return attrs
}

// explain adds to an error that ends the run how the service failed last, if it
// is out of reach.
func (o *outage) explain(why error) error {
	if !errors.Is(why, ErrUnreachable) {
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
	text := fmt.Sprintf("%v: %s gave no answer for too long", ErrUnreachable, who)
	if e.last != nil {
		text += ", at last: " + e.last.Reason()
	}
	return text
}

func (e *outageError) Unwrap() []error { return []error{ErrUnreachable, pace.ErrDead} }
