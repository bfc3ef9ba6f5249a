package service

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/resolution/service/listener"
	"github.com/leadetl/leadetl/resolution/service/metrics"
	"github.com/leadetl/leadetl/resolution/service/openapi"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// servePublic answers one request on the public listener.
func (s *Service) servePublic(w http.ResponseWriter, r *http.Request) {
	began := s.now()
	id := requestID(r.Header)
	w = wire.Compressing(w, r)
	wire.CommonHeader(w.Header(), id)
	if s.overTLS {
		w.Header()["Strict-Transport-Security"] = oneYear
	}
	if s.draining.Load() { // later calls should go to another instance
		w.Header()["Connection"] = []string{"close"}
	}
	path := trim(r.URL.EscapedPath()) // %2F is not /
	route := s.paths[path]
	name := "other"
	page, isPage := strings.CutPrefix(path, "/account")
	isPage = isPage && route == nil && s.account != nil && (page == "" || page[0] == '/')
	switch {
	case route != nil:
		name = route.name
		if route.method == http.MethodPost { // refusals have it too
			w.Header()["Idempotency-Window"] = s.window
		}
	case isPage:
		name = "dashboard"
	}
	status, answered, pageStatus := gone, false, http.StatusOK
	defer func() {
		// Flush also reports the errors of earlier writes. It comes last, so that the
		// request is counted before the caller has its answer.
		if answered && http.NewResponseController(w).Flush() != nil {
			s.metrics.AnswersLost.Inc()
		}
	}()
	c := &call{request: r, header: w.Header(), id: id, route: route, path: path, began: began}
	defer func() {
		took := s.now().Sub(began)
		if isPage && status == http.StatusOK {
			status = pageStatus // the page may show a refusal
		}
		s.metrics.Request(name, status, took)
		if c.account != nil {
			s.requests.Count(c.account.id, c.keyID(), string(route.operation), began, status)
		}
		s.logRequest(c, name, status, took)
	}()
	status = s.guard(w, r, id, name, func() error {
		if isPage {
			shown := &statusWriter{w, http.StatusOK}
			defer func() { pageStatus = shown.status }()
			return s.account.Serve(shown, r, page)
		}
		if route == nil {
			return s.serveStatic(w, r, path)
		}
		err := s.serveRoute(w, c)
		answered = err == nil
		return err
	})
}

// oneYear tells browsers to come back over TLS alone. Names below this one may be
// other services. Source: RFC 6797 6.1.
var oneYear = []string{"max-age=31536000"}

// logRequest logs a request with its id. At info level, it logs the requests
// that Options.LogRequests selects, and every failure of the service. At debug
// level, it logs all.
func (s *Service) logRequest(c *call, operation string, status int, took time.Duration) {
	level := slog.LevelDebug
	if n := s.options.LogRequests; n > 0 && (s.logged.Add(1)%uint64(n) == 0 || status >= 500) {
		level = slog.LevelInfo
	}
	if !s.log.Enabled(c.request.Context(), level) {
		return
	}
	organization := ""
	if c.account != nil {
		organization = c.account.public
	}
	s.log.Log(c.request.Context(), level, "request", "request", c.id, "operation", operation, "organization", organization, "status", status, "took", took)
}

// gone is the status that is counted for a request whose caller left before the
// answer.
const gone = 499

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// serveRoute answers a call of an operation. If it returns an error, the caller
// still has to send it.
func (s *Service) serveRoute(w http.ResponseWriter, c *call) error {
	if c.request.Method != c.route.method {
		return wire.NotAllowed(c.route.method)
	}
	c.route.retiring.header(c.header)
	if err := c.route.retired(c.began); err != nil {
		return err
	}
	c.out = getBuffer()
	defer func() { putBuffer(c.out) }()
	// A charge that is not made by then is canceled, because there would be no
	// time to write its answer.
	ctx, cancel := context.WithTimeout(c.request.Context(), s.options.Connections.WriteTimeout-writeSlack)
	defer cancel()
	c.request = c.request.WithContext(ctx)
	answer, err := s.answer(c)
	if err != nil {
		return err
	}
	wire.WriteReply(w, answer)
	return nil
}

// guard runs a handler, and answers its error or panic. It returns the status of
// the answer.
func (s *Service) guard(w http.ResponseWriter, r *http.Request, id, name string, handle func() error) (status int) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == http.ErrAbortHandler {
			panic(p)
		}
		status = wire.InternalError.Status
		s.log.Error("panic", "request", id, "operation", name, "stack", string(debug.Stack()))
		wire.WriteProblem(w, r, id, wire.AsProblem(errPanicked))
	}()
	var err error
	if listener.Ambiguous(r) {
		err = &wire.Problem{Kind: wire.ValidationError, Detail: "The request has both Content-Length and Transfer-Encoding. Send one of them.", Closing: true}
	} else {
		err = handle()
	}
	if err == nil {
		return http.StatusOK
	}
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the caller is gone
	}
	p := wire.AsProblem(err)
	if p.Kind.Status >= 500 && p.Cause != nil && s.complaints.Allow() {
		s.log.Error("request failed", "request", id, "operation", name, "error", p.Cause)
	}
	wire.WriteProblem(w, r, id, p)
	linger(w, r)
	return p.Kind.Status
}

// unreadBody is how much of a body net/http reads after an answer by itself.
const unreadBody = 200 << 10

// linger reads the rest of a large body after a refusal, so that a client that
// sends before it reads still sees the answer. HTTP/2 does not need this. A
// client that waits for 100 Continue sends no body.
func linger(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 || r.ContentLength >= 0 && r.ContentLength <= unreadBody || r.Header.Get("Expect") != "" {
		return
	}
	c := http.NewResponseController(w)
	if c.Flush() == nil {
		listener.Linger(struct {
			io.Reader
			*http.ResponseController
		}{r.Body, c})
	}
}

var errPanicked = errors.New("a handler panicked")

// serveInternal answers one request on the internal listener.
func (s *Service) serveInternal(w http.ResponseWriter, r *http.Request) {
	id := requestID(r.Header)
	wire.CommonHeader(w.Header(), id)
	path := trim(r.URL.EscapedPath())
	s.guard(w, r, id, "internal", func() error {
		if !isThisMachine(r.Host) {
			return wire.Refuse(wire.Forbidden, "The Host of the request is not this machine. Ask for localhost or a loopback address.")
		}
		if page, is := strings.CutPrefix(path, "/operator"); is && s.console != nil && (page == "" || page[0] == '/') {
			return s.console.Serve(w, r, page)
		}
		if strings.HasPrefix(path, "/internal/") {
			return s.countGuess(s.operator.Serve(w, r, path[len("/internal/"):]))
		}
		return s.serveProbe(w, r, path)
	})
}

// isThisMachine reports whether a Host names this machine. Otherwise a web page
// in a local browser could reach the listener through its own DNS name.
func isThisMachine(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}

// countGuess counts a wrong system key against the limit of failed
// authentications, which all clients on this machine share. The right key is
// never delayed.
func (s *Service) countGuess(err error) error {
	p, ok := errors.AsType[*wire.Problem](err)
	if !ok || p.Kind != wire.InvalidCredentials {
		return err
	}
	s.metrics.FailedAuth.WithLabelValues(metrics.WrongSystemKey).Inc()
	if d := s.guesses.Take("x-sys-key", s.now()); !d.Allowed {
		p = wire.Refuse(wire.RateLimited, "Too many system keys were wrong. Try again later.")
		p.RetryAfter = d.RetryAfter
	}
	return p
}

// serveMetrics answers one request on the listener for metrics.
func (s *Service) serveMetrics(w http.ResponseWriter, r *http.Request) {
	id := requestID(r.Header)
	wire.CommonHeader(w.Header(), id)
	s.guard(w, r, id, "metrics", func() error { return s.serveProbe(w, r, trim(r.URL.EscapedPath())) })
}

// serveProbe answers monitoring: metrics and health checks.
func (s *Service) serveProbe(w http.ResponseWriter, r *http.Request, path string) error {
	switch path {
	case "/metrics":
		s.metrics.Handler().ServeHTTP(w, r)
		return nil
	case "/healthz", "/readyz":
		return s.serveStatic(w, r, path)
	}
	return wire.ErrNothingHere
}

// serveStatic answers the addresses that need no credentials.
func (s *Service) serveStatic(w http.ResponseWriter, r *http.Request, path string) error {
	switch path {
	case "/healthz", "/readyz", "/openapi.json", "/docs":
	default:
		return wire.ErrNothingHere
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return wire.NotAllowed(http.MethodGet, http.MethodHead)
	}
	switch path {
	case "/readyz":
		if err := s.ready(r.Context()); err != nil {
			return err
		}
		fallthrough
	case "/healthz":
		wire.WriteBody(w, http.StatusOK, wire.JSONType, []byte(`{"status":"ok"}`))
	case "/openapi.json":
		s.document().Write(w, r, wire.JSONType)
	case "/docs":
		w.Header().Set("Content-Security-Policy", openapi.ContentSecurityPolicy())
		s.docs().Write(w, r, wire.HTMLType)
	}
	return nil
}

// readiness is the last check of the state.
type readiness struct {
	mu      sync.Mutex
	checked time.Time
	err     error
}

const (
	// checkEvery bounds how often the state is checked, because anyone may ask.
	checkEvery = time.Second
	// checkTimeout is how long a check waits for its turn.
	checkTimeout = 2 * time.Second
)

// ready returns why the service cannot take requests, nil when it can.
func (s *Service) ready(ctx context.Context) error {
	if s.draining.Load() {
		return wire.Refuse(wire.Unavailable, "The service is stopping.")
	}
	r := &s.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	now := s.now()
	if age := now.Sub(r.checked); age >= 0 && age < checkEvery {
		return r.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	err := s.state.Check(ctx, now)
	if err != nil {
		err = &wire.Problem{Kind: wire.Unavailable, Detail: "The state cannot be read and written.", RetryAfter: checkEvery, Cause: err}
	}
	r.checked, r.err = now, err
	return err
}

// requestID returns the caller's X-Request-Id if it is valid, otherwise a new one.
func requestID(h http.Header) string {
	if given := h["X-Request-Id"]; len(given) == 1 && isRequestID(given[0]) {
		return given[0]
	}
	return newRequestID()
}

// headerOfRefusal returns the headers of an answer to what is no request.
func headerOfRefusal() http.Header {
	h := http.Header{}
	wire.CommonHeader(h, newRequestID())
	return h
}

func newRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return "req_" + hex.EncodeToString(b[:])
}

// isRequestID holds for 1 to 128 letters, digits and . _ -
func isRequestID(s string) bool {
	if len(s) == 0 || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}
