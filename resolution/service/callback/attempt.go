package callback

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/leadetl/leadetl/internal/retry"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// result is the result of one attempt.
type result struct {
	status  int    // 0 without an answer
	failure string // "" if it was delivered
	again   time.Duration
}

// lingerTimeout bounds how long the body of an answer is read. It is thrown away.
const lingerTimeout = time.Second

// attempt posts a delivery once. Of the receiver's answer it returns only the status
// and the Retry-After.
func (s *Sender) attempt(ctx context.Context, transport http.RoundTripper, d state.Delivery) result {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	t, err := s.o.Policy.parse(d.URL)
	if err != nil {
		return result{failure: FailureRefused} // it was accepted under another policy
	}
	secrets := s.o.Secrets(d.Organization)
	now := s.o.Now()
	signature := Sign(d.WebhookID, now, d.Body, secrets)
	if signature == "" {
		return result{failure: FailureNoSecret}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url.String(), bytes.NewReader(d.Body))
	if err != nil {
		return result{failure: FailureRefused}
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set(HeaderID, d.WebhookID)
	request.Header.Set(HeaderTimestamp, timestamp(now))
	request.Header.Set(HeaderSignature, signature)
	// This sends no header. It lets the transport repeat a request if the receiver
	// was closing the connection; receivers recognize the webhook-id.
	request.Header["Idempotency-Key"] = nil

	response, err := transport.RoundTrip(request)
	if err != nil {
		return result{failure: failureOf(ctx, err)}
	}
	linger := time.AfterFunc(lingerTimeout, cancel)
	_, _ = io.CopyN(io.Discard, response.Body, maxBodyBytes) // the status is enough
	linger.Stop()
	_ = response.Body.Close()
	return result{
		status:  response.StatusCode,
		failure: failureOfStatus(response.StatusCode),
		again:   retry.After(response.Header.Get("Retry-After"), s.o.Now()),
	}
}

const userAgent = "leadetl"

// failureOfStatus returns the word for a status, "" for 2xx.
func failureOfStatus(status int) string {
	switch class := status / 100; {
	case class == 2:
		return ""
	case class == 3:
		return FailureRedirect
	case status == http.StatusGone:
		return FailureGone
	case class < 2:
		return FailureProtocol // such as a 101 without an upgrade
	default:
		return "status_" + strconv.Itoa(class) + "xx"
	}
}

// failureOf returns the word for an attempt without an answer.
func failureOf(ctx context.Context, err error) string {
	var (
		refusal Refusal
		name    *net.DNSError
		secure  *tlsError
		timeout interface{ Timeout() bool }
		network *net.OpError
	)
	switch {
	case errors.As(err, &refusal):
		return FailureRefused
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return FailureTimeout
	case errors.As(err, &name):
		return FailureName
	case errors.As(err, &secure), errors.As(err, &network) && network.Op == "remote error": // an alert of TLS
		return FailureTLS
	case network != nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, io.ErrClosedPipe), errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return FailureConnection
	case strings.Contains(err.Error(), "response headers exceeded"), strings.Contains(err.Error(), "header list larger"):
		return FailureTooLarge // net/http has no error value for it
	}
	return FailureProtocol
}
