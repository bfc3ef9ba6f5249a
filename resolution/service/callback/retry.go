package callback

import (
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// DefaultSchedule returns the delay before each of ten attempts. The first counts
// from the making of the delivery, the others from the end of the previous attempt,
// so the last attempt is about 75 hours after the first. Source: Standard Webhooks
// 1.0.0, deliverability and reliability.
func DefaultSchedule() []time.Duration {
	return []time.Duration{
		0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute,
		2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
}

// jitterShare is how far a delay may be off, either way, so that deliveries that
// failed together do not come back together.
const jitterShare = 0.1

// jitter spreads a delay. random is in [0, 1).
func jitter(delay time.Duration, random float64) time.Duration {
	return time.Duration(float64(delay) * (1 + jitterShare*(2*random-1)))
}

// LongestWaits returns the longest wait for an attempt by how many were made before.
func (s *Sender) LongestWaits() (waits []time.Duration) {
	for _, delay := range s.o.Schedule {
		waits = append(waits, jitter(delay, 1))
	}
	return waits
}

// judge decides after an attempt whether a delivery is retried, and when.
func (s *Sender) judge(d state.Delivery, a result, now time.Time) state.Attempt {
	result := state.Attempt{ID: d.ID, State: state.Delivered, Status: a.status, Failure: a.failure, At: now}
	switch next := d.Attempts + 1; {
	case a.failure == "":
	case a.failure == FailureGone || next >= len(s.o.Schedule):
		result.State = state.Dead
	default:
		result.State = state.Pending
		result.Due = now.Add(max(jitter(s.o.Schedule[next], s.o.Random()), a.again))
	}
	return result
}
