package stats

import (
	"math"
	"sync"
	"time"
)

// RecentFor is how long a Recent remembers. The time left is estimated from it, because a
// service may be slow or paused for a while, and stored answers are a thousand times as fast
// as calls: the run as a whole says little about the rest.
const RecentFor = time.Minute

// Recent is how far a run was, second by second, during the last minute. The zero
// value is empty; its methods are safe from many goroutines.
type Recent struct {
	mu    sync.Mutex
	marks []mark
	known int64
	last  mark // before the latest questions were asked
}

// mark is how far a run was at a moment. answered are the questions that calls have
// answered, and uncalled those that need none.
type mark struct {
	at                        time.Time
	done, calls               int64
	asked, answered, uncalled int64
}

func markOf(now time.Time, s Snapshot) mark {
	m := mark{at: now, done: s.InputDone()}
	if s.Calls != nil {
		c := s.Calls
		m.calls, m.asked, m.uncalled = c.Calls, c.Asked, c.Stored+s.Withheld
		m.answered = c.Closed - m.uncalled
	}
	return m
}

// Note adds the progress of a run, and forgets what is too old.
func (r *Recent) Note(now time.Time, s Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Known != r.known { // recorded parts are passed much faster than others are made
		r.marks, r.known = nil, s.Known
	}
	m := markOf(now, s)
	if n := len(r.marks); n > 0 && m.asked > r.marks[n-1].asked {
		r.last = r.marks[n-1]
	}
	r.marks = append(r.marks, m)
	for len(r.marks) > 2 && now.Sub(r.marks[1].at) >= RecentFor {
		r.marks = r.marks[1:]
	}
}

// Span is the time from the first mark until now.
func (r *Recent) Span(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.marks) == 0 {
		return 0
	}
	return now.Sub(r.marks[0].at)
}

// Rates are how many input rows were done and calls made in a second, until now: since
// a mark that is so old, or the first.
func (r *Recent) Rates(now time.Time, s Snapshot, over time.Duration) (done, calls float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.marks) == 0 || s.Known != r.known {
		return 0, 0
	}
	last, from := markOf(now, s), r.marks[0]
	for _, m := range r.marks[1:] {
		if last.at.Sub(m.at) < over {
			break
		}
		from = m
	}
	passed := last.at.Sub(from.at).Seconds()
	if passed <= 0 {
		return 0, 0
	}
	return float64(last.done-from.done) / passed, float64(last.calls-from.calls) / passed
}

// TimeOfCalls estimates how long the calls that are left take, at the speed of the
// calls of the last minute. Rows that need none have no part in it: they take next to
// no time, and of the rows to come as many need a call as of those that were asked
// last. It is 0 where no call is left, or nothing is known; stalled says that calls
// are left, and none was answered.
func (r *Recent) TimeOfCalls(now time.Time, s Snapshot) (left time.Duration, stalled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.marks) == 0 || s.Known != r.known {
		return 0, false
	}
	from, to, before := r.marks[0], markOf(now, s), r.last
	for _, m := range r.marks[1:] { // the time before the first answer is not theirs
		if m.answered > from.answered {
			break
		}
		from = m
	}
	share := 1.0
	if asked := to.asked - before.asked; asked > 0 {
		share = min(max(1-float64(to.uncalled-before.uncalled)/float64(asked), 0), 1)
	}
	calls, answered := s.CallsLeft(share), to.answered-from.answered
	switch {
	case calls < 1:
		return 0, false
	case answered <= 0:
		return 0, true
	}
	seconds := calls / float64(answered) * to.at.Sub(from.at).Seconds()
	return time.Duration(min(seconds, math.MaxInt32) * float64(time.Second)), false
}
