package worldtest

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// Clock is the clock of a machine, which somebody may set. As on a machine, its times have a second
// clock, which nobody sets: durations are measured with it. The zero value is right.
type Clock struct{ ahead atomic.Int64 }

// Set makes the clock differ from the one that is right.
func (c *Clock) Set(ahead time.Duration) { c.ahead.Store(int64(ahead)) }

// Ahead is by how much the clock differs.
func (c *Clock) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }

// timeFields are those of time.Time.
type timeFields struct {
	wall uint64 // hasBoth, the seconds since 1885, and 30 bits of nanoseconds
	ext  int64  // the nanoseconds of the clock that nobody sets
	loc  *time.Location
}

const hasBoth = 1 << 63

// since1885 is the second of 1970, counted from 1885.
var since1885 = -time.Date(1885, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// Now is the time.
func (c *Clock) Now() time.Time {
	right := time.Now()
	set := right.Add(c.Ahead())
	t := timeFields{wall: hasBoth | uint64(set.Unix()+since1885)<<30 | uint64(set.Nanosecond()), ext: right.UnixNano(), loc: time.Local}
	return *(*time.Time)(unsafe.Pointer(&t))
}
