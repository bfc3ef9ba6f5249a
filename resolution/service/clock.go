package service

import (
	"sync/atomic"
	"time"
)

// clock is the clock of a service, which somebody may set. It notes how far ahead it was when the
// service read it, because what was postponed then waits too long once the clock is set back.
type clock struct {
	read  func() time.Time
	first time.Time
	ahead atomic.Int64 // the most of aheadAt since follow was last done
}

func newClock(read func() time.Time) *clock { return &clock{read: read, first: read()} }

// smallestStep is less than a step of the clock that matters.
const smallestStep = time.Second

// now is the time.
func (c *clock) now() time.Time {
	now := c.read()
	for ahead, most := c.aheadAt(now), c.ahead.Load(); ahead > most; most = c.ahead.Load() {
		c.ahead.CompareAndSwap(most, ahead)
	}
	return now
}

// aheadAt is by how much the clock was set since the first reading. A time has the clock of the wall
// and one that no one sets: where they differ, the first was set.
func (c *clock) aheadAt(now time.Time) int64 {
	return int64(now.Round(0).Sub(c.first.Round(0)) - now.Sub(c.first))
}

// follow calls do if the clock was further ahead at any reading since the last call that succeeded.
func (c *clock) follow(do func() error) error {
	most := c.ahead.Load()
	ahead := c.aheadAt(c.read())
	if time.Duration(most-ahead) <= smallestStep {
		return nil
	}
	if err := do(); err != nil {
		return err
	}
	c.ahead.CompareAndSwap(most, ahead) // a reading since then may be further ahead
	return nil
}
