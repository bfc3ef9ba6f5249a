//go:build unix

package clitest

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

// Receiver takes callbacks, and holds each to the document and to the
// signatures of its organization's secrets, as a library that is not ours
// verifies them.
type Receiver struct {
	testing.TB
	url       string
	Elsewhere string // where it redirects to

	mu       sync.Mutex
	verifier []*standardwebhooks.Webhook // at least one of them has to agree
	arrivals []Arrival
	answer   func(Arrival) int // the status, 0 to break the connection off; nil is always 204
}

// Arrival is one callback that came, maybe not for the first time.
type Arrival struct {
	path, Ref  string // of the callback address
	ID         string // webhook-id
	signature  string
	SignedBy   []bool // by each of the secrets
	Body       string
	Resolution string
	Kind       string // resolution.completed
}

// NewReceiver starts a receiver of callbacks that are signed with one of the secrets.
func NewReceiver(t testing.TB, secrets ...string) *Receiver {
	t.Helper()
	r := &Receiver{TB: t}
	r.Trust(secrets...)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

// Trust replaces the secrets.
func (r *Receiver) Trust(secrets ...string) {
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

// Respond replaces what is answered.
func (r *Receiver) Respond(answer func(Arrival) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// Hook is the callback address for a call: the operation's path, by which the
// document knows the callback, and a name for the call.
func (r *Receiver) Hook(path, ref string) string { return r.url + path + "?ref=" + ref }

func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
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
	a := Arrival{
		path: q.URL.Path, Ref: q.URL.Query().Get("ref"), ID: q.Header.Get("webhook-id"), signature: q.Header.Get("webhook-signature"),
		Body: string(body), Resolution: said.Resolution.ID, Kind: said.Type,
	}
	status := r.take(a, q.Header)
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Location", r.Elsewhere)
	w.WriteHeader(status)
}

// take keeps an arrival and returns what to answer.
func (r *Receiver) take(a Arrival, h http.Header) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.verifier {
		a.SignedBy = append(a.SignedBy, v.Verify([]byte(a.Body), h) == nil)
	}
	if !slices.Contains(a.SignedBy, true) {
		r.Errorf("callback %s is signed with none of the organization's secrets", a.ID)
	}
	r.arrivals = append(r.arrivals, a)
	if r.answer == nil {
		return http.StatusNoContent
	}
	return r.answer(a)
}

// Came are the arrivals for one call, or all for "".
func (r *Receiver) Came(ref string) (found []Arrival) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.arrivals {
		if ref == "" || a.Ref == ref {
			found = append(found, a)
		}
	}
	return found
}

// Wait waits for n arrivals for one call.
func (r *Receiver) Wait(ref string, n int) []Arrival {
	r.Helper()
	var found []Arrival
	Until(r, "the callback arrives", func() bool {
		found = r.Came(ref)
		return len(found) >= n
	})
	return found
}

// Signatures counts the signatures of an arrival.
func (a Arrival) Signatures() int { return len(strings.Fields(a.signature)) }
