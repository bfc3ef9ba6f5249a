package callback

import "time"

const (
	// slowAfter is when an attempt makes its receiver a slow one.
	slowAfter = 2 * time.Second

	// slowFor is how long a receiver stays one without proving otherwise.
	slowFor = 10 * time.Minute

	// maxSlow bounds the slow receivers remembered while nothing is under way
	// at them.
	maxSlow = 512

	// largeBytes of bodies under way at a receiver are enough: memory, and the
	// outbox reading them again, are bounded so.
	largeBytes = 256 << 10
)

// underway is what a Sender has on its hands. Receivers that take long share
// half of the slots, so that however many are dead, the other half serves
// those that answer.
type underway struct {
	concurrency, perReceiver int

	deliveries map[int64]struct{}
	receivers  map[string]*receiver
}

// receiver is one that has attempts under way, or is slow.
type receiver struct {
	attempts map[int64]time.Time // when they began
	bytes    int
	slow     time.Time // until when it counts as slow
}

func newUnderway(concurrency, perReceiver int) *underway {
	return &underway{concurrency, perReceiver, map[int64]struct{}{}, map[string]*receiver{}}
}

// free returns how many more attempts may begin.
func (u *underway) free() int { return u.concurrency - len(u.deliveries) }

// isSlow reports whether a receiver has been slow, or is being so.
func (r *receiver) isSlow(now time.Time) bool {
	if now.Before(r.slow) {
		return true
	}
	for _, began := range r.attempts {
		if now.Sub(began) >= slowAfter {
			return true
		}
	}
	return false
}

// isFull reports whether a receiver has as many attempts as it gets.
func (u *underway) isFull(r *receiver) bool {
	return len(r.attempts) >= u.perReceiver || r.bytes >= largeBytes
}

// slowFull reports whether the slow receivers have their half.
func (u *underway) slowFull(now time.Time) bool {
	n := 0
	for _, r := range u.receivers {
		if len(r.attempts) > 0 && r.isSlow(now) {
			n += len(r.attempts)
		}
	}
	return n >= max(u.concurrency/2, 1)
}

// busy returns the receivers that get no further attempt now, and how many
// attempts are under way at the others.
func (u *underway) busy(now time.Time) (names []string, elsewhere int) {
	slowFull := u.slowFull(now)
	for name, r := range u.receivers {
		if u.isFull(r) || slowFull && r.isSlow(now) {
			names = append(names, name)
		} else {
			elsewhere += len(r.attempts)
		}
	}
	return names, elsewhere
}

// takes reports whether d may be attempted now.
func (u *underway) takes(d Delivery, now time.Time) bool {
	if _, held := u.deliveries[d.ID]; held || u.free() <= 0 {
		return false
	}
	r := u.receivers[d.Receiver]
	return r == nil || !u.isFull(r) && !(r.isSlow(now) && u.slowFull(now))
}

// begin notes an attempt.
func (u *underway) begin(d Delivery, now time.Time) {
	r := u.receivers[d.Receiver]
	if r == nil {
		r = &receiver{attempts: map[int64]time.Time{}}
		u.receivers[d.Receiver] = r
	}
	u.deliveries[d.ID] = struct{}{}
	r.attempts[d.ID] = now
	r.bytes += len(d.Body)
}

// end notes the end of an attempt that took so long.
func (u *underway) end(d Delivery, took time.Duration, now time.Time) {
	r := u.receivers[d.Receiver]
	delete(u.deliveries, d.ID)
	delete(r.attempts, d.ID)
	r.bytes -= len(d.Body)
	if took >= slowAfter {
		r.slow = now.Add(slowFor)
		u.forgetSlow(now)
		return
	}
	r.slow = time.Time{}
	if len(r.attempts) == 0 {
		delete(u.receivers, d.Receiver)
	}
}

// forgetSlow drops receivers that were slow long ago, and any when there are
// too many: they are found to be slow again.
func (u *underway) forgetSlow(now time.Time) {
	idle := 0
	for name, r := range u.receivers {
		if len(r.attempts) > 0 {
			continue
		}
		if idle++; idle > maxSlow || !now.Before(r.slow) {
			delete(u.receivers, name)
		}
	}
}
