package service

import (
	"sync"
	"time"

	"github.com/leadetl/leadetl/resolution/service/wire"
)

// A sliding day, in steps: what was left in an hour counts until a day after
// that hour's end.
const (
	keptStep  = time.Hour
	keptSteps = 24
)

// kept counts the bytes that an organization left to be kept within a day. It
// is in memory alone: after a restart the day begins anew.
type kept struct {
	mu     sync.Mutex
	newest int64                // step since 1970 that was last counted
	steps  [keptSteps + 1]int64 // bytes, by step modulo their number
	total  int64                // of steps
}

// add counts n bytes.
func (k *kept) add(n int64, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.advance(now)
	k.steps[k.newest%int64(len(k.steps))] += n
	k.total += n
}

// wait is how long it takes until less than limit, which is positive, is
// counted; 0 when it is less already.
func (k *kept) wait(limit int64, now time.Time) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.advance(now)
	if k.total < limit {
		return 0
	}
	size, left, step := int64(len(k.steps)), k.total, k.newest-keptSteps
	for left -= k.steps[step%size]; left >= limit && step < k.newest; left -= k.steps[step%size] {
		step++
	}
	return max(time.Unix(0, (step+size)*int64(keptStep)).Sub(now), time.Second)
}

// advance forgets the steps that are over. Callers read the clock before they
// get the lock, so it may seem to go back: then nothing is over.
func (k *kept) advance(now time.Time) {
	step := now.UnixNano() / int64(keptStep)
	if step-k.newest >= int64(len(k.steps)) {
		k.newest, k.total = step, 0
		clear(k.steps[:])
		return
	}
	for k.newest < step {
		k.newest++
		i := k.newest % int64(len(k.steps))
		k.total -= k.steps[i]
		k.steps[i] = 0
	}
}

// mayKeep refuses a call that would leave something to be kept, of an
// organization that has left as much as it may. Calls under way at once may
// go beyond by what each of them leaves.
func (s *Service) mayKeep(c *call) error {
	limit := s.options.Limits.KeptBytes
	if limit == 0 {
		return nil
	}
	wait := c.account.kept.wait(limit, c.began)
	if wait == 0 {
		return nil
	}
	s.metrics.rateLimited.WithLabelValues("kept").Inc()
	p := wire.Refuse(wire.RateLimited, "The organization has left its %d bytes of a day to be kept: in callbacks, keyword searches and answers "+
		"under an Idempotency-Key. Calls that leave none of these are answered.", limit)
	p.RetryAfter = wait
	return p
}

// keeping counts what a creation leaves, and a result under an
// Idempotency-Key. A job is kept as what was asked for, as what is to do, and
// in its callback: each about as large as the answer, which echoes the request.
func (s *Service) keeping(handle func(*call) (*wire.Reply, error)) func(*call) (*wire.Reply, error) {
	return func(c *call) (*wire.Reply, error) {
		copies := int64(0)
		if c.route.class == create {
			copies = 3
		}
		if c.key != nil {
			copies++
		}
		if copies == 0 {
			return handle(c)
		}
		if err := s.mayKeep(c); err != nil {
			return nil, err
		}
		r, err := handle(c)
		if err == nil && r.RetryAfter == 0 { // what is unfinished is not stored
			c.account.kept.add(copies*int64(len(r.Body)), c.began)
		}
		return r, err
	}
}
