package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/request"
)

// kind is one of the ways to refuse a request.
type kind struct {
	code      string // the word clients branch on
	status    int
	title     string
	retryable bool // whether the same request may succeed later
}

// The kinds of refusal. Each is also a URI: urn:leadetl:error: and the code.
var (
	malformedJSON      = &kind{"malformed_json", http.StatusBadRequest, "The body is not one JSON object", false}
	validationError    = &kind{"validation_error", http.StatusBadRequest, "The request is not valid", false}
	insufficientCredit = &kind{"insufficient_credits", http.StatusBadRequest, "Not enough credits", false}
	callbackNotAllowed = &kind{"callback_url_not_allowed", http.StatusBadRequest, "The callback address is not allowed", false}
	unsupportedVersion = &kind{"unsupported_version", http.StatusBadRequest, "This version of the interface is not served", false}

	missingCredentials = &kind{"missing_credentials", http.StatusUnauthorized, "Credentials are missing", false}
	invalidCredentials = &kind{"invalid_credentials", http.StatusUnauthorized, "Credentials are not valid", false}
	expiredCredentials = &kind{"expired_credentials", http.StatusUnauthorized, "Credentials have expired", false}
	forbidden          = &kind{"forbidden", http.StatusForbidden, "Not allowed", false}

	notFound           = &kind{"not_found", http.StatusNotFound, "There is nothing at this address", false}
	resolutionNotFound = &kind{"resolution_not_found", http.StatusNotFound, "There is no such resolution", false}
	methodNotAllowed   = &kind{"method_not_allowed", http.StatusMethodNotAllowed, "The method is not allowed", false}
	requestTimeout     = &kind{"request_timeout", http.StatusRequestTimeout, "The request took too long to arrive", true}
	keyInFlight        = &kind{"idempotency_key_in_flight", http.StatusConflict, "The same request is under way", true}
	resolutionExpired  = &kind{"resolution_expired", http.StatusGone, "The resolution is no longer kept", false}
	operationRetired   = &kind{"operation_retired", http.StatusGone, "The operation is retired", false}
	payloadTooLarge    = &kind{"payload_too_large", http.StatusRequestEntityTooLarge, "The body is too large", false}
	unsupportedMedia   = &kind{"unsupported_media_type", http.StatusUnsupportedMediaType, "The body is not application/json", false}
	keyReused          = &kind{"idempotency_key_reused", http.StatusUnprocessableEntity, "The idempotency key is of another request", false}

	rateLimited   = &kind{"rate_limited", http.StatusTooManyRequests, "Too many requests", true}
	tooManyActive = &kind{"too_many_active_resolutions", http.StatusTooManyRequests, "Too many unfinished resolutions", true}

	internalError = &kind{"internal_error", http.StatusInternalServerError, "The service failed", true}
	unavailable   = &kind{"unavailable", http.StatusServiceUnavailable, "The service is unavailable", true}
	cancelledJob  = &kind{"cancelled", http.StatusOK, "The resolution was cancelled", false} // never a status of its own

	alreadyFinished = &kind{"already_finished", http.StatusConflict, "The resolution is finished", false} // internal listener
)

// problem is one refusal. What it says holds nothing that was submitted.
type problem struct {
	*kind
	detail string
	fields []request.Problem // of validation_error

	retryAfter time.Duration // 0: no header
	challenge  string        // WWW-Authenticate
	allow      string        // of method_not_allowed
	closing    bool          // the connection ends with the answer

	required, balance int64 // of insufficient_credits
	cause             error // for the log alone
}

func (p *problem) Error() string { return p.code + ": " + p.detail }

func (p *problem) Unwrap() error { return p.cause }

func refuse(k *kind, format string, args ...any) *problem {
	return &problem{kind: k, detail: fmt.Sprintf(format, args...)}
}

// asProblem finds out how an error is told to the caller: a problem as it is,
// what may pass as unavailable, what a Resolver denies as forbidden, and
// anything else as internal_error.
func asProblem(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if mayPass(err) {
		return &problem{kind: unavailable, detail: "The service cannot answer at the moment. Try again later.", retryAfter: time.Second, cause: err}
	}
	if errors.Is(err, resolution.ErrDenied) {
		return &problem{kind: forbidden, detail: "The question may not be answered to you.", cause: err}
	}
	return &problem{kind: internalError, detail: "The service failed. Tell its operator the request id.", cause: err}
}

// mayPass reports whether what went wrong may be gone a moment later.
func mayPass(err error) bool {
	return errors.Is(err, resolution.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// problemBody is the error object, the inner one of the two forms.
type problemBody struct {
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

func (p *problem) body(instance, requestID string) problemBody {
	b := problemBody{
		Type: "urn:leadetl:error:" + p.code, Code: p.code, Title: p.title, Status: p.status, Detail: p.detail,
		Instance: instance, RequestID: requestID, Retryable: p.retryable, Errors: p.fields,
	}
	if b.Errors == nil {
		b.Errors = []request.Problem{}
	}
	if p.kind == insufficientCredit {
		shortfall := p.required - p.balance
		b.Required, b.Balance, b.Shortfall = &p.required, &p.balance, &shortfall
	}
	return b
}
