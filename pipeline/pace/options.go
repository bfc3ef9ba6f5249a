package pace

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Options are a Controller's settings. DefaultOptions has the usual ones.
type Options struct {
	// Rate is the user's limit in calls per second; 0 means none. Below it, a
	// lower rate is learned when the service refuses calls.
	Rate float64
	// Keys says that the limit, and what the service says of it, counts keys, of which a call
	// may have several: see Permit.SetCalls.
	Keys bool
	// Windows are further limits of the user; all of them hold.
	Windows []Window
	// Burst is how many calls may leave at once after a lull, under a rate
	// limit. A service that counts in short windows may refuse more than 1.
	Burst int
	// Concurrency is how many calls may be in flight.
	Concurrency int
	// Margin is the share of a limit that is left unused, in case the clock or
	// the network of the service jitters.
	Margin float64

	// Pause is how long all calls wait after a refusal without Retry-After. It
	// doubles with each further one.
	Pause time.Duration
	// MaxPause caps every pause. A service that asks for a longer one is called
	// again after MaxPause; Snapshot.Asked says what it asked for.
	MaxPause time.Duration
	// Decrease is what the rate is multiplied by when the service refuses.
	Decrease float64
	// Patience, times the length of the last pause, is how long the rate stays
	// below the rate that led to the pause.
	Patience int

	// DeadAfter is how many failed calls in a row make the service dead.
	DeadAfter int
	// Probe is the wait before the first probe of a dead service. It doubles
	// with each that fails, up to MaxProbe.
	Probe, MaxProbe time.Duration
	// GiveUp is how long the service may be dead before Acquire returns
	// ErrDead; 0 means for ever.
	GiveUp time.Duration

	// Random returns numbers in [0,1) for jitter. It is not called from two
	// goroutines at once. nil means math/rand/v2.
	Random func() float64
}

// LongestPause is the usual MaxPause.
const LongestPause = 15 * time.Minute

// DefaultOptions are the options without any flag: no rate limit, 64 calls in
// flight.
func DefaultOptions() Options {
	return Options{
		Burst:       1,
		Concurrency: 64,
		Margin:      0.001,
		Pause:       250 * time.Millisecond,
		MaxPause:    LongestPause,
		Decrease:    0.7,
		Patience:    20,
		DeadAfter:   10,
		Probe:       500 * time.Millisecond,
		MaxProbe:    30 * time.Second,
	}
}

// Validate joins everything that is wrong.
func (o Options) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(o.Rate == 0 || o.Rate >= minRate && !math.IsInf(o.Rate, 0), "rate %v: 0, or at least %v calls per second", o.Rate, minRate)
	for _, w := range o.Windows {
		check(w.Count >= 1 && w.Per > 0, "window of %d in %v: at least 1 in a time", w.Count, w.Per)
	}
	check(o.Burst >= 1, "burst %d: at least 1", o.Burst)
	check(o.Concurrency >= 1, "concurrency %d: at least 1", o.Concurrency)
	check(o.Margin >= 0 && o.Margin < 1, "margin %v: from 0 to less than 1", o.Margin)
	check(o.Pause > 0, "pause %v: more than 0", o.Pause)
	check(o.MaxPause >= o.Pause, "longest pause %v: at least the pause, %v", o.MaxPause, o.Pause)
	check(o.Decrease > 0 && o.Decrease < 1, "decrease %v: between 0 and 1", o.Decrease)
	check(o.Patience >= 0, "patience %d: not negative", o.Patience)
	check(o.DeadAfter >= 1, "dead after %d calls: at least 1", o.DeadAfter)
	check(o.Probe > 0, "probe %v: more than 0", o.Probe)
	check(o.MaxProbe >= o.Probe, "longest wait for a probe %v: at least the first, %v", o.MaxProbe, o.Probe)
	check(o.GiveUp >= 0, "give up after %v: not negative", o.GiveUp)
	return errors.Join(errs...)
}
