package wire

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// ErrNothingHere answers an unknown path.
var ErrNothingHere = Refuse(NotFound, "There is nothing at this address.")

// NotAllowed answers a method that a path does not have.
func NotAllowed(methods ...string) *Problem {
	p := Refuse(MethodNotAllowed, "Use %s.", strings.Join(methods, " or "))
	p.Allow = strings.Join(methods, ", ")
	return p
}

// Unreadable returns the answer when a body could not be read to its end.
func Unreadable(r *http.Request, err error) error {
	if over, is := errors.AsType[*http.MaxBytesError](err); is {
		return TooLarge(over.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &Problem{Kind: RequestTimeout, Detail: "The body did not arrive in time. Send it again.", Cause: err,
			Closing: r.ProtoMajor == 1} // the rest of the body may still come
	}
	return &Problem{Kind: MalformedJSON, Detail: "The body ended before it was complete.", Cause: err}
}

// TooLarge answers a body of more than limit bytes.
func TooLarge(limit int64) error {
	return Refuse(PayloadTooLarge, "The body may have %d bytes.", limit)
}

// Malformed returns the answer to an error of request.Parse.
func Malformed(err error) error {
	if m, is := errors.AsType[*request.MalformedError](err); is {
		return Refuse(MalformedJSON, "The body is not one JSON object: %s, at byte %d.", m.What, m.Offset)
	}
	return err
}

// Invalid answers a request with wrong fields.
func Invalid(problems []request.Problem) *Problem {
	p := Refuse(ValidationError, "One field of the request is not valid.")
	if len(problems) > 1 {
		p.Detail = fmt.Sprintf("%d fields of the request are not valid.", len(problems))
	}
	p.Fields = problems
	return p
}

// Insufficient answers a call that costs more credits than are available, or than its
// key may spend.
func Insufficient(e *state.InsufficientError) *Problem {
	where := "%d are available."
	if e.OfKey {
		where = "the spending limit of this key leaves %d."
	}
	p := Refuse(InsufficientCredit, "The call takes %d credits, and "+where, e.Required, e.Balance)
	p.Required, p.Balance = e.Required, e.Balance
	return p
}
