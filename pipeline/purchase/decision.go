package purchase

import (
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
)

// Decision is what is to be done about a question, going by what is stored of
// it. A plan and the run that follows go by the same.
type Decision uint8

const (
	Ask       Decision = iota // nothing is known: it is asked
	UseStored                 // the stored answer holds
	Resend                    // an unknown call that may be sent again, under its key
	Await                     // the answer is to come by a callback
	GiveUp                    // an unknown call that may not be sent again
	Skip                      // nothing is stored, and nobody may be asked
)

// Decide decides about a question. began is when this process began: what
// the service refused since then is not asked again, and a call that became
// unknown since then is not sent again for RetryUnknown's sake.
func (r *Remote) Decide(f answers.Found, began, now time.Time) Decision {
	switch {
	case f.Stored && (f.Fresh || r.Offline || f.Answer.Outcome == answers.Refused && !f.Answer.Received.Before(began)):
		return UseStored
	case f.Open == answers.Parked && !r.Offline && r.Deliveries != nil && now.Before(f.Deadline):
		return Await
	case f.Open == "" && r.Offline:
		return Skip
	case f.Open == "":
		return Ask
	case !r.Offline && (r.Idempotent || r.RetryUnknown && f.Sent.Before(began)):
		return Resend
	}
	return GiveUp
}

// OfPage is what is to be done about a page of a search, whose result can be
// asked for when it was begun, whoever else is told.
func (s Decision) OfPage(f answers.Found, offline bool) Decision {
	switch {
	case f.Open != answers.Parked || s == UseStored:
		return s
	case offline:
		return GiveUp
	}
	return Await
}

// openReason is the reason of a row whose call is open and may not be sent
// again.
func openReason(f answers.Found) string {
	if f.Open == answers.Parked {
		return outcome.ReasonNoCallback
	}
	return outcome.ReasonUnknownCall
}

// Freshness is how old stored answers may be when a process begins: what it
// bought itself is not too old for it, however long it takes.
func (r *Remote) Freshness(began time.Time) answers.Freshness {
	return answers.Freshness{Now: began, Match: r.RefreshMatch, NoMatch: r.RefreshNoMatch}
}
