package callback

import (
	"crypto/x509"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// Options are the settings of a Sender. Outbox, Secrets and Policy are required;
// for all others the zero value means the default.
type Options struct {
	Outbox Outbox

	// Secrets returns the valid secrets of an organization, the newest first. It
	// is called once for each attempt, from many goroutines.
	Secrets func(organization int64) []Secret

	Policy *Policy

	// Schedule is the delay before each attempt, counted from the end of the
	// previous one; DefaultSchedule when empty. Its length is the number of
	// attempts. The first delay is up to the code that makes the delivery.
	Schedule []time.Duration

	Concurrency int            // attempts in flight; 64. One organization may have a quarter of them
	PerReceiver int            // attempts in flight of one organization at one receiver; 4
	Timeout     time.Duration  // of an attempt; 15 s
	Grace       time.Duration  // for attempts in flight when Run is told to end; Timeout
	Poll        time.Duration  // the longest pause between looks at the Outbox; 1 s. Deliveries added by another process do not end it
	Roots       *x509.CertPool // of the certificates of receivers; nil is the system's

	Log     *slog.Logger        // gets organization and webhook ids and failure words, never a body or an address; nil logs nothing
	Observe func(state.Attempt) // called after each settled attempt, from many goroutines; may be nil
	Random  func() float64      // in [0, 1), for jitter, called from many goroutines; math/rand/v2 when nil

	Now func() time.Time // the clock; time.Now when nil

	dial dialFunc // for tests: replaces the dialFunc of the policy
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
	if o.Now == nil {
		o.Now = time.Now
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
