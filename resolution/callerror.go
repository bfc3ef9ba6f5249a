package resolution

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Class says what a caller should do about a call without an answer.
type Class string

// The classes.
const (
	Invalid     Class = "invalid"     // the service refuses this request, and would again
	Denied      Class = "denied"      // credentials, permissions, or an address that is no service
	NoCredits   Class = "no_credits"  // the account is out of credits
	Limited     Class = "limited"     // too many calls; see Pace
	Unavailable Class = "unavailable" // no answer, or one that says to try again
	Protocol    Class = "protocol"    // an answer that cannot be understood
)

// CallError is a call that gave no answer. It never holds the identifier or
// text that came from the service.
type CallError struct {
	Operation Operation
	Class     Class
	// Status is the HTTP status, 0 when no answer came.
	Status int
	// Code is the service's word for the error where it is one ([a-z0-9_.-]),
	// else "".
	Code string
	// Detail says more in our own words.
	Detail string
	// RequestID is the service's name for the call.
	RequestID string
	// Sent says that the service may have seen the request. What was seen and
	// not answered may have been billed.
	Sent bool
	// Unbilled says that the service surely did not process the request, although it
	// is unavailable. It goes with status 503 and 408.
	Unbilled bool
	// General says that every other call would be refused for the same reason. It
	// goes with Denied.
	General bool
	// Over says that a search ended without a result, or the task of a call without its answer: it was
	// not billed, and asking for its result again gives the same.
	Over bool
	// Gone says that the answer which was promised never comes, and may have been billed. It goes with
	// Protocol.
	Gone bool
	// Swapped says that the answer is that to another question, or may be. It goes
	// with Protocol.
	Swapped bool
	// Spent is what an Invalid call cost in credits, nil if the service does not say.
	Spent *int64
	// Pace is what the service said about when to call again.
	Pace Pace
	// KeyWindow is that of About.
	KeyWindow time.Duration
	// Body is the answer as far as it was received, nil without one. It may repeat
	// the request, and is no part of the text.
	Body []byte
	// Cause is the context's error where that ended the call.
	Cause error
}

func (e *CallError) Error() string {
	text := string(e.Operation) + ": " + e.Reason()
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// Reason returns why there was no answer, without the operation.
func (e *CallError) Reason() string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(string(e.Class), "_", " "))
	if e.Status != 0 {
		fmt.Fprintf(&b, ": status %d", e.Status)
	}
	if e.Code != "" {
		fmt.Fprintf(&b, " %s", e.Code)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s", e.Detail)
	}
	return b.String()
}

// Unwrap returns ErrInvalid, ErrDenied or ErrUnavailable, and the Cause.
func (e *CallError) Unwrap() []error {
	errs := []error{ErrUnavailable}
	switch e.Class {
	case Invalid:
		errs[0] = ErrInvalid
	case Denied, NoCredits:
		errs[0] = ErrDenied
	}
	if e.Cause != nil {
		errs = append(errs, e.Cause)
	}
	return errs
}

// PaidBody is the body of an answer with a 2xx that gave no data: it may hold what was
// paid for.
func (e *CallError) PaidBody() []byte {
	if e.Status/100 != 2 || !e.Billed() {
		return nil
	}
	return e.Body
}

// IsPlain404 reports whether the service answered 404 without a code of its own: to
// a wrong address, or to a question without an answer.
func (e *CallError) IsPlain404() bool {
	return e.Class == Denied && e.Status == http.StatusNotFound && !e.General
}

// Billed reports whether the call may have been billed although it gave no answer.
// A refusal is not billed. An answer that is missing, incomplete, unreadable or
// reports an internal failure may be.
func (e *CallError) Billed() bool {
	if !e.Sent || e.Over {
		return false
	}
	return e.Class == Unavailable && !e.Unbilled || e.Class == Protocol
}
