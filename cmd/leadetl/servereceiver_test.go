//go:build unix

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/leadetl/leadetl/resolution/service/openapi/openapitest"
)

// receiver takes callbacks, and holds each to the document and to the
// signatures of its organization's secrets, as a library that is not ours
// verifies them.
type receiver struct {
	testing.TB
	url       string
	elsewhere string // where it redirects to

	mu       sync.Mutex
	verifier []*standardwebhooks.Webhook // at least one of them has to agree
	arrivals []arrival
	answer   func(arrival) int // the status, 0 to break the connection off; nil is always 204
}

// arrival is one callback that came, maybe not for the first time.
type arrival struct {
	path, ref  string // of the callback address
	id         string // webhook-id
	signature  string
	signedBy   []bool // by each of the secrets
	body       string
	resolution string
	kind       string // resolution.completed
}

func newReceiver(t testing.TB, secrets ...string) *receiver {
	t.Helper()
	r := &receiver{TB: t}
	r.trust(secrets...)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// trust replaces the secrets.
func (r *receiver) trust(secrets ...string) {
	r.Helper()
	var verifier []*standardwebhooks.Webhook
	for _, secret := range secrets {
		v, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			r.Fatal("not a secret") // which is not shown
		}
		verifier = append(verifier, v)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verifier = verifier
}

// respond replaces what is answered.
func (r *receiver) respond(answer func(arrival) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// hook is the callback address for a call: the operation's path, by which the
// document knows the callback, and a name for the call.
func (r *receiver) hook(path, ref string) string { return r.url + path + "?ref=" + ref }

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // its sender was killed
	}
	openapitest.Callback(r, q.URL.Path, q, body)
	var said struct {
		Type       string `json:"type"`
		Resolution struct {
			ID string `json:"id"`
		} `json:"resolution"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		r.Errorf("callback: %v", err)
	}
	a := arrival{
		path: q.URL.Path, ref: q.URL.Query().Get("ref"), id: q.Header.Get("webhook-id"), signature: q.Header.Get("webhook-signature"),
		body: string(body), resolution: said.Resolution.ID, kind: said.Type,
	}
	status := r.take(a, q.Header)
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Location", r.elsewhere)
	w.WriteHeader(status)
}

// take keeps an arrival and returns what to answer.
func (r *receiver) take(a arrival, h http.Header) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.verifier {
		a.signedBy = append(a.signedBy, v.Verify([]byte(a.body), h) == nil)
	}
	if !slices.Contains(a.signedBy, true) {
		r.Errorf("callback %s is signed with none of the organization's secrets", a.id)
	}
	r.arrivals = append(r.arrivals, a)
	if r.answer == nil {
		return http.StatusNoContent
	}
	return r.answer(a)
}

// came are the arrivals for one call, or all for "".
func (r *receiver) came(ref string) (found []arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.arrivals {
		if ref == "" || a.ref == ref {
			found = append(found, a)
		}
	}
	return found
}

// wait waits for n arrivals for one call.
func (r *receiver) wait(ref string, n int) []arrival {
	r.Helper()
	var found []arrival
	until(r, "the callback arrives", func() bool {
		found = r.came(ref)
		return len(found) >= n
	})
	return found
}

// signatures counts the signatures of an arrival.
func (a arrival) signatures() int { return len(strings.Fields(a.signature)) }
