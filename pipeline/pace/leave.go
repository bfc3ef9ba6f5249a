package pace

import (
	"context"
	"time"
)

// Leave spaces calls that were delayed between Acquire and their departure:
// calls that piled up behind a slow disk would leave all at once and be refused.
// Without a rate limit, or for a call that was not delayed, it returns at once.
// The error is ctx's.
func (p Permit) Leave(ctx context.Context) error {
	c := p.c
	c.mu.Lock()
	wait := c.leaving.wait(time.Now(), &c.bucket)
	c.mu.Unlock()
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leaving spaces the calls as they leave, by the generic cell rate algorithm: a
// call may be early by as much as the bucket allows.
type leaving struct {
	due  time.Time
	each time.Duration // between two calls, when due was computed
}

func (l *leaving) wait(now time.Time, b *bucket) time.Duration {
	if b.rate == unlimited {
		return 0
	}
	each := time.Duration(float64(time.Second) / b.rate)
	ahead := max(l.due.Sub(now), 0)
	if l.each > 0 && each != l.each { // the calls before it leave at the present rate too
		ahead = time.Duration(float64(ahead) / float64(l.each) * float64(each))
	}
	l.due, l.each = now.Add(ahead+each), each
	return ahead - max(lateness, time.Duration(b.burst-1)*each)
}
