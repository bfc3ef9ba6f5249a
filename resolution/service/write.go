package service

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// Values of headers that are the same for every answer.
var (
	jsonType     = []string{"application/json"}
	htmlType     = []string{"text/html; charset=utf-8"}
	problemType  = []string{"application/problem+json"}
	noStore      = []string{"no-store"}
	noSniff      = []string{"nosniff"}
	thisVersion  = []string{interfaceVersion}
	replayedTrue = []string{"true"}
	zero         = []string{"0"}
)

// commonHeader sets what every answer has.
func commonHeader(h http.Header, requestID string) {
	h["X-Request-Id"] = []string{requestID}
	h["Cache-Control"] = noStore
	h["Api-Version"] = thisVersion
	h["X-Content-Type-Options"] = noSniff
}

func writeReply(w http.ResponseWriter, r *reply) {
	h := w.Header()
	if r.billed {
		h["X-Credits-Spent"] = count(r.spent)
		h["X-Credits-Remaining"] = count(r.remaining)
	}
	if r.replayed {
		h["Idempotent-Replayed"] = replayedTrue
	}
	setRetryAfter(h, r.retryAfter)
	writeBody(w, http.StatusOK, jsonType, r.body)
}

// writeProblem tells of a refusal: in an envelope, or alone for those who
// accept application/problem+json. Source: RFC 9457.
func writeProblem(w http.ResponseWriter, r *http.Request, requestID string, p *problem) {
	h := w.Header()
	setRetryAfter(h, p.retryAfter)
	if p.challenge != "" {
		h.Set("WWW-Authenticate", p.challenge)
	}
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	if p.closing {
		h.Set("Connection", "close")
	}
	inner := p.body(r.URL.EscapedPath(), requestID)
	if acceptsProblem(r.Header) {
		body, _ := json.Marshal(inner) // strings and numbers: no error
		writeBody(w, p.status, problemType, body)
		return
	}
	body, _ := json.Marshal(struct {
		Success bool        `json:"success"`
		Message string      `json:"message"`
		Error   problemBody `json:"error"`
	}{false, p.detail, inner})
	writeBody(w, p.status, jsonType, body)
}

func writeBody(w http.ResponseWriter, status int, contentType []string, body []byte) {
	h := w.Header()
	h["Content-Type"] = contentType
	h["Content-Length"] = count(int64(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // whoever went away does not hear of it
}

func setRetryAfter(h http.Header, d time.Duration) {
	if d > 0 {
		h["Retry-After"] = count(int64((d + time.Second - 1) / time.Second))
	}
}

func count(n int64) []string {
	if n == 0 {
		return zero
	}
	return []string{decimal(n)}
}

// acceptsProblem reports whether application/problem+json is asked for by
// name.
func acceptsProblem(h http.Header) bool {
	for _, accept := range h["Accept"] {
		for element := range strings.SplitSeq(accept, ",") {
			media, _, _ := strings.Cut(element, ";")
			if strings.EqualFold(strings.TrimSpace(media), "application/problem+json") {
				return true
			}
		}
	}
	return false
}
