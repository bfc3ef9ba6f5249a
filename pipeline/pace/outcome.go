package pace

import "time"

// Kind is what a call came to, as far as pace goes.
type Kind uint8

// The kinds.
const (
	// Answered is an answer, be it a match, a miss or a refusal of this one
	// request: the service lives and lets us call.
	Answered Kind = iota
	// Limited is a refusal for calling too much: 429, or 403 with Retry-After.
	Limited
	// Unavailable is a call that was sent and came to nothing: 5xx, a reset, a
	// time-out.
	Unavailable
	// Unreachable is a call that could not be sent: connection refused, no
	// address.
	Unreachable
	// NotCounted is a call that says nothing of the service: cancelled by us,
	// or never made.
	NotCounted
)

// Outcome is what Permit.Done is told. The zero Outcome is an answer that said
// nothing of limits.
type Outcome struct {
	Kind Kind
	// RetryAfter is how long the service asks not to be called; 0 when it did
	// not say. It counts with Limited and Unavailable.
	RetryAfter time.Duration
	LookAhead  LookAhead
	// Latency is how long the call took.
	Latency time.Duration
}

// LookAhead is what an answer said of the service's limit: so many calls are
// left until Reset from now. The zero LookAhead says nothing.
type LookAhead struct {
	Limited   bool // that the rest is known
	Remaining int
	Reset     time.Duration
}
