// Package callback posts finished resolutions to the addresses their callers
// gave: signed, with attempts over three days, and without one receiver or
// organization delaying another.
//
// The one thing to know before using it: a callback address is hostile input.
// It is checked twice, by [Policy.Check] when a request is accepted and again
// for every connection a [Sender] opens, because a name may resolve differently
// by then. A delivery arrives at least once: after a crash, or an attempt cut off
// by a shutdown, it is sent again with the same webhook-id.
//
// Source: Standard Webhooks 1.0.0, for headers, signatures and the schedule.
package callback

import (
	"context"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// Why an attempt failed. Other statuses are "status_" and their class:
// status_4xx, status_5xx.
const (
	FailureTimeout    = "timeout"         // no answer in time
	FailureRefused    = "refused_address" // the policy does not allow the address, or no longer
	FailureName       = "name"            // the receiver's name was not found
	FailureConnection = "connection"      // no connection, or it broke
	FailureTLS        = "tls"             // no trusted TLS connection
	FailureProtocol   = "protocol"        // the answer was not HTTP
	FailureTooLarge   = "too_large"       // the answer's header passed its bound
	FailureRedirect   = "redirect"        // 3xx: redirects are not followed
	FailureGone       = "gone"            // 410: the receiver wants no more attempts
	FailureNoSecret   = "no_secret"       // the organization has no secret to sign with
)

// Outbox stores the deliveries. A Sender calls DueDeliveries from one goroutine
// and SettleDelivery from one for each running attempt.
type Outbox interface {
	// DueDeliveries returns at most limit deliveries of a scope that are due at
	// now, the longest due first, and when the first of the scope's remaining
	// ones becomes due; zero when none does. A delivery stays due until it is
	// settled, also while an attempt runs: the scope's Begun are left out.
	DueDeliveries(ctx context.Context, now time.Time, limit int, scope state.Scope) (due []state.Delivery, next time.Time, err error)

	// SettleDelivery counts an attempt and stores how it ended. It is called
	// again after an error, except state.ErrNotFound and state.ErrFinished: then
	// an operator or an earlier call came first.
	SettleDelivery(ctx context.Context, a state.Attempt) error
}
