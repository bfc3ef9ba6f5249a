package pace

import (
	"errors"
	"time"

	"github.com/leadetl/leadetl/internal/retry"
)

// ErrDead says that the service has given no answer for Options.GiveUp.
var ErrDead = errors.New("the service has been unreachable or unavailable for too long")

// life tells a living service from a dead one, to which one probe at a time
// is sent.
type life struct {
	failures int       // in a row
	since    time.Time // the first of them
	dead     bool
	probe    uint64    // the call that probes, 0 when none is in flight
	probes   int       // that failed, and the failure that made it dead
	next     time.Time // the earliest moment of the next probe
	revived  uint64    // calls up to this one were sent to the dead service
}

// failed counts a failure. died says that this one made the service dead.
func (l *life) failed(now time.Time, call uint64, o *Options) (died bool) {
	if l.dead {
		if call == l.probe {
			l.probe = 0
			l.wait(now, o)
		}
		return false
	}
	if call <= l.revived {
		return false // of before: no news
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

// lives hears of an answer, be it a refusal. revived says that the service
// was dead until now.
func (l *life) lives(issued uint64) (revived bool) {
	revived = l.dead
	if revived {
		l.revived = issued
	}
	l.failures, l.dead, l.probe = 0, false, 0
	return revived
}

// dropped hears that a call came to nothing by our own doing: if it was the
// probe, the next may take its place.
func (l *life) dropped(call uint64) {
	if call == l.probe {
		l.probe = 0
	}
}

// end is when patience with a dead service ends; the zero time for never.
func (l *life) end(o *Options) time.Time {
	if !l.dead || o.GiveUp == 0 {
		return time.Time{}
	}
	return l.since.Add(o.GiveUp)
}
