package wire

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestHeadersOfARefusalAgree: a 429 because of one limit does not say that calls are left of
// another.
func TestHeadersOfARefusalAgree(t *testing.T) {
	for _, c := range []struct {
		name               string
		problem            *Problem
		rate, left, window string
	}{
		{"of another limit", &Problem{Kind: TooManyActive, RetryAfter: 4500 * time.Millisecond}, `"create";r=0;t=5`, "0", "5"},
		{"another refusal", &Problem{Kind: ValidationError}, `"create";r=19;t=1`, "19", "1"},
		{"a failure", &Problem{Kind: Unavailable, RetryAfter: time.Hour}, `"create";r=19;t=1`, "19", "1"},
	} {
		w := httptest.NewRecorder()
		h := w.Header()
		h.Set("RateLimit", `"create";r=19;t=1`)
		h.Set("X-RateLimit-Remaining", "19")
		h.Set("X-RateLimit-Reset", "1")
		WriteProblem(w, httptest.NewRequest(http.MethodPost, "/", nil), "req_1", c.problem)
		if h.Get("RateLimit") != c.rate || h.Get("X-RateLimit-Remaining") != c.left || h.Get("X-RateLimit-Reset") != c.window {
			t.Errorf("%s: %v", c.name, h)
		}
	}
	w := httptest.NewRecorder()
	WriteProblem(w, httptest.NewRequest(http.MethodPost, "/", nil), "req_1", &Problem{Kind: RateLimited, RetryAfter: time.Second})
	if w.Header().Get("RateLimit") != "" || w.Header().Get("Retry-After") != "1" {
		t.Errorf("without a rate: %v", w.Header())
	}
}
