package stats

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
)

// The classes of calls that got an answer; the others are resolution.Class.
const (
	CallAnswered = "answered" // with data, without a match, or with a refusal of this one record
	CallReplayed = "replayed" // as the same call was answered before, for nothing
	CallPending  = "pending"  // with the promise of an answer that comes later
)

// CallCounters counts what a run asks of a service and what comes of it. The zero
// value is ready; its methods are safe from any goroutine and lock nothing
// that a call waits for.
type CallCounters struct {
	asked, closed, matched        atomic.Int64
	stored, duplicates            atomic.Int64
	credits                       atomic.Int64
	unknown, refused, quarantined atomic.Int64
	parked                        atomic.Int64
	earlierCalls, earlierCredits  atomic.Int64
	calls, retries                tallies
	latency                       latencies
	paced                         atomic.Pointer[func() pace.Snapshot]
}

// CallSnapshot is a look at a CallCounters. Its times are not in its JSON: who writes
// them says in which unit.
type CallSnapshot struct {
	// Asked are the distinct questions of the rows so far. Closed of them need
	// no more work, whatever came of them: Matched of those found something,
	// and Stored were answered from the store. Duplicates are rows that shared
	// another's question.
	Asked      int64 `json:"asked"`
	Closed     int64 `json:"closed"`
	Matched    int64 `json:"matched"`
	Stored     int64 `json:"stored"`
	Duplicates int64 `json:"twins"`
	// Calls are the requests that left, by how they ended in ByClass.
	Calls   int64            `json:"calls"`
	ByClass map[string]int64 `json:"by_class"`
	// Retries are questions sent again, by the class of the error that led to
	// it.
	Retries map[string]int64 `json:"retries"`
	// Credits are what the answers of this run cost.
	Credits int64 `json:"credits"`
	// EarlierCalls and EarlierCredits are what earlier runs of the same
	// unfinished dataset count with: a call for each question, and the credits
	// of those that were answered. What the others cost counts when their answer
	// comes.
	EarlierCalls   int64 `json:"earlier_calls"`
	EarlierCredits int64 `json:"earlier_credits"`
	// Unknown calls may have been billed and have no answer; Parked ones wait
	// for an answer that was promised.
	Unknown int64 `json:"unknown"`
	Parked  int64 `json:"parked"`
	// Refused are questions that the service would not work on.
	Refused int64 `json:"refused"`
	// Quarantined are members of answers left out because they were not what
	// they claimed to be.
	Quarantined int64 `json:"quarantined"`

	// P50, P95 and P99 are quantiles of the time from a request to its answer,
	// of calls that got one, right to 2%; 0 without any.
	P50 time.Duration `json:"-"`
	P95 time.Duration `json:"-"`
	P99 time.Duration `json:"-"`

	// Waits is for how long anybody waited before a call, by pace.Reason.
	Waits map[string]time.Duration `json:"-"`
	// Rate is how many calls a second may leave now; 0 where none limits.
	Rate     float64 `json:"-"`
	InFlight int     `json:"-"`
	Waiting  int     `json:"-"`
	// Reason is what calls wait for now (pace.Reason), Until when that ends:
	// zero where it is not known.
	Reason string    `json:"-"`
	Until  time.Time `json:"-"`
	// DeadSince is since when the service gives no answer; zero while it does.
	DeadSince time.Time `json:"-"`
	// AskedToWait is what the service asked us to wait when that was longer
	// than we do; 0 otherwise.
	AskedToWait time.Duration `json:"-"`
}

// Asked counts distinct questions of rows.
func (m *CallCounters) Asked(n int64) { m.asked.Add(n) }

// Closed counts a question that needs no more work in this run: answered,
// failed or given up.
func (m *CallCounters) Closed(matched bool) {
	m.closed.Add(1)
	if matched {
		m.matched.Add(1)
	}
}

// Stored counts questions that were answered from the store.
func (m *CallCounters) Stored(n int64) { m.stored.Add(n) }

// Duplicates counts rows that share a question of their batch or one in flight.
func (m *CallCounters) Duplicates(n int64) { m.duplicates.Add(n) }

// Called counts a request that left and took so long. class is one of the
// constants above, or the resolution.Class of its error.
func (m *CallCounters) Called(took time.Duration, class string) {
	m.calls.add(class, 1)
	switch class {
	case CallAnswered, CallReplayed, CallPending:
		m.latency.add(took)
	}
}

// Retried counts a question that is sent again because of an error of class.
func (m *CallCounters) Retried(class string) { m.retries.add(class, 1) }

// Settled counts what an answer cost.
func (m *CallCounters) Settled(credits int64) { m.credits.Add(credits) }

// Unknown counts calls that may have been billed and have no answer.
func (m *CallCounters) Unknown(n int64) { m.unknown.Add(n) }

// Refused counts questions that the service would not work on.
func (m *CallCounters) Refused(n int64) { m.refused.Add(n) }

// Parked counts calls whose answer comes later: 1 when one is promised, -1
// when it is there or given up.
func (m *CallCounters) Parked(n int64) { m.parked.Add(n) }

// Quarantined counts members of answers that were left out.
func (m *CallCounters) Quarantined(n int64) { m.quarantined.Add(n) }

// Earlier says what earlier runs of the same unfinished dataset count with.
func (m *CallCounters) Earlier(calls, credits int64) {
	m.earlierCalls.Store(calls)
	m.earlierCredits.Store(credits)
}

// Paced says where waits and rate are looked up; without it they are zero.
func (m *CallCounters) Paced(look func() pace.Snapshot) { m.paced.Store(&look) }

// Snapshot looks at the calls as they are now.
func (m *CallCounters) Snapshot() CallSnapshot {
	s := CallSnapshot{
		Asked: m.asked.Load(), Closed: m.closed.Load(), Matched: m.matched.Load(), Stored: m.stored.Load(), Duplicates: m.duplicates.Load(),
		Credits: m.credits.Load(), EarlierCalls: m.earlierCalls.Load(), EarlierCredits: m.earlierCredits.Load(),
		Unknown: m.unknown.Load(), Parked: m.parked.Load(), Refused: m.refused.Load(), Quarantined: m.quarantined.Load(),
		Retries: m.retries.all(), ByClass: m.calls.all(), Waits: map[string]time.Duration{},
	}
	for _, n := range s.ByClass {
		s.Calls += n
	}
	quantiles := m.latency.quantiles(0.50, 0.95, 0.99)
	s.P50, s.P95, s.P99 = quantiles[0], quantiles[1], quantiles[2]
	if look := m.paced.Load(); look != nil {
		p := (*look)()
		s.Rate, s.InFlight, s.Waiting = p.Rate, p.InFlight, p.Waiting
		s.Reason, s.Until, s.DeadSince, s.AskedToWait = string(p.Reason), p.Until, p.DeadSince, p.Asked
		for reason, waited := range p.Waited {
			s.Waits[string(reason)] = waited
		}
	}
	return s
}

// Latencies counts the calls whose answer took at most each of bounds, which
// rise, and gives their count and sum: what a Prometheus histogram is made of.
func (m *CallCounters) Latencies(bounds []time.Duration) (atMost []int64, count int64, sum time.Duration) {
	return m.latency.cumulated(bounds)
}

// tallies counts by word. There are few words, and each is new once.
type tallies struct{ words sync.Map } // string → *atomic.Int64

func (t *tallies) add(word string, n int64) {
	count, found := t.words.Load(word)
	if !found {
		count, _ = t.words.LoadOrStore(word, new(atomic.Int64))
	}
	count.(*atomic.Int64).Add(n)
}

func (t *tallies) all() map[string]int64 {
	counts := map[string]int64{}
	t.words.Range(func(word, count any) bool {
		counts[word.(string)] = count.(*atomic.Int64).Load()
		return true
	})
	return counts
}
