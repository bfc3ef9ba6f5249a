package callback

import "time"

const (
	// slowAfter is when an attempt makes its receiver a slow one.
	slowAfter = 2 * time.Second

	// knownFor is how long a receiver is known by its last attempt.
	knownFor = 10 * time.Minute

	// maxKnown bounds the receivers known while nothing is under way at them.
	maxKnown = 1024

	// largeBytes of bodies under way at a receiver are enough: memory, and the
	// outbox reading them again, are bounded so.
	largeBytes = 256 << 10
)

// pace is how a receiver answers.
type pace int

// The paces. Those that answer may have all slots, new ones three quarters,
// slow ones half, each with those behind it: however many receivers are dead,
// there are slots for who is new, and some for who is known to answer. A new
// receiver gets one attempt at a time, until it has answered.
const (
	quick pace = iota
	fresh
	slow
)

func (u *underway) ceiling(p pace) int {
	switch p {
	case quick:
		return u.concurrency
	case fresh:
		return max(u.concurrency*3/4, 1)
	default:
		return max(u.concurrency/2, 1)
	}
}

// underway is what a Sender has on its hands.
type underway struct {
	concurrency, perReceiver int

	deliveries map[int64]struct{}
	receivers  map[string]*receiver
}

// receiver is one that has attempts under way or has had some, or that waits
// for its first.
type receiver struct {
	attempts map[int64]time.Time // when they began
	bytes    int                 // of their bodies
	took     time.Duration       // by the last attempt
	known    time.Time           // until when that counts
}

func newUnderway(concurrency, perReceiver int) *underway {
	return &underway{concurrency, perReceiver, map[int64]struct{}{}, map[string]*receiver{}}
}

// free returns how many more attempts may begin.
func (u *underway) free() int { return u.concurrency - len(u.deliveries) }

func (r *receiver) pace(now time.Time) pace {
	for _, began := range r.attempts {
		if now.Sub(began) >= slowAfter {
			return slow
		}
	}
	switch {
	case !now.Before(r.known):
		return fresh
	case r.took >= slowAfter:
		return slow
	default:
		return quick
	}
}

// view is what is under way at a moment.
type view struct {
	now       time.Time
	load      [slow + 1]int // attempts at receivers of a pace or one behind it
	busy      []string      // receivers that get no attempt now
	elsewhere int           // attempts at the other receivers
}

// look counts.
func (u *underway) look(now time.Time) *view {
	v := &view{now: now}
	for _, r := range u.receivers {
		v.add(r.pace(now), len(r.attempts))
	}
	for name, r := range u.receivers {
		if u.full(r, v) {
			v.busy = append(v.busy, name)
		} else {
			v.elsewhere += len(r.attempts)
		}
	}
	return v
}

func (v *view) add(p pace, n int) {
	for at := quick; at <= p; at++ {
		v.load[at] += n
	}
}

// full reports whether a receiver gets no further attempt now.
func (u *underway) full(r *receiver, v *view) bool {
	p, share := r.pace(v.now), u.perReceiver
	if p == fresh {
		share = 1
	}
	return len(r.attempts) >= share || r.bytes >= largeBytes || v.load[p] >= u.ceiling(p)
}

// verdict is what is to be done with a delivery that is due.
type verdict int

const (
	begins verdict = iota
	held           // it is under way
	waits          // its receiver has become busy
	stays          // nothing can be done about it now
)

// judge says what is to be done with d. A receiver that has to wait is
// remembered, so that the next view has it among the busy ones.
func (u *underway) judge(d Delivery, v *view) verdict {
	if _, found := u.deliveries[d.ID]; found {
		return held
	}
	if u.free() <= 0 {
		return stays
	}
	r := u.receivers[d.Receiver]
	if r == nil {
		if len(u.receivers) >= maxKnown+u.concurrency && !u.forget() {
			return stays
		}
		r = &receiver{attempts: map[int64]time.Time{}}
		u.receivers[d.Receiver] = r
	}
	if u.full(r, v) {
		return waits
	}
	return begins
}

// begin notes an attempt, also in the view.
func (u *underway) begin(d Delivery, v *view) {
	r := u.receivers[d.Receiver]
	v.add(r.pace(v.now), 1)
	u.deliveries[d.ID] = struct{}{}
	r.attempts[d.ID] = v.now
	r.bytes += len(d.Body)
}

// end notes the end of an attempt that took so long.
func (u *underway) end(d Delivery, took time.Duration, now time.Time) {
	r := u.receivers[d.Receiver]
	delete(u.deliveries, d.ID)
	delete(r.attempts, d.ID)
	r.bytes -= len(d.Body)
	r.took, r.known = took, now.Add(knownFor)
}

// forget drops a receiver with nothing under way, if there is one: it is new
// when it is met again.
func (u *underway) forget() bool {
	for name, r := range u.receivers {
		if len(r.attempts) == 0 {
			delete(u.receivers, name)
			return true
		}
	}
	return false
}
