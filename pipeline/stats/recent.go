package stats

import (
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
}

type mark struct {
	at          time.Time
	done, calls int64
}

func markOf(now time.Time, s Snapshot) mark {
	m := mark{at: now, done: s.InputDone()}
	if s.Calls != nil {
		m.calls = s.Calls.Calls
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
	r.marks = append(r.marks, markOf(now, s))
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
