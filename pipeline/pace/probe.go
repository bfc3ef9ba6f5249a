package pace

import (
	"errors"
	"time"

	"github.com/leadetl/leadetl/internal/retry"
)

// ErrDead says that the service has not answered for Options.GiveUp, or has refused all
// calls for as long beyond the wait that it asked for first.
var ErrDead = errors.New("the service has been unreachable or unavailable for too long")

const (
	// late is a time after which only an application that was called fails a call, or a
	// router that it does not answer. So many lost calls in a row that took longer make
	// the service dead.
	late       = time.Second
	lateDeaths = 3
	// lostDeaths is how many lost calls in a row do at least, however long they took.
	lostDeaths = 4
)

// life knows whether the service is dead. A dead service gets one probe at a
// time.
type life struct {
	failures int       // in a row
	lost     int       // those of them that may have been billed
	late     int       // and took long
	since    time.Time // the first of them
	refusing time.Time // when it was to answer again, since no call was answered
	refuses  bool      // it has not, for Options.GiveUp
	dead     bool
	probe    uint64    // the permit of the probe, 0 if none is in flight
	probes   int       // failed probes, plus the failure that made the service dead
	next     time.Time // the earliest moment of the next probe
	revived  uint64    // calls up to this one were sent to the dead service
}

// failed counts a failure and reports whether it made the service dead.
func (l *life) failed(now time.Time, call place, came Outcome, o *Options) (died bool) {
	if call.left <= l.revived && !l.dead {
		return false // sent while the service was dead
	}
	if came.Lost {
		l.lost++
		if came.Latency > late {
			l.late++
		}
	}
	if l.dead {
		switch {
		case call.permit == l.probe:
			l.probe = 0
			l.wait(now, o)
		case came.Lost && l.lost == o.Concurrency:
			l.wait(now, o)
		}
		return false
	}
	if l.failures == 0 {
		l.since = now
	}
	if l.failures++; l.failures < o.DeadAfter && l.late < lateDeaths && l.lost < max(o.Concurrency, lostDeaths) {
		return false
	}
	l.dead, l.probes = true, 0
	l.wait(now, o)
	return true
}

// refused notes a refusal for too many calls, which asks for a wait. One of a day is
// no wait for a limit.
func (l *life) refused(now time.Time, ask time.Duration, o *Options) {
	switch {
	case l.refusing.IsZero() && ask < retry.MaxAfter:
		l.refusing = now.Add(ask)
	case l.refusing.IsZero():
		l.refusing = now
	case o.GiveUp > 0:
		l.refuses = now.Sub(l.refusing) >= o.GiveUp
	}
}

// wait sets the moment of the next probe.
func (l *life) wait(now time.Time, o *Options) {
	l.probes++
	wait := retry.Backoff{Initial: o.Probe, Max: o.MaxProbe}
	if l.lost >= o.Concurrency && (l.late >= lateDeaths || l.lost >= o.DeadAfter) {
		wait = retry.Backoff{Initial: o.MaxProbe, Max: 16 * o.MaxProbe} // each costs one call more
	}
	l.next = now.Add(wait.Jittered(l.probes, o.Random()))
}

// places is how many calls may be in flight: lost calls keep theirs until there is a
// response, so that an outage loses no more calls than there are places.
func (l *life) places(window int, o *Options) int { return max(1, min(window, o.Concurrency-l.lost)) }

// lives notes a response, even a refusal, and reports whether the service was
// dead until now.
func (l *life) lives(left uint64) (revived bool) {
	revived = l.dead
	if revived {
		l.revived = left
	}
	l.failures, l.lost, l.late, l.dead, l.probe = 0, 0, 0, false, 0
	return revived
}

// dropped notes that we cancelled a call: if it was the probe, the next call may
// take its place.
func (l *life) dropped(permit uint64) {
	if permit == l.probe {
		l.probe = 0
	}
}

// end is when a service is given up that is dead or refuses all calls; the zero time
// means never.
func (l *life) end(o *Options) time.Time {
	switch {
	case l.refuses:
		return l.refusing.Add(o.GiveUp)
	case !l.dead || o.GiveUp == 0:
		return time.Time{}
	}
	return l.since.Add(o.GiveUp)
}
