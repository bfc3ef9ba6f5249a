package service

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/leadetl/leadetl/resolution/service/admission"
	"github.com/leadetl/leadetl/resolution/service/openapi"
	"github.com/leadetl/leadetl/resolution/service/serving"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// servePublic answers one request on the public listener.
func (s *Service) servePublic(w http.ResponseWriter, r *http.Request) {
	began := s.clock.now()
	id := serving.RequestID(r.Header)
	w = wire.Compressing(w, r)
	wire.CommonHeader(w.Header(), id)
	if s.overTLS {
		w.Header()["Strict-Transport-Security"] = oneYear
	}
	if s.health.Draining() { // later calls should go to another instance
		w.Header()["Connection"] = []string{"close"}
	}
	path := trim(r.URL.EscapedPath()) // %2F is not /
	route := s.paths[path]
	name := "other"
	page, isPage := strings.CutPrefix(path, "/account")
	isPage = isPage && route == nil && s.dashboard != nil && (page == "" || page[0] == '/')
	switch {
	case route != nil:
		name = route.name
		if route.method == http.MethodPost { // refusals have it too
			w.Header()["Idempotency-Window"] = s.window
		}
	case isPage:
		name = "dashboard"
	}
	status, answered, pageStatus := serving.Gone, false, http.StatusOK
	defer func() {
		// Flush also reports the errors of earlier writes. It comes last, so that the
		// request is counted before the caller has its answer.
		if answered && http.NewResponseController(w).Flush() != nil {
			s.metrics.AnswersLost.Inc()
		}
	}()
	c := &admission.Call{Request: r, Header: w.Header(), ID: id, Path: path, Began: began}
	if route != nil {
		c.Operation, c.Class = route.operation, route.class
	}
	defer func() {
		took := s.clock.now().Sub(began)
		if isPage && status == http.StatusOK {
			status = pageStatus // the page may show a refusal
		}
		s.metrics.Request(name, status, took)
		if status >= 500 && path != "/readyz" {
			s.health.Doubt()
		}
		if a := c.Caller.Account; a != nil {
			s.desk.Requests.Count(a.ID, c.Caller.KeyID(), string(c.Operation), began, status)
		}
		s.logRequest(c, name, status, took)
	}()
	status = s.guard.Run(w, r, id, name, func() error {
		if isPage {
			shown := &serving.StatusWriter{ResponseWriter: w, Status: http.StatusOK}
			defer func() { pageStatus = shown.Status }()
			return s.dashboard.Serve(shown, r, page)
		}
		if route == nil {
			return s.serveStatic(w, r, path)
		}
		err := s.noteDamage(s.serveRoute(w, c, route))
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
func (s *Service) logRequest(c *admission.Call, operation string, status int, took time.Duration) {
	level := slog.LevelDebug
	if n := s.options.LogRequests; n > 0 && (s.logged.Add(1)%uint64(n) == 0 || status >= 500) {
		level = slog.LevelInfo
	}
	if !s.log.Enabled(c.Request.Context(), level) {
		return
	}
	organization := ""
	if a := c.Caller.Account; a != nil {
		organization = a.Public
	}
	s.log.Log(c.Request.Context(), level, "request", "request", c.ID, "operation", operation, "organization", organization, "status", status, "took", took)
}

// answer runs the checks of a call, in this order, and then its handler. The
// order is a promise: a refused call costs nothing, and a 429 is never billed.
// Handlers continue with validation, the callback address and credits.
func (s *Service) answer(c *admission.Call, handle admission.Handler) (*wire.Reply, error) {
	if err := s.gate.Admit(c); err != nil {
		return nil, err
	}
	if c.Request.Method == http.MethodGet {
		return handle(c)
	}
	if err := s.gate.Read(c); err != nil {
		return nil, err
	}
	if err := s.answering.Offers(c); err != nil {
		return nil, err
	}
	return s.gate.Once(c, handle)
}

// serveRoute answers a call of an operation. If it returns an error, the caller
// still has to send it.
func (s *Service) serveRoute(w http.ResponseWriter, c *admission.Call, r *route) error {
	if c.Request.Method != r.method {
		return wire.NotAllowed(r.method)
	}
	r.retiring.header(c.Header)
	if err := r.retired(c.Began); err != nil {
		return err
	}
	c.Out = admission.GetBuffer()
	defer func() { admission.PutBuffer(c.Out) }()
	// A charge that is not made by then is canceled, because there would be no
	// time to write its answer.
	ctx, cancel := context.WithTimeout(c.Request.Context(), s.options.Connections.WriteTimeout-writeSlack)
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	answer, err := s.answer(c, r.handle)
	if err != nil {
		return err
	}
	wire.WriteReply(w, answer)
	return nil
}

// serveInternal answers one request on the internal listener.
func (s *Service) serveInternal(w http.ResponseWriter, r *http.Request) {
	id := serving.RequestID(r.Header)
	wire.CommonHeader(w.Header(), id)
	path := trim(r.URL.EscapedPath())
	s.guard.Run(w, r, id, "internal", func() error {
		if !isThisMachine(r.Host) {
			return wire.Refuse(wire.Forbidden, "The Host of the request is not this machine. Ask for localhost or a loopback address.")
		}
		if page, is := strings.CutPrefix(path, "/operator"); is && s.console != nil && (page == "" || page[0] == '/') {
			return s.console.Serve(w, r, page)
		}
		if strings.HasPrefix(path, "/internal/") {
			return s.gate.CountSystemKey(s.operator.Serve(w, r, path[len("/internal/"):]))
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

// serveMetrics answers one request on the listener for metrics.
func (s *Service) serveMetrics(w http.ResponseWriter, r *http.Request) {
	id := serving.RequestID(r.Header)
	wire.CommonHeader(w.Header(), id)
	s.guard.Run(w, r, id, "metrics", func() error { return s.serveProbe(w, r, trim(r.URL.EscapedPath())) })
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
	docs, isDocs := strings.CutPrefix(path+"/", "/docs/")
	docs = strings.TrimSuffix(docs, "/")
	switch path {
	case "/healthz", "/readyz", "/openapi.json":
	case "/":
		if !strings.Contains(r.Header.Get("Accept"), "text/html") {
			return wire.ErrNothingHere
		}
	default:
		if !isDocs || s.docs()[docs] == nil {
			return wire.ErrNothingHere
		}
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return wire.NotAllowed(http.MethodGet, http.MethodHead)
	}
	switch path {
	case "/readyz":
		if err := s.health.Ready(r.Context()); err != nil {
			return err
		}
		fallthrough
	case "/healthz":
		wire.WriteBody(w, http.StatusOK, wire.JSONType, []byte(`{"status":"ok"}`))
	case "/openapi.json":
		s.document().Write(w, r, wire.JSONType)
	case "/": // in a browser
		http.Redirect(w, r, "/docs", http.StatusFound)
	default:
		w.Header().Set("Content-Security-Policy", openapi.ContentSecurityPolicy())
		s.docs()[docs].Write(w, r, wire.HTMLType)
	}
	return nil
}
