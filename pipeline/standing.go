package pipeline

import (
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
)

// standing is what is to be done about a question, going by what is stored of
// it. A plan and the run that follows go by the same.
type standing uint8

const (
	toAsk    standing = iota // nothing is known: it is asked
	toAnswer                 // the stored answer holds
	toResend                 // an unknown call that may be sent again, under its key
	toAwait                  // the answer is to come by a callback
	toFail                   // an unknown call that may not be sent again
	toSkip                   // nothing is stored, and nobody may be asked
)

// standing decides about a question. began is when this process began: what
// the service refused since then is not asked again, and a call that became
// unknown since then is not sent again for RetryUnknown's sake.
func (r *Remote) standing(f answers.Found, began, now time.Time) standing {
	switch {
	case f.Stored && (f.Fresh || r.Offline || f.Answer.Outcome == answers.Refused && !f.Answer.Received.Before(began)):
		return toAnswer
	case f.Open == answers.Parked && !r.Offline && r.Later != nil && now.Before(f.Deadline):
		return toAwait
	case f.Open == "" && r.Offline:
		return toSkip
	case f.Open == "":
		return toAsk
	case !r.Offline && (r.Idempotent || r.RetryUnknown && f.Sent.Before(began)):
		return toResend
	}
	return toFail
}

// ofPage is what is to be done about a page of a search, whose result can be
// asked for when it was begun, whoever else is told.
func (s standing) ofPage(f answers.Found, offline bool) standing {
	switch {
	case f.Open != answers.Parked || s == toAnswer:
		return s
	case offline:
		return toFail
	}
	return toAwait
}

// openReason is the reason of a row whose call is open and may not be sent
// again.
func openReason(f answers.Found) string {
	if f.Open == answers.Parked {
		return outcome.ReasonNoCallback
	}
	return outcome.ReasonUnknownCall
}

// freshness is how old stored answers may be when a process begins: what it
// bought itself is not too old for it, however long it takes.
func (r *Remote) freshness(began time.Time) answers.Freshness {
	return answers.Freshness{Now: began, Match: r.RefreshMatch, NoMatch: r.RefreshNoMatch}
}
