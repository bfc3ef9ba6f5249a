// Package callback posts finished resolutions to the addresses their callers
// gave: signed, attempted over three days, each receiver apart from the others, and each organization.
//
// The one thing to know before using it: a callback address is hostile input.
// It is judged twice, by [Policy.Check] when a request is accepted and again
// for every connection a [Sender] opens, because a name may lead elsewhere by
// then. A delivery arrives at least once: after a crash, or an attempt cut off
// by a shutdown, it is sent again with the same webhook-id.
//
// Source: Standard Webhooks 1.0.0, for headers, signatures and the schedule.
package callback

import (
	"context"
	"time"
)

// Delivery is a callback that has not arrived yet.
type Delivery struct {
	ID           int64
	WebhookID    string // the same in every attempt; without a full stop
	Organization int64  // whose secrets sign it
	Receiver     string // as Policy.Check returned it: an organization's deliveries to one receiver share a bound
	URL          string // as Policy.Check accepted it
	Body         []byte // JSON; not changed by anybody
	Attempts     int    // made before
}

// State is what became of a delivery by an attempt.
type State string

// The states an attempt leads to.
const (
	Delivered State = "delivered" // answered with 2xx
	Postponed State = "postponed" // due again at Result.Due
	Dead      State = "dead"      // not attempted again, unless somebody replays it
)

// Result is the outcome of one attempt.
type Result struct {
	ID      int64
	State   State
	Status  int    // of the answer; 0 without one
	Failure string // a word, one of the Failure constants; "" when delivered. Never text from the receiver
	At      time.Time
	Due     time.Time // of the next attempt; zero unless postponed
	Took    time.Duration
}

// Why an attempt failed. A status without a word of its own is "status_" and
// its class: status_4xx, status_5xx.
const (
	FailureTimeout    = "timeout"         // no answer in time
	FailureRefused    = "refused_address" // the address is not one to be called, or no longer
	FailureName       = "name"            // the receiver's name was not found
	FailureConnection = "connection"      // no connection, or it broke
	FailureTLS        = "tls"             // no trusted TLS connection
	FailureProtocol   = "protocol"        // the answer was not HTTP
	FailureTooLarge   = "too_large"       // the answer's header passed its bound
	FailureRedirect   = "redirect"        // 3xx: redirects are not followed
	FailureGone       = "gone"            // 410: the receiver wants no more of it
	FailureNoSecret   = "no_secret"       // the organization has no secret to sign with
)

// Lane is what an organization sends to one receiver. Lanes are apart from each
// other: those of two organizations to one receiver, too.
type Lane struct {
	Organization int64
	Receiver     string
}

// Scope says which deliveries an Outbox is asked for.
type Scope struct {
	Only []Lane  // those of these lanes, unless it is nil
	Busy []Lane  // none of these
	Full []int64 // and none of these organizations
	Each int     // at most so many of one lane
}

// Outbox keeps the deliveries. A Sender calls Due from one goroutine and
// Settle from one per attempt under way.
type Outbox interface {
	// Due returns at most limit deliveries of a scope that are due at now, the
	// longest due first, and when the first of the scope's remaining ones
	// becomes due; zero when none does. A delivery under way stays due until it
	// is settled: the Sender knows it by its ID.
	Due(ctx context.Context, now time.Time, limit int, scope Scope) (due []Delivery, next time.Time, err error)

	// Settle counts an attempt and stores what became of it. It is asked again
	// after an error, so a delivery that is no longer there, or no longer
	// pending, is none.
	Settle(ctx context.Context, r Result) error
}
