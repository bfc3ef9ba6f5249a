package purchase

import (
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
)

// Decision is what to do about a question, by what is stored of it. A plan and its run decide
// alike.
type Decision uint8

// The decisions.
const (
	Ask       Decision = iota // nothing is stored: send it
	UseStored                 // use the stored answer
	Resend                    // its open call may be sent again, under its idempotency key
	Await                     // the answer is promised: wait for it
	GiveUp                    // its open call may not be sent again
	Skip                      // nothing is stored, and the run is offline
)

// Decide decides about a question of an operation. began is when this process began. Questions
// that the service refused since then are not asked again, and RetryUnknown does not send
// calls again that became unknown since then.
func (r *Remote) Decide(op resolution.Operation, f answers.Found, began, now time.Time) Decision {
	refusedSince := f.Answer.Outcome == answers.Refused && !f.Answer.Received.Before(began)
	switch {
	case f.Stored && (f.Fresh || r.Offline || refusedSince):
		return UseStored
	case f.Open == "" && r.Offline:
		return Skip
	case f.Open == "":
		return Ask
	case r.Offline:
		return GiveUp
	case f.Open == answers.Parked && op.IsKeyword(): // its result can be asked for
		return Await
	case f.Open == answers.Parked && r.Deliveries != nil && now.Before(f.Deadline):
		return Await
	case r.Idempotent || r.RetryUnknown && f.Sent.Before(began):
		return Resend
	}
	return GiveUp
}

// openReason returns the reason of a row whose open call may not be sent again.
func openReason(op resolution.Operation, f answers.Found) string {
	switch {
	case f.Open != answers.Parked:
		return outcome.ReasonUnknownCall
	case op.IsKeyword():
		return outcome.ReasonUnfinished
	}
	return outcome.ReasonNoCallback
}

// Freshness says how old stored answers may be in a process that began at a time. Answers that
// the process bought are never too old for it.
func (r *Remote) Freshness(began time.Time) answers.Freshness {
	return answers.Freshness{Now: began, Match: r.RefreshMatch, NoMatch: r.RefreshNoMatch}
}
