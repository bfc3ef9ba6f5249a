package pace

import (
	"errors"
	"time"

	"github.com/leadetl/leadetl/internal/retry"
)

// ErrDead says that the service has not answered for Options.GiveUp.
var ErrDead = errors.New("the service has been unreachable or unavailable for too long")

// life knows whether the service is dead. A dead service gets one probe at a
// time.
type life struct {
	failures int       // in a row
	since    time.Time // the first of them
	dead     bool
	probe    uint64    // the permit of the probe, 0 if none is in flight
	probes   int       // failed probes, plus the failure that made the service dead
	next     time.Time // the earliest moment of the next probe
	revived  uint64    // calls up to this one were sent to the dead service
}

// failed counts a failure and reports whether it made the service dead.
func (l *life) failed(now time.Time, call place, o *Options) (died bool) {
	if l.dead {
		if call.permit == l.probe {
			l.probe = 0
			l.wait(now, o)
		}
		return false
	}
	if call.left <= l.revived {
		return false // sent while the service was dead
	}
	if l.failures == 0 {
		l.since = now
	}
	if l.failures++; l.failures < o.DeadAfter {
		return false
	}
	l.dead, l.probes = true, 0
	l.wait(now, o)
	return true
}

// wait sets the moment of the next probe.
func (l *life) wait(now time.Time, o *Options) {
	l.probes++
	l.next = now.Add(retry.Backoff{Initial: o.Probe, Max: o.MaxProbe}.Jittered(l.probes, o.Random()))
}

// lives notes a response, even a refusal, and reports whether the service was
// dead until now.
func (l *life) lives(left uint64) (revived bool) {
	revived = l.dead
	if revived {
		l.revived = left
	}
	l.failures, l.dead, l.probe = 0, false, 0
	return revived
}

// dropped notes that we cancelled a call: if it was the probe, the next call may
// take its place.
func (l *life) dropped(permit uint64) {
	if permit == l.probe {
		l.probe = 0
	}
}

// end is when a dead service is given up; the zero time means never.
func (l *life) end(o *Options) time.Time {
	if !l.dead || o.GiveUp == 0 {
		return time.Time{}
	}
	return l.since.Add(o.GiveUp)
}
