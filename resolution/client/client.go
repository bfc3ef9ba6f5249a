// Package client calls a service of the Lead Resolution Service Interface over
// HTTP: strict in what it sends, tolerant in what it accepts.
//
// The one thing to know before using it: a call is sent at most once. The client
// repeats a request only if the service surely did not read it, and follows no redirect. An error says whether the
// service may have seen the call (resolution.CallError.Sent), which decides whether
// the caller may repeat it.
package client

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
	"github.com/leadetl/leadetl/transforms/profile"
)

// Options say which service is called, and how.
type Options struct {
	// BaseURL is the service's address: http or https, with a path if the
	// service has one, without user, query and fragment.
	BaseURL string
	// Key is the API key or token.
	Key secret.Text
	// Reread reads the key again after a 401: keys rotate. nil if Key cannot change.
	Reread func() (secret.Text, error)
	// HeaderName is the header for Key. Authorization, the default, sends it as a
	// bearer token; any other header sends it as it is.
	HeaderName string
	// CallbackURL is sent with every call that may have one; empty sends none.
	CallbackURL string
	// Concurrency is the maximum of simultaneous calls, and of kept connections.
	Concurrency int
	// Timeout bounds a call from the dial to the last byte of the answer.
	Timeout time.Duration
	// RootCAs are trusted instead of the system's; nil trusts the system's.
	RootCAs *x509.CertPool
	// Asked are the questions of the run; nil for those of this client alone.
	Asked *exchange.Asked
}

// DefaultOptions are the defaults of the command line, without BaseURL and Key.
func DefaultOptions() Options {
	return Options{HeaderName: "Authorization", Concurrency: 64, Timeout: 30 * time.Second}
}

// Validate joins everything that is wrong with o.
func (o Options) Validate() error {
	var errs []error
	if _, err := o.base(); err != nil {
		errs = append(errs, err)
	}
	if err := o.checkKey(); err != nil {
		errs = append(errs, err)
	}
	if o.HeaderName == "" || strings.ContainsFunc(o.HeaderName, notToken) {
		errs = append(errs, fmt.Errorf("%q is not a header name", o.HeaderName))
	}
	if o.Concurrency < 1 {
		errs = append(errs, fmt.Errorf("concurrency %d is less than 1", o.Concurrency))
	}
	if o.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("timeout %s is not positive", o.Timeout))
	}
	return errors.Join(errs...)
}

func (o Options) checkKey() error {
	switch {
	case o.Key.Empty():
		return errors.New("no API key")
	case strings.ContainsFunc(o.Key.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("the API key has characters that a header cannot carry")
	}
	return nil
}

// notToken reports whether r cannot be part of a header name.
// Source: RFC 9110, 5.6.2.
func notToken(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
}

func (o Options) base() (*url.URL, error) {
	u, err := url.Parse(o.BaseURL)
	switch {
	case err != nil:
		return nil, errors.New("the service's address is not a URL") // the error would repeat it, user and all
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.Opaque != "":
		return nil, errors.New("the service's address is not of the form https://host or https://host/path")
	case u.User != nil:
		return nil, errors.New("the service's address names a user; a key goes into a file or the environment")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("the service's address has a query or a fragment")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

// Client calls one service. It is safe for concurrent use.
type Client struct {
	base      *url.URL
	options   Options
	line      *exchange.Line
	key       atomic.Pointer[secret.Text]
	companies exchange.Companies // of all answers
}

// New makes a client without opening a connection. The error joins everything that
// is wrong with o and is resolution.ErrInvalid.
func New(o Options) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
	}
	base, err := o.base()
	if err != nil {
		return nil, err
	}
	if o.Asked == nil {
		o.Asked = exchange.NewAsked(profile.DefaultRules().Hosts)
	}
	c := &Client{base: base, line: exchange.NewLine(o.Concurrency, o.Timeout, maxBody, o.RootCAs)}
	o.HeaderName = http.CanonicalHeaderKey(o.HeaderName)
	c.options = o
	c.key.Store(&o.Key)
	return c, nil
}

// heedStatus reads the key again if it was refused.
func (c *Client) heedStatus(status int, used *secret.Text) {
	if status == http.StatusUnauthorized {
		c.rereadKey(used)
	}
}

// rereadKey reads the key again if used is the last one that was read. A key that
// cannot be read, or is not one, leaves the old one in use.
func (c *Client) rereadKey(used *secret.Text) {
	if c.options.Reread == nil || c.key.Load() != used {
		return
	}
	if key, err := c.options.Reread(); err == nil && (Options{Key: key}).checkKey() == nil {
		c.key.CompareAndSwap(used, &key)
	}
}

// Close closes the idle connections.
func (c *Client) Close() { c.line.HTTP.CloseIdleConnections() }
