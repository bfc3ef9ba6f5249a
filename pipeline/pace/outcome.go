package pace

import "time"

// Kind is the outcome of a call, as far as it matters for the pace.
type Kind uint8

// The kinds.
const (
	// Answered is any answer to the request, including a refusal of this one
	// record: the service is up and accepts calls.
	Answered Kind = iota
	// Limited is a refusal for too many calls: 429, or 403 with Retry-After.
	Limited
	// Unavailable is a call that was sent and failed: 5xx, a reset, a time-out.
	Unavailable
	// Unreachable is a call that could not be sent: connection refused, no
	// address.
	Unreachable
	// NotCounted is a call that says nothing about the service: cancelled by
	// us, or never made.
	NotCounted
)

// Outcome is the argument of Permit.Done. The zero Outcome is an answer that
// says nothing about limits.
type Outcome struct {
	Kind Kind
	// RetryAfter is how long the service asks not to be called; 0 if it does
	// not say. It matters with Limited and Unavailable.
	RetryAfter time.Duration
	LookAhead  LookAhead
	// Lost says that the call may have been billed, and will have no answer. It goes
	// with Unavailable.
	Lost bool
	// Latency is how long the call took.
	Latency time.Duration
}

// Asks is the wait that the service asks for; 0 if it does not say.
func (o Outcome) Asks() time.Duration {
	if o.RetryAfter == 0 && o.LookAhead.Limited && o.LookAhead.Remaining == 0 {
		return o.LookAhead.Reset
	}
	return o.RetryAfter
}

// LookAhead is what an answer says about the service's limit: Remaining calls
// are left until Reset from now. The zero LookAhead says nothing.
type LookAhead struct {
	Limited   bool // the other fields are known
	Remaining int
	Reset     time.Duration
}
