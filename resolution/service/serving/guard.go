package serving

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"

	"golang.org/x/time/rate"

	"github.com/leadetl/leadetl/resolution/service/wire"
)

// Gone is the status that is counted for a request whose caller left before the
// answer.
const Gone = 499

// StatusWriter notes the status of an answer, http.StatusOK at first.
type StatusWriter struct {
	http.ResponseWriter
	Status int
}

// WriteHeader implements http.ResponseWriter.
func (w *StatusWriter) WriteHeader(status int) {
	w.Status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *StatusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Guard answers the errors and panics of handlers.
type Guard struct {
	Log *slog.Logger
	// Complaints bounds the log lines about failed requests.
	Complaints *rate.Limiter
}

// Run runs a handler, and answers its error or panic. It returns the status of
// the answer.
func (g Guard) Run(w http.ResponseWriter, r *http.Request, id, name string, handle func() error) (status int) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == http.ErrAbortHandler {
			panic(p)
		}
		status = wire.InternalError.Status
		g.Log.Error("panic", "request", id, "operation", name, "stack", string(debug.Stack()))
		wire.WriteProblem(w, r, id, wire.AsProblem(errPanicked))
	}()
	var err error
	if Ambiguous(r) {
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
	if p.Kind.Status >= 500 && p.Cause != nil && g.Complaints.Allow() {
		g.Log.Error("request failed", "request", id, "operation", name, "error", p.Cause)
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
		Linger(struct {
			io.Reader
			*http.ResponseController
		}{r.Body, c})
	}
}

var errPanicked = errors.New("a handler panicked")

// RequestID returns the caller's X-Request-Id if it is valid, otherwise a new one.
func RequestID(h http.Header) string {
	if given := h["X-Request-Id"]; len(given) == 1 && isRequestID(given[0]) {
		return given[0]
	}
	return newRequestID()
}

// headerOfRefusal returns the headers of an answer to a malformed request.
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
