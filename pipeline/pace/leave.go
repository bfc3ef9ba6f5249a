package pace

import (
	"container/list"
	"context"
	"errors"
	"time"
)

// ErrHeld says that no call may leave for a while. What was prepared for the call
// should not stay so for that time: give the permit back, and acquire another one.
var ErrHeld = errors.New("no call may leave for a while")

const (
	// longHold is the shortest wait for which calls that are ready to leave are
	// given back.
	longHold = 2 * time.Second
	// maxLead bounds how long before its turn to leave a call gets its permit.
	maxLead = 5 * time.Second
	// remembered is how many calls the longest preparation counts for.
	remembered = 1024
)

// Wait is called when a call that had to be prepared after Acquire, such as by a
// write to a disk, is ready to leave: the service sees calls when they leave, so
// that is when they are paced. It waits until the call may leave, in the order of
// arrival. The error is ctx's, or ErrHeld, or ErrDead.
//
// If calls use it, Acquire returns so long before their turn to leave as their
// preparation takes, and they count as under way at the service from then on.
func (p Permit) Wait(ctx context.Context) error {
	c := p.c
	c.mu.Lock()
	now := time.Now()
	if !c.leaving.used { // until now, calls counted as leaving when they got their permits
		c.leaving.used = true
		c.bucket.drain(now)
	}
	at := &c.places[p.place]
	if at.left != 0 {
		at.left = 0
		c.underWay--
		for i := range c.windows {
			c.windows[i].takeBack()
		}
	}
	c.leaving.prepared(now.Sub(at.granted))
	if err := ctx.Err(); err != nil {
		c.mu.Unlock()
		return err
	}
	w := &waiter{ready: make(chan struct{}), permit: p}
	turn := c.leaving.queue.PushBack(w)
	c.serve(now)
	c.mu.Unlock()
	return c.await(ctx, &c.leaving.queue, turn)
}

// leaving are the calls that are ready to leave.
type leaving struct {
	queue list.List     // of *waiter
	used  bool          // calls say when they leave
	takes time.Duration // longest preparation among the last ones
	// keys is what the last call that has several counts as, and carries how many it has.
	keys, carries int
}

// prepared notes how long the preparation of a call took.
func (l *leaving) prepared(took time.Duration) {
	l.takes += (took - l.takes) / remembered
	l.takes = max(l.takes, took)
}

// lead is how long before its turn to leave a call gets its permit.
func (l *leaving) lead() time.Duration {
	return min(l.takes+l.takes/8+2*lateness, maxLead)
}
