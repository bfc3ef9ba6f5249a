// Package webhook posts JSON to an address that somebody else answers.
//
// The one thing to know before using it: the address may be a secret, so that no error repeats it,
// and nothing is posted anywhere else: a redirect is an answer like any other.
package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/leadetl/leadetl/internal/secret"
)

// StatusError is an answer without success.
type StatusError int

func (e StatusError) Error() string {
	if e >= 300 && e < 400 {
		return fmt.Sprintf("the answer is a redirect, status %d, which is not followed", int(e))
	}
	return fmt.Sprintf("the answer has status %d", int(e))
}

// ErrLate says that there was no answer before the context ended.
var ErrLate = errors.New("no answer in time")

// Client posts to one address.
type Client struct {
	address, key secret.Text
	http         http.Client
}

// New makes a client of an address. key, if not empty, is sent as a bearer token.
func New(address, key secret.Text) *Client {
	return &Client{address: address, key: key, http: http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Post posts a JSON text until ctx ends. It may be repeated.
func (c *Client) Post(ctx context.Context, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address.Reveal(), bytes.NewReader(body))
	if err != nil {
		return withoutAddress(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "leadetl")
	if !c.key.Empty() {
		request.Header.Set("Authorization", "Bearer "+c.key.Reveal())
	}
	response, err := c.http.Do(request)
	switch {
	case ctx.Err() != nil:
		return ErrLate
	case err != nil:
		return withoutAddress(err)
	}
	response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return StatusError(response.StatusCode)
	}
	return nil
}

// withoutAddress is the error inside one that repeats the address.
func withoutAddress(err error) error {
	if outer, is := errors.AsType[*url.Error](err); is {
		return outer.Err
	}
	return err
}

// Close closes the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }
