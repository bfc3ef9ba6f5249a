package callback

import (
	"crypto/x509"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// Options is what a Sender needs to know. Outbox, Secrets and Policy are
// required; zero means the default everywhere else.
type Options struct {
	Outbox Outbox

	// Secrets returns an organization's live secrets, the present one first. It
	// is called once an attempt, from many goroutines.
	Secrets func(organization int64) []Secret

	Policy *Policy

	// Schedule is the delay before each attempt, counted from the end of the
	// one before; DefaultSchedule when empty. Its length is the number of
	// attempts. The first delay is the business of who makes the delivery.
	Schedule []time.Duration

	Concurrency int            // attempts under way in all; 64. A quarter of them may be one organization's
	PerReceiver int            // and those of one organization at one receiver; 4
	Timeout     time.Duration  // of an attempt; 15 s
	Grace       time.Duration  // what attempts under way get when Run is told to end; Timeout
	Poll        time.Duration  // how long a Sender looks no further at most; 1 s, as posts and replays by another process wake nobody
	Roots       *x509.CertPool // who may vouch for receivers; nil is the system's

	Log     *slog.Logger        // organization and webhook ids, failure words; nothing of a body or an address. nil is none
	Observe func(state.Attempt) // after each attempt that was settled, from many goroutines; may be nil
	Random  func() float64      // from [0, 1), for jitter, from many goroutines; math/rand/v2 when nil

	dial dialFunc // a test's network, in place of the policy's dialling
}

func (o Options) withDefaults() Options {
	if len(o.Schedule) == 0 {
		o.Schedule = DefaultSchedule()
	}
	setDefault(&o.Concurrency, 64)
	setDefault(&o.PerReceiver, 4)
	setDefault(&o.Timeout, 15*time.Second)
	setDefault(&o.Grace, o.Timeout)
	setDefault(&o.Poll, time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Observe == nil {
		o.Observe = func(state.Attempt) {}
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	return o
}

func setDefault[T int | time.Duration](value *T, otherwise T) {
	if *value <= 0 {
		*value = otherwise
	}
}

// DefaultSchedule returns when attempts are made: each delay runs from the end
// of the attempt before, the first from when the delivery was made, so that
// the last of the ten attempts is 75 hours after the first. Source: Standard
// Webhooks 1.0.0, deliverability and reliability, whose second column ("time
// since start") tells how the first is meant.
func DefaultSchedule() []time.Duration {
	return []time.Duration{
		0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute,
		2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
}

// jitterShare is how far a delay may be off, either way: what failed together
// is not to come back together.
const jitterShare = 0.1

// jitter spreads a delay; random is from [0, 1).
func jitter(delay time.Duration, random float64) time.Duration {
	return time.Duration(float64(delay) * (1 + jitterShare*(2*random-1)))
}
