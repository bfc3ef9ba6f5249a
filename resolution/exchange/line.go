package exchange

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"hash/maphash"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/leadetl/leadetl/resolution"
)

// maxHeader bounds the headers of an answer, in bytes.
const maxHeader = 64 << 10

// Line is the way to one service. It sends each request at most once, follows no redirect and has
// no cookies. It is safe for concurrent use.
type Line struct {
	// HTTP is the transport; tests change it before the first request.
	HTTP    *http.Transport
	era     atomic.Int64 // how often answers were mixed up; older connections are not used
	seed    maphash.Seed // of digests of answers
	alike   atomic.Int64 // answers that were as the one before, and right
	timeout time.Duration
	most    int64
}

// NewLine makes a line for as many simultaneous requests as concurrency. timeout bounds a request
// from the dial to the last byte of its answer, and most the bytes of an answer. roots are trusted
// instead of the system's; nil trusts the system's.
func NewLine(concurrency int, timeout time.Duration, most int64, roots *x509.CertPool) *Line {
	l := &Line{timeout: timeout, most: most, seed: maphash.MakeSeed()}
	dialer := &net.Dialer{Timeout: min(timeout, 10*time.Second), KeepAlive: 30 * time.Second}
	l.HTTP = &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		OnProxyConnectResponse: heedProxy,
		DialContext:            l.Watched(dialer.DialContext),
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConns:           concurrency,
		MaxIdleConnsPerHost:    concurrency,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // Unpack has a bound
	}
	// HTTP/1.1: each request in flight has its own connection. HTTP/2 would put all
	// on one, and losing it would make all of them unknown.
	l.HTTP.Protocols = new(http.Protocols)
	l.HTTP.Protocols.SetHTTP1(true)
	return l
}

// Request is an HTTP request.
type Request struct {
	Method string
	URL    *url.URL
	Header http.Header
	Body   []byte
}

// Response is one HTTP response, read whole.
type Response struct {
	Status int
	Header http.Header
	Body   []byte        // without its encodings
	Fault  error         // why Body is not the whole plain answer
	Waited time.Duration // from the last byte sent
}

// Failure is a request without a whole answer.
type Failure struct {
	Class  resolution.Class // Denied, or Unavailable
	Detail string           // in our own words
	// Sent says that some of the request was sent.
	Sent bool
	// Status, Header and Body are those of an answer that broke off.
	Status int
	Header http.Header
	Body   []byte
	Cause  error // the context's error where that ended the request
}

func (f *Failure) Error() string { return f.Detail }

// Send sends a request once, and again on a new connection if that is safe: because
// none of it has left, or because the answer is that to something else that was left
// on a kept connection, which isGarbled tells. A caller calls Watch.Done when it is done with the
// answer. The error is a *Failure.
func (l *Line) Send(ctx context.Context, r Request, isGarbled func(Response) bool) (Response, *Watch, error) {
	w := &Watch{line: l}
	a, failed := l.try(ctx, l.HTTP, w, r)
	if failed != nil && w.unfit || failed == nil && w.reused && isGarbled(a) {
		if w.conn != nil {
			_ = w.conn.Close()
		}
		fresh := l.HTTP.Clone()
		fresh.DisableKeepAlives = true
		w.Done()
		w = &Watch{line: l}
		a, failed = l.try(ctx, fresh, w, r)
	}
	if failed != nil {
		w.Done()
		return Response{}, nil, failed
	}
	return a, w, nil
}

// Renew says that answers have been mixed up: no connection that is open is used for another
// request.
func (l *Line) Renew() {
	l.era.Add(1)
	l.HTTP.CloseIdleConnections()
}

// try sends one request, at most once.
func (l *Line) try(ctx context.Context, by *http.Transport, w *Watch, r Request) (Response, *Failure) {
	failed := func(class resolution.Class, detail string) (Response, *Failure) {
		return Response{}, &Failure{Class: class, Detail: detail, Sent: w.wrote(), Cause: ctx.Err()}
	}
	timed, done := context.WithTimeout(ctx, l.timeout)
	defer done()
	// net/http repeats a request by itself when a kept connection breaks, an
	// idempotency key is set and GetBody returns the body again. Without GetBody it
	// does not. What it repeats without a body, Watch.begin stops. It knows that a bytes.Reader is in memory, so it sends headers and
	// body in one write.
	body := io.ReadCloser(http.NoBody)
	if len(r.Body) > 0 {
		body = io.NopCloser(bytes.NewReader(r.Body))
	}
	response, err := by.RoundTrip((&http.Request{
		Method: r.Method, URL: r.URL, Host: r.URL.Host, Header: r.Header, Body: body,
		ContentLength: int64(len(r.Body)),
	}).WithContext(httptrace.WithClientTrace(timed, w.trace())))
	if err != nil && w.unfit {
		return failed(resolution.Unavailable, "the service answers before it is asked")
	}
	if err != nil {
		return failed(classOf(err), failure(err))
	}
	waited := w.waited()
	defer response.Body.Close()
	var text bytes.Buffer
	text.Grow(int(min(max(response.ContentLength, 0), 64<<10)) + bytes.MinRead)
	_, err = text.ReadFrom(io.LimitReader(response.Body, l.most+1))
	if err != nil {
		return Response{}, &Failure{
			Class: resolution.Unavailable, Detail: "the answer broke off", Sent: true,
			Status: response.StatusCode, Header: response.Header, Body: text.Bytes(), Cause: ctx.Err(),
		}
	}
	w.compare(response.StatusCode, response.Header, text.Bytes(), waited)
	a := Response{Status: response.StatusCode, Header: response.Header, Waited: waited}
	a.Body, a.Fault = Unpack(a.Header, text.Bytes(), l.most)
	return a, nil
}
