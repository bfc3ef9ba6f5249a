// Package badservice is a service of the Lead Resolution Service Interface that
// misbehaves on purpose and keeps a ledger of what it charged. Remote runs are
// tested and measured against it.
//
// The one thing to know before using it: its answer depends only on the
// operation and the key. Faults decide how, when and whether an answer arrives,
// and to whom, never what it says. So a run with faults must end with the same data
// as one without.
package badservice

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Options are the settings of a Service. DefaultOptions has those of a
// well-behaved one.
type Options struct {
	// APIKey is the bearer token of callers; empty accepts everybody.
	APIKey string
	// Seed makes the faults repeatable, if calls come in the same order.
	Seed uint64
	// HonourKeys repeats the first answer for a repeated idempotency key. Without
	// it, such a call is charged like any other.
	HonourKeys bool
	// KeyWindow is how long a key is remembered, which answers say; 0 is for ever.
	KeyWindow time.Duration
	// Credits is the balance; a negative one is unlimited.
	Credits int64
	// NoCredits are the statuses used in turn when the balance is used up: 400
	// with the code insufficient_credits, or 402.
	NoCredits []int
	// Unpriced omits the cost from answers.
	Unpriced bool
	// Matched is the share of keys that match, Refused the share that is refused
	// as invalid. All other keys are misses.
	Matched, Refused float64
	// Unnamed leaves out the payload, which repeats the question.
	Unnamed bool
	// Odd is the share of keys whose leads have values that are none.
	Odd float64
	// Latency is the time to make an answer.
	Latency time.Duration
	// Rate is how many calls a second are accepted, and Burst how many at once; 0
	// means no limit.
	Rate  float64
	Burst int
	// Polls is how many polls of a keyword search find it unfinished.
	Polls int
	// Hidden answers these polls with 404: in words, with Retry-After, or with
	// neither.
	Hidden bool
	// Echoed creates counts for callers with a callback address with an answer that
	// repeats the request, as the interface has it, and posts their result.
	Echoed bool
	// Secret signs callbacks: whsec_ and base64.
	Secret string
	Faults Faults
}

// DefaultOptions are those of a service without faults and limits.
func DefaultOptions() Options {
	return Options{HonourKeys: true, Credits: -1, NoCredits: []int{http.StatusBadRequest, http.StatusPaymentRequired}, Matched: 0.75}
}

// Service is the service, an http.Handler. It is safe for many goroutines.
type Service struct {
	options Options
	limit   *rate.Limiter // nil means none

	mu       sync.Mutex
	dice     *rand.Rand
	due      map[Fate]float64 // the probabilities of a kind of fault so far, added up, until it is met
	faults   Faults
	balance  int64
	turns    map[string]int      // how often each rotating choice was made
	kept     map[string]*promise // by path and idempotency key
	last     map[string]*sent    // by path
	jobs     map[string]*job     // by resolution id
	ledger   []Event
	billed   map[string]int
	calls    []Call
	denyFrom int // calls that still pass before calls are denied
	deny     int // calls to deny then; negative means all

	listener  listener
	callbacks callbacks
}

// New makes a service. It does not listen before Start.
func New(o Options) *Service {
	s := &Service{
		options: o,
		dice:    rand.New(rand.NewPCG(o.Seed, 0)),
		due:     map[Fate]float64{},
		faults:  o.Faults,
		balance: o.Credits,
		turns:   map[string]int{},
		kept:    map[string]*promise{},
		last:    map[string]*sent{},
		jobs:    map[string]*job{},
		billed:  map[string]int{},
	}
	if o.Rate > 0 {
		s.limit = rate.NewLimiter(rate.Limit(o.Rate), max(o.Burst, 1))
	}
	s.callbacks.quit = make(chan struct{})
	return s
}

// SetFaults replaces the faults.
func (s *Service) SetFaults(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

// Grant adds to the balance.
func (s *Service) Grant(credits int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.balance += credits
}

// Deny answers the given number of calls with 401, after it lets a number of
// calls pass. Negative times means all calls, until Deny(0, 0).
func (s *Service) Deny(after, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denyFrom, s.deny = after, times
}

// operation is one path of the interface.
type operation struct {
	name  string
	field string // of the identifier; "" for keyword calls
	price int64  // of a match, or of a lead
	kind  kind
}

type kind int

const (
	single kind = iota
	creation
	result
)

// operations by path, with their prices. Source: the service interface.
var operations = map[string]operation{
	"/lead/resolution/email_to_hem":         {"email_to_hem", "email", 1, single},
	"/lead/resolution/network_to_hem":       {"network_to_hem", "network_url", 1, single},
	"/lead/resolution/network_to_phone":     {"network_to_phone", "network_url", 3, single},
	"/lead/resolution/ip_to_company":        {"ip_to_company", "ip", 1, single},
	"/lead/enrichment":                      {"enrichment", "network_url", 2, single},
	"/lead/deanonymization":                 {"deanonymization", "ip", 3, single},
	"/lead/resolution/deanonymization":      {"deanonymization", "ip", 3, single},
	"/resolve/keyword_to_lead":              {"keyword_to_lead", "", 1, creation},
	"/resolve/keyword_to_lead/count":        {"keyword_to_lead_count", "", 1, creation},
	"/resolve/keyword_to_lead/result":       {"keyword_to_lead", "", 0, result},
	"/resolve/keyword_to_lead/count/result": {"keyword_to_lead_count", "", 0, result},
}

// question is a parsed call.
type question struct {
	operation
	key            string // the identifier in canonical form, the search as JSON, or the resolution id
	idempotencyKey string
	callback       string // address, empty without one
	sent           map[string]any
	fingerprint    [sha256.Size]byte
	path           string
}

// id is the resolution id: the same for the same question.
func (q *question) id() string {
	if q.kind == result {
		return q.key
	}
	return "res_" + hex(hashOf(q.name, q.key)[:16])
}

// ServeHTTP answers a call, or misbehaves.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.listener.enter() {
		panic(http.ErrAbortHandler) // the service is stopping
	}
	defer s.listener.leave()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		panic(http.ErrAbortHandler) // the caller is gone
	}
	if window := s.options.KeyWindow; window > 0 {
		w.Header().Set("Idempotency-Window", fmt.Sprint(window.Seconds()))
	}
	if r.URL.Path == "/account/balance" { // costs nothing, and is no call
		http.NotFound(w, r)
		return
	}
	q, refusal := read(r, body)
	f := s.judge(r, q, refusal)
	s.record(q, f)
	if c, is := r.Context().Value(connKey{}).(*conn); is {
		c.follow(f.kind)
	}
	f.carryOut(w, s.callbacks.quit)
}

// read parses a request; the refusal is nil if it is valid.
func read(r *http.Request, body []byte) (*question, *reply) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	op, known := operations[path]
	q := &question{operation: op, idempotencyKey: strings.Trim(r.Header.Get("Idempotency-Key"), `"`), fingerprint: sha256.Sum256(body), path: path}
	switch {
	case !known:
		return q, refuse(http.StatusNotFound, "not_found", "Unknown path.")
	case r.Method != http.MethodPost:
		return q, refuse(http.StatusMethodNotAllowed, "method_not_allowed", "Use POST.")
	case json.Unmarshal(body, &q.sent) != nil:
		return q, refuse(http.StatusBadRequest, "malformed_json", "The body is not a JSON object.")
	}
	q.callback, _ = q.sent["callback_url"].(string)
	switch q.kind {
	case single:
		q.key, _ = q.sent[q.field].(string)
		q.key = canonical(q.key)
	case creation:
		q.key = canonicalSearch(q.sent)
	case result:
		q.key, _ = q.sent["resolution_id"].(string)
	}
	if q.key == "" {
		return q, refuse(http.StatusBadRequest, "validation_error", "A required field is missing.")
	}
	return q, nil
}

// canonical removes the parts of an identifier that callers may write
// differently.
func canonical(identifier string) string {
	_, after, found := strings.Cut(identifier, "://")
	if !found {
		after = identifier
	}
	return strings.TrimSpace(after)
}

// chance is true with probability p, and once 1/p calls did not meet a kind of fault the next
// one does: tests that want each kind do not depend on luck. The caller holds the lock.
func (s *Service) chance(kind Fate, p float64) bool {
	if p <= 0 {
		return false
	}
	s.due[kind] += p
	if s.dice.Float64() >= p && s.due[kind] < 1 {
		return false
	}
	s.due[kind] = math.Inf(-1)
	return true
}

// turn rotates through the given number of choices. The caller holds the lock.
func (s *Service) turn(choice string, of int) int {
	n := s.turns[choice]
	s.turns[choice] = n + 1
	return n % of
}
