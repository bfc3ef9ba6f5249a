package openapitest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
)

// Transport makes requests with base, http.DefaultTransport when nil, and
// fails the test for every request and answer that departs from the document.
// The answers it hands out are whole in memory. An answer that broke off is
// handed out as it is and not looked at.
//
// Requests are looked at when the service took them. Those that are meant to
// be taken all the same, though the document has no such thing, carry a
// context of Loose.
func Transport(t testing.TB, base http.RoundTripper) http.RoundTripper {
	t.Helper()
	v, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{t, v, base}
}

type transport struct {
	t         testing.TB
	validator *Validator
	base      http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := new(recording)
	response, err := t.base.RoundTrip(sent.of(r))
	if err != nil {
		return response, err
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		response.Body = &broken{bytes.NewReader(body), err, response.Body}
		return response, nil
	}
	_ = response.Body.Close() // it was read to its end
	response.Body = io.NopCloser(bytes.NewReader(body))

	x := Exchange{Request: r, Sent: sent.bytes(), Status: response.StatusCode, Header: response.Header, Body: body}
	if err := t.validator.Check(x); err != nil {
		t.t.Errorf("against the document: %v", err)
	}
	return response, nil
}

// recording keeps what is read of a request's body, which may go on after the
// answer has come.
type recording struct {
	mu   sync.Mutex
	kept bytes.Buffer
}

// of is r with a body that is recorded.
func (c *recording) of(r *http.Request) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	copied := r.Clone(r.Context())
	copied.Body = c.tee(r.Body)
	if r.GetBody != nil {
		copied.GetBody = func() (io.ReadCloser, error) {
			body, err := r.GetBody()
			if err != nil {
				return nil, err
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.kept.Reset()
			return c.tee(body), nil
		}
	}
	return copied
}

func (c *recording) tee(body io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.TeeReader(body, c), body}
}

// Write implements io.Writer.
func (c *recording) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept.Write(p)
}

func (c *recording) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.kept.Bytes())
}

// broken is a body that breaks off where the connection did.
type broken struct {
	read *bytes.Reader
	err  error
	body io.Closer
}

func (b *broken) Read(p []byte) (int, error) {
	n, err := b.read.Read(p)
	if err == io.EOF {
		err = b.err
	}
	return n, err
}

func (b *broken) Close() error { return b.body.Close() }

type looseKey struct{}

// Loose marks requests that the service takes though the document does not
// describe them: a state with a space around it, a lead type in capitals.
// Their answers are held to the document all the same.
func Loose(ctx context.Context) context.Context { return context.WithValue(ctx, looseKey{}, true) }

func isLoose(ctx context.Context) bool {
	loose, _ := ctx.Value(looseKey{}).(bool)
	return loose
}

// Callback fails the test when a callback that the operation at path posted
// departs from the document.
func Callback(t testing.TB, path string, r *http.Request, body []byte) {
	t.Helper()
	v, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.CheckCallback(path, r, body); err != nil {
		t.Error(fmt.Errorf("against the document: %w", err))
	}
}
