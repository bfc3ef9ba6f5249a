package pace

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Options are a Controller's settings. DefaultOptions has the usual ones.
type Options struct {
	// Rate is the user's ceiling in calls per second. With 0 there is none,
	// and a rate is learned only when the service refuses a call for it.
	Rate float64
	// Burst is how many calls may leave at once after a lull, where a rate
	// limits. More than 1 can fail where a service counts in short windows.
	Burst int
	// Concurrency is how many calls may be in flight.
	Concurrency int
	// Margin is the share of a limit that is left unused, so that a service
	// whose clock or network jitters does not count one call too many.
	Margin float64

	// Pause is how long everybody waits after a refusal that does not say how
	// long to wait. It doubles with each further one.
	Pause time.Duration
	// MaxPause caps every pause. A service that asks for more is asked again
	// after MaxPause; Snapshot says what it asked for.
	MaxPause time.Duration
	// Decrease is what the rate is multiplied by when the service refuses.
	Decrease float64
	// Patience is how many times as long as the last pause the controller
	// stays below the rate that led to it, before it tries more.
	Patience int

	// DeadAfter is how many calls in a row fail until the service is dead.
	DeadAfter int
	// Probe is the wait before the first probe of a dead service. It doubles
	// with each that fails, up to MaxProbe.
	Probe, MaxProbe time.Duration
	// GiveUp is for how long the service may be dead before Acquire returns
	// ErrDead; 0 is for ever.
	GiveUp time.Duration

	// Random gives numbers in [0,1) for jitter, one call at a time; nil stands
	// for math/rand/v2.
	Random func() float64
}

// DefaultOptions are those of a run that was told nothing: no ceiling, 64
// calls in flight.
func DefaultOptions() Options {
	return Options{
		Burst:       1,
		Concurrency: 64,
		Margin:      0.001,
		Pause:       250 * time.Millisecond,
		MaxPause:    15 * time.Minute,
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
