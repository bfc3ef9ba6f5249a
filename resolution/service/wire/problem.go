package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/request"
)

// Kind is a kind of refusal.
type Kind struct {
	Code      string // stable; clients depend on it
	Status    int
	Title     string
	Retryable bool // whether the same request may succeed later
}

// The kinds of refusal. Each code is also a URI: urn:leadetl:error:CODE.
var (
	MalformedJSON      = &Kind{"malformed_json", http.StatusBadRequest, "The body is not one JSON object", false}
	ValidationError    = &Kind{"validation_error", http.StatusBadRequest, "The request is not valid", false}
	InsufficientCredit = &Kind{"insufficient_credits", http.StatusBadRequest, "Not enough credits", false}
	CallbackNotAllowed = &Kind{"callback_url_not_allowed", http.StatusBadRequest, "The callback address is not allowed", false}
	UnsupportedVersion = &Kind{"unsupported_version", http.StatusBadRequest, "This version of the interface is not served", false}

	MissingCredentials = &Kind{"missing_credentials", http.StatusUnauthorized, "Credentials are missing", false}
	InvalidCredentials = &Kind{"invalid_credentials", http.StatusUnauthorized, "Credentials are not valid", false}
	ExpiredCredentials = &Kind{"expired_credentials", http.StatusUnauthorized, "Credentials have expired", false}
	Forbidden          = &Kind{"forbidden", http.StatusForbidden, "Not allowed", false}

	NotFound           = &Kind{"not_found", http.StatusNotFound, "There is nothing at this address", false}
	ResolutionNotFound = &Kind{"resolution_not_found", http.StatusNotFound, "There is no such resolution", false}
	NotKept            = &Kind{"not_kept", http.StatusNotFound, "The answer is not kept", false}
	MethodNotAllowed   = &Kind{"method_not_allowed", http.StatusMethodNotAllowed, "The method is not allowed", false}
	RequestTimeout     = &Kind{"request_timeout", http.StatusRequestTimeout, "The request took too long to arrive", true}
	KeyInFlight        = &Kind{"idempotency_key_in_flight", http.StatusConflict, "The same request is under way", true}
	ResolutionExpired  = &Kind{"resolution_expired", http.StatusGone, "The resolution is no longer kept", false}
	OperationRetired   = &Kind{"operation_retired", http.StatusGone, "The operation is retired", false}
	PayloadTooLarge    = &Kind{"payload_too_large", http.StatusRequestEntityTooLarge, "The body is too large", false}
	UnsupportedMedia   = &Kind{"unsupported_media_type", http.StatusUnsupportedMediaType, "The body is not application/json", false}
	KeyReused          = &Kind{"idempotency_key_reused", http.StatusUnprocessableEntity, "The idempotency key is of another request", false}

	RateLimited   = &Kind{"rate_limited", http.StatusTooManyRequests, "Too many requests", true}
	TooManyActive = &Kind{"too_many_active_resolutions", http.StatusTooManyRequests, "Too many unfinished resolutions", true}

	InternalError = &Kind{"internal_error", http.StatusInternalServerError, "The service failed", true}
	Unavailable   = &Kind{"unavailable", http.StatusServiceUnavailable, "The service is unavailable", true}
	CancelledJob  = &Kind{"cancelled", http.StatusOK, "The resolution was cancelled", false} // inside other answers only

	AlreadyFinished = &Kind{"already_finished", http.StatusConflict, "The resolution is finished", false} // internal listener
)

// Problem is one refusal. Its text contains nothing that the caller sent.
type Problem struct {
	Kind   *Kind
	Detail string
	Fields []request.Problem // of validation_error

	RetryAfter time.Duration // 0: no header
	Challenge  string        // WWW-Authenticate
	Allow      string        // of method_not_allowed
	Closing    bool          // close the connection after the answer

	Required, Balance int64 // of insufficient_credits
	Cause             error // only for the log
}

func (p *Problem) Error() string { return p.Kind.Code + ": " + p.Detail }

func (p *Problem) Unwrap() error { return p.Cause }

// Refuse makes a problem.
func Refuse(k *Kind, format string, args ...any) *Problem {
	return &Problem{Kind: k, Detail: fmt.Sprintf(format, args...)}
}

// AsProblem returns the problem to answer an error with. A problem is returned
// as it is, a temporary failure becomes unavailable, a Resolver's denial
// forbidden, and anything else internal_error.
func AsProblem(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if MayPass(err) {
		return &Problem{Kind: Unavailable, Detail: "The service cannot answer at the moment. Try again later.", RetryAfter: time.Second, Cause: err}
	}
	if errors.Is(err, resolution.ErrDenied) {
		return &Problem{Kind: Forbidden, Detail: "The question may not be answered to you.", Cause: err}
	}
	return &Problem{Kind: InternalError, Detail: "The service failed. Tell its operator the request id.", Cause: err}
}

// MayPass reports whether an error is temporary.
func MayPass(err error) bool {
	return errors.Is(err, resolution.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// ProblemBody is the error object. It is the inner one of the two forms.
type ProblemBody struct {
	Type      string            `json:"type"`
	Code      string            `json:"code"`
	Title     string            `json:"title"`
	Status    int               `json:"status"`
	Detail    string            `json:"detail"`
	Instance  string            `json:"instance,omitempty"`
	RequestID string            `json:"request_id,omitempty"`
	Retryable bool              `json:"retryable"`
	Errors    []request.Problem `json:"errors"`
	Required  *int64            `json:"required,omitempty"`
	Balance   *int64            `json:"balance,omitempty"`
	Shortfall *int64            `json:"shortfall,omitempty"`
}

// Body returns the error object of an answer.
func (p *Problem) Body(instance, requestID string) ProblemBody {
	b := ProblemBody{
		Type: "urn:leadetl:error:" + p.Kind.Code, Code: p.Kind.Code, Title: p.Kind.Title, Status: p.Kind.Status, Detail: p.Detail,
		Instance: instance, RequestID: requestID, Retryable: p.Kind.Retryable, Errors: p.Fields,
	}
	if b.Errors == nil {
		b.Errors = []request.Problem{}
	}
	if p.Kind == InsufficientCredit {
		shortfall := p.Required - p.Balance
		b.Required, b.Balance, b.Shortfall = &p.Required, &p.Balance, &shortfall
	}
	return b
}
