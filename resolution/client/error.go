package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/leadetl/leadetl/resolution"
)

// Class is what an error asks of the caller.
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

// Error is a call that gave no answer. It never holds the identifier or text
// that came from the service.
type Error struct {
	Operation resolution.Operation
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
	// Over says that a search ended without a result: it was not billed, and
	// asking for its result again gives the same.
	Over bool
	// Pace is what the service said about when to call again.
	Pace Pace

	cause error
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Operation, strings.ReplaceAll(string(e.Class), "_", " "))
	if e.Status != 0 {
		fmt.Fprintf(&b, ": status %d", e.Status)
	}
	if e.Code != "" {
		fmt.Fprintf(&b, " %s", e.Code)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s", e.Detail)
	}
	if e.RequestID != "" {
		fmt.Fprintf(&b, " (request %s)", e.RequestID)
	}
	return b.String()
}

// Unwrap gives the answers to the caller's three questions.
func (e *Error) Unwrap() []error {
	errs := []error{resolution.ErrUnavailable}
	switch e.Class {
	case Invalid:
		errs[0] = resolution.ErrInvalid
	case Denied, NoCredits:
		errs[0] = resolution.ErrDenied
	}
	if e.cause != nil {
		errs = append(errs, e.cause)
	}
	return errs
}

// Billed reports whether the call may have cost something although it gave no
// answer. An answer that refuses the request costs nothing; one that never
// came, broke off, cannot be understood or tells of a failure inside may have.
func (e *Error) Billed() bool {
	if !e.Sent || e.Over {
		return false
	}
	switch e.Class {
	case Unavailable:
		return e.Status != http.StatusServiceUnavailable && e.Status != http.StatusRequestTimeout
	case Protocol:
		return true
	}
	return false
}

// failure says in our own words why no answer came: the error's own may hold
// addresses.
func failure(err error) string {
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var certificate *tls.CertificateVerificationError
	var timeout net.Error
	switch {
	case errors.As(err, &dns):
		return "the service's name cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &unknown):
		return "the service's certificate is of an unknown authority; --ca-file names one to trust"
	case errors.As(err, &host):
		return "the service's certificate is for another host"
	case errors.As(err, &certificate):
		return "the service's certificate is not valid"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	}
	return "the connection broke"
}
