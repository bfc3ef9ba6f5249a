package limit

import (
	"sync"
	"time"
)

// A sliding day in steps of an hour: bytes count until a day after the end of
// the hour they were stored in.
const (
	RetainedStep  = time.Hour
	retainedSteps = 24
)

// RetainedBytes counts the bytes that an organization stored within a day. It is
// kept in memory only: a restart resets it. The zero value is empty.
// It is safe for concurrent use.
type RetainedBytes struct {
	mu     sync.Mutex
	newest int64                    // step since 1970 that was last counted
	steps  [retainedSteps + 1]int64 // bytes, by step modulo their number
	total  int64                    // of steps
}

// Add counts n bytes.
func (r *RetainedBytes) Add(n int64, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(now)
	r.steps[r.newest%int64(len(r.steps))] += n
	r.total += n
}

// Wait returns how long it takes until fewer than limit bytes count; 0 if fewer
// count now. The limit must be positive.
func (r *RetainedBytes) Wait(limit int64, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.advance(now)
	if r.total < limit {
		return 0
	}
	size, left, step := int64(len(r.steps)), r.total, r.newest-retainedSteps
	for left -= r.steps[step%size]; left >= limit && step < r.newest; left -= r.steps[step%size] {
		step++
	}
	return max(time.Unix(0, (step+size)*int64(RetainedStep)).Sub(now), time.Second)
}

// advance drops the steps that are over. Callers read the clock before they get
// the lock, so now may be a step earlier than in the last call. Then no step is
// dropped. If it is earlier than that, the clock was set back: all bytes count from now on.
func (r *RetainedBytes) advance(now time.Time) {
	step := now.UnixNano() / int64(RetainedStep)
	if step < r.newest-1 {
		r.newest = step
		clear(r.steps[:])
		r.steps[step%int64(len(r.steps))] = r.total
		return
	}
	if step-r.newest >= int64(len(r.steps)) {
		r.newest, r.total = step, 0
		clear(r.steps[:])
		return
	}
	for r.newest < step {
		r.newest++
		i := r.newest % int64(len(r.steps))
		r.total -= r.steps[i]
		r.steps[i] = 0
	}
}
