package badservice

import (
	"maps"
	"slices"
	"time"
)

// Event is a question that was answered and charged. A miss is an event too,
// with 0 credits.
type Event struct {
	Operation string
	// Key is the identifier without scheme, or the search as JSON with its
	// members in order, without callback_url and metadata.
	Key            string
	IdempotencyKey string
	Credits        int64
	At             time.Time
}

// Fate is how a call ended.
type Fate string

// The fates.
const (
	Answered    Fate = "answered"
	Replayed    Fate = "replayed"  // the stored answer again, under its idempotency key
	InFlight    Fate = "in_flight" // 409: the key's first call is in progress
	Reused      Fate = "reused"    // 422: the key's first call had another body
	Refused     Fate = "refused"   // 4xx: an invalid call or key
	Denied      Fate = "denied"    // 401
	Limited     Fate = "limited"   // 429
	NoCredits   Fate = "no_credits"
	Unavailable Fate = "unavailable" // 503
	ResetBefore Fate = "reset_before"
	Failed      Fate = "failed" // 500, charged
	ResetAfter  Fate = "reset_after"
	Truncated   Fate = "truncated"
	WrongTypes  Fate = "wrong_types"
	Mixed       Fate = "mixed"
	Doubled     Fate = "doubled"      // the answer is sent again as soon as it is complete
	DoubledLate Fate = "doubled_late" // it is sent again when the next request is there
	Slow        Fate = "slow"
	Later       Fate = "later"
)

// Call is a request that arrived.
type Call struct {
	Operation, Key, IdempotencyKey string
	Fate                           Fate
	At                             time.Time
}

// Ledger returns what was charged, in order.
func (s *Service) Ledger() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ledger)
}

// Billed counts the events of a key.
func (s *Service) Billed(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.billed[key]
}

// BilledKeys counts the events of each key.
func (s *Service) BilledKeys() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.billed)
}

// Spent adds up the ledger's credits.
func (s *Service) Spent() (credits int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.ledger {
		credits += e.Credits
	}
	return credits
}

// Seen counts the requests.
func (s *Service) Seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

// Calls returns all requests in order, by idempotency key; those without a key
// are under "".
func (s *Service) Calls() map[string][]Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	byKey := map[string][]Call{}
	for _, c := range s.calls {
		byKey[c.IdempotencyKey] = append(byKey[c.IdempotencyKey], c)
	}
	return byKey
}

// Fates counts the requests by how they ended.
func (s *Service) Fates() map[Fate]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[Fate]int{}
	for _, c := range s.calls {
		counts[c.Fate]++
	}
	return counts
}

// record stores a call.
func (s *Service) record(q *question, f *fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, Call{Operation: q.name, Key: q.key, IdempotencyKey: q.idempotencyKey, Fate: f.kind, At: time.Now()})
}

// charge takes the price of an answer. It returns false if the balance is less
// than the highest possible cost of the question. The caller holds the lock.
func (s *Service) charge(q *question, most, credits int64) bool {
	if s.options.Credits >= 0 {
		if s.balance < most {
			return false
		}
		s.balance -= credits
	}
	s.ledger = append(s.ledger, Event{Operation: q.name, Key: q.key, IdempotencyKey: q.idempotencyKey, Credits: credits, At: time.Now()})
	s.billed[q.key]++
	return true
}
