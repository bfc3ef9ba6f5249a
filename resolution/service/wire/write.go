package wire

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Header values, shared by all answers.
var (
	JSONType     = []string{"application/json"}
	HTMLType     = []string{"text/html; charset=utf-8"}
	problemType  = []string{"application/problem+json"}
	noStore      = []string{"no-store"}
	noSniff      = []string{"nosniff"}
	thisVersion  = []string{Version}
	replayedTrue = []string{"true"}
	testTrue     = []string{"true"}
	zero         = []string{"0"}
)

// Reply is an answer with status 200.
type Reply struct {
	Body       []byte
	RetryAfter time.Duration // 0: no header
	Billed     bool          // spent and remaining credits are sent
	Spent      int64         // credits
	Remaining  int64
	Replayed   bool // the body was stored under the Idempotency-Key
}

// CommonHeader sets the headers of every answer.
func CommonHeader(h http.Header, requestID string) {
	h["X-Request-Id"] = []string{requestID}
	h["Cache-Control"] = noStore
	h["Api-Version"] = thisVersion
	h["X-Content-Type-Options"] = noSniff
}

// MarkTest marks an answer to a test key.
func MarkTest(h http.Header) { h["X-Test-Key"] = testTrue }

// WriteReply writes an answer with status 200.
func WriteReply(w http.ResponseWriter, r *Reply) {
	h := w.Header()
	if r.Billed {
		h["X-Credits-Spent"] = count(r.Spent)
		h["X-Credits-Remaining"] = count(r.Remaining)
	}
	if r.Replayed {
		h["Idempotent-Replayed"] = replayedTrue
	}
	SetRetryAfter(h, r.RetryAfter)
	WriteBody(w, http.StatusOK, JSONType, r.Body)
}

// WriteProblem writes a refusal in an envelope, or without one for callers that
// accept application/problem+json. Source: RFC 9457.
func WriteProblem(w http.ResponseWriter, r *http.Request, requestID string, p *Problem) {
	h := w.Header()
	SetRetryAfter(h, p.RetryAfter)
	if p.Kind.Status == http.StatusTooManyRequests && p.RetryAfter > 0 {
		agree(h)
	}
	if p.Challenge != "" {
		h.Set("WWW-Authenticate", p.Challenge)
	}
	if p.Allow != "" {
		h.Set("Allow", p.Allow)
	}
	if p.Closing {
		h.Set("Connection", "close")
	}
	inner := p.Body(r.URL.EscapedPath(), requestID)
	if acceptsProblem(r.Header) {
		body, _ := json.Marshal(inner) // strings and numbers: no error
		WriteBody(w, p.Kind.Status, problemType, body)
		return
	}
	body, _ := json.Marshal(struct {
		Success bool        `json:"success"`
		Message string      `json:"message"`
		Error   ProblemBody `json:"error"`
	}{false, p.Detail, inner})
	WriteBody(w, p.Kind.Status, JSONType, body)
}

// agree makes the headers of a rate, which has calls left, say what Retry-After says of
// another limit: a client may read any of them.
func agree(h http.Header) {
	rate := h.Get("Ratelimit")
	if rate == "" {
		return
	}
	policy, _, _ := strings.Cut(rate, ";")
	h["X-Ratelimit-Remaining"], h["X-Ratelimit-Reset"] = zero, h["Retry-After"]
	h["Ratelimit"] = []string{policy + ";r=0;t=" + h.Get("Retry-After")}
}

// WriteBody writes an answer, with gzip if it is large and w is Compressing.
func WriteBody(w http.ResponseWriter, status int, contentType []string, body []byte) {
	if len(body) >= minCompressed {
		w.Header()["Vary"] = vary
		if _, ok := w.(compressing); ok {
			w.Header()["Content-Encoding"] = zipped
			body = compress(body)
		}
	}
	writePlain(w, status, contentType, body)
}

func writePlain(w http.ResponseWriter, status int, contentType []string, body []byte) {
	h := w.Header()
	h["Content-Type"] = contentType
	h["Content-Length"] = count(int64(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller may be gone
}

// SetRetryAfter says when to ask again, in whole seconds; 0 sets nothing.
func SetRetryAfter(h http.Header, d time.Duration) {
	if d > 0 {
		h["Retry-After"] = count(int64((d + time.Second - 1) / time.Second))
	}
}

func count(n int64) []string {
	if n == 0 {
		return zero
	}
	return []string{strconv.FormatInt(n, 10)}
}
