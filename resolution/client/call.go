package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/leadetl/leadetl/resolution"
)

// The bounds of what is read of an answer. A single record is a few
// kilobytes; a page of a thousand leads with everything known is some
// megabytes.
const (
	maxHeader = 64 << 10
	maxBody   = 32 << 20
)

// Call is one question about one record.
type Call struct {
	resolution.Request
	// IdempotencyKey is sent as the header of that name; empty sends none.
	IdempotencyKey string
	// ClientRef is sent as metadata.client_ref, by which a callback that does
	// not name the resolution is told; empty sends none.
	ClientRef string
}

// Reply is what the service said to one Call.
type Reply struct {
	// Answer is the data, or the absence of data.
	Answer resolution.Answer
	// Pending says that the answer comes later, by a callback.
	Pending bool
	// ID is the resolution's id as the service writes it, "" when it has none.
	ID string
	// RequestID is the service's name for the call, for its operator.
	RequestID string
	// Spent is what the call cost in credits, nil when the service does not
	// say.
	Spent *int64
	// Replayed says that the service answered from an earlier call with the
	// same idempotency key.
	Replayed bool
	// Quarantined counts members left out because they were not what they
	// claimed to be, such as a plain address in place of a hash.
	Quarantined int
	// Pace is what the service said about its limits.
	Pace Pace
	// Body is the answer as it was received.
	Body []byte
}

// Do makes one call. The error is an *Error, or the context's.
func (c *Client) Do(ctx context.Context, call Call) (Reply, error) {
	path, body, err := c.question(call)
	if err != nil {
		return Reply{}, &Error{Operation: call.Operation, Class: Invalid, Detail: err.Error()}
	}
	a, err := c.post(ctx, call.Operation, path, call.IdempotencyKey, body)
	if err != nil {
		return Reply{}, err
	}
	return a.reply()
}

// paths are where the single-record operations are.
var paths = map[resolution.Operation]string{
	resolution.EmailToHEM:      "/lead/resolution/email_to_hem",
	resolution.NetworkToHEM:    "/lead/resolution/network_to_hem",
	resolution.NetworkToPhone:  "/lead/resolution/network_to_phone",
	resolution.IPToCompany:     "/lead/resolution/ip_to_company",
	resolution.Enrichment:      "/lead/enrichment",
	resolution.Deanonymization: "/lead/deanonymization",
}

// question is the path and the body of a call.
func (c *Client) question(call Call) (path string, body []byte, err error) {
	path, ok := paths[call.Operation]
	if !ok {
		return "", nil, errors.New("not an operation on one record")
	}
	if call.Key == "" {
		return "", nil, errors.New("empty key")
	}
	value := call.Key
	if call.Operation.Identifier() == resolution.NetworkURL {
		value = "https://" + value // a key has no scheme, the field is a URL
	}
	q := map[string]any{string(call.Operation.Identifier()): value}
	if c.options.CallbackURL != "" && call.Operation != resolution.IPToCompany {
		q["callback_url"] = c.options.CallbackURL
	}
	if call.ClientRef != "" && call.Operation != resolution.IPToCompany {
		q["metadata"] = map[string]string{"client_ref": call.ClientRef}
	}
	body, err = json.Marshal(q)
	return path, body, err
}

// answer is one HTTP answer, read whole.
type answer struct {
	operation resolution.Operation
	status    int
	header    http.Header
	body      []byte
}

// post sends one request, at most once.
func (c *Client) post(ctx context.Context, op resolution.Operation, path, idempotencyKey string, body []byte) (answer, error) {
	failed := func(sent bool, class Class, detail string) (answer, error) {
		if ctx.Err() != nil {
			return answer{}, fmt.Errorf("%s: %w", op, &Error{Operation: op, Class: class, Sent: sent, Detail: detail, cause: ctx.Err()})
		}
		return answer{}, &Error{Operation: op, Class: class, Sent: sent, Detail: detail}
	}
	once := &sentBody{Reader: bytes.NewReader(body)}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.String()+path, once)
	if err != nil {
		return failed(false, Invalid, "the request cannot be made")
	}
	// net/http sends a request again by itself when a kept connection breaks,
	// an idempotency key is set, and GetBody gives the body a second time. Ours
	// cannot be had twice.
	request.GetBody = nil
	request.ContentLength = int64(len(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "leadetl")
	if c.options.HeaderName == "Authorization" {
		request.Header.Set("Authorization", "Bearer "+c.options.Key.Reveal())
	} else {
		request.Header.Set(c.options.HeaderName, c.options.Key.Reveal())
	}
	if idempotencyKey != "" {
		request.Header.Set("Idempotency-Key", idempotencyKey)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return failed(once.read.Load(), Unavailable, failure(err))
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return failed(true, Unavailable, "the answer broke off")
	}
	if len(text) > maxBody {
		return failed(true, Protocol, fmt.Sprintf("the answer is larger than %d bytes", maxBody))
	}
	return answer{operation: op, status: response.StatusCode, header: response.Header, body: text}, nil
}

// sentBody is a request's body that knows whether any of it was taken: as long
// as none was, nothing of the request can have reached the service.
type sentBody struct {
	*bytes.Reader
	read atomic.Bool
}

func (b *sentBody) Read(p []byte) (int, error) {
	b.read.Store(true)
	return b.Reader.Read(p)
}

// WriteTo hides the Reader's own, which would pass by Read.
func (b *sentBody) WriteTo(w io.Writer) (int64, error) {
	b.read.Store(true)
	return b.Reader.WriteTo(w)
}

func (b *sentBody) Close() error { return nil }
