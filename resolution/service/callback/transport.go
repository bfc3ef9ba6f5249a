package callback

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxHeaderBytes = 64 << 10 // of an answer
	maxBodyBytes   = 64 << 10 // of an answer; the rest is not read
	idleConns      = 128      // kept open of each version of HTTP, of all receivers
	idleTimeout    = 30 * time.Second
	maxOld         = 4096 // remembered receivers of HTTP/1.1
	maxSessions    = 256  // remembered TLS sessions
)

// transport makes the connections of a Sender, all with the dialFuncs of the policy.
// It uses no proxy of the environment, no redirects and no cookies.
//
// It keeps connections for the next delivery: a new one for each took a quarter of the
// processor time of a callback. TLS sessions are resumed.
//
// If a receiver sends more after its answer, net/http closes the connection, and writes
// the beginning of it to the standard logger. It may be the body of the callback, so
// a program with a Sender discards what goes there.
type transport struct {
	http2, http1 *http.Transport

	mu  sync.Mutex
	old map[string]struct{} // hosts and ports that do not speak HTTP/2
}

// errNotHTTP2 ends a connection whose receiver did not choose HTTP/2.
var errNotHTTP2 = errors.New("the receiver does not speak HTTP/2")

// newTransport returns a transport that dials with plain for http, and with secure
// for https. It keeps at most idlePerHost connections of HTTP/1.1 to a receiver.
// Dialling fails when life ends.
func newTransport(life context.Context, plain, secure dialFunc, roots *x509.CertPool, idlePerHost int) *transport {
	sessions := tls.NewLRUClientSessionCache(maxSessions)
	protocols := func(set func(*http.Protocols, bool)) *http.Protocols {
		p := new(http.Protocols)
		set(p, true)
		return p
	}
	return &transport{
		http2: &http.Transport{
			DialTLSContext:         bounded(overTLS(secure, &tls.Config{RootCAs: roots, NextProtos: []string{"h2", "http/1.1"}}, keepHTTP2), life),
			Protocols:              protocols((*http.Protocols).SetHTTP2),
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second}, // a silent connection is not used again
			DisableCompression:     true,
			MaxIdleConns:           idleConns,
			MaxIdleConnsPerHost:    1,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: maxHeaderBytes,
		},
		http1: &http.Transport{
			DialContext:            bounded(askFirst(plain), life),
			DialTLSContext:         bounded(askFirst(overTLS(secure, &tls.Config{RootCAs: roots, NextProtos: []string{"http/1.1"}, ClientSessionCache: sessions}, nil)), life),
			Protocols:              protocols((*http.Protocols).SetHTTP1),
			DisableCompression:     true,
			MaxIdleConns:           idleConns,
			MaxIdleConnsPerHost:    idlePerHost,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: maxHeaderBytes,
		},
		old: map[string]struct{}{},
	}
}

// RoundTrip sends a request with HTTP/2 if the receiver speaks it.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "https" && !t.isOld(r.URL.Host) {
		response, err := t.http2.RoundTrip(r)
		if !errors.Is(err, errNotHTTP2) {
			return response, err
		}
		t.noteOld(r.URL.Host)
		r = r.Clone(r.Context())
		if r.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return t.http1.RoundTrip(r)
}

func (t *transport) isOld(host string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, found := t.old[host]
	return found
}

// noteOld remembers a receiver of HTTP/1.1. When there is no room, it drops another
// one, which is then tried with HTTP/2 again.
func (t *transport) noteOld(host string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for other := range t.old {
		if len(t.old) < maxOld {
			break
		}
		delete(t.old, other)
	}
	t.old[host] = struct{}{}
}

func (t *transport) close() {
	t.http2.CloseIdleConnections()
	t.http1.CloseIdleConnections()
}

// keepHTTP2 accepts connections of HTTP/2 only.
func keepHTTP2(conn *tls.Conn) error {
	if conn.ConnectionState().NegotiatedProtocol != "h2" {
		return errNotHTTP2
	}
	return nil
}

// askFirst returns a dialFunc whose connections fail if the other side sends first:
// it is not an HTTP server, and net/http would log what it sends.
func askFirst(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &askedConn{Conn: conn}, nil
	}
}

type askedConn struct {
	net.Conn
	asked atomic.Bool
}

func (c *askedConn) Write(p []byte) (int, error) {
	c.asked.Store(true)
	return c.Conn.Write(p)
}

func (c *askedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.asked.Load() {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}
