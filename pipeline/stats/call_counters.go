package stats

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
)

// The classes of calls that got an answer; the others are resolution.Class.
const (
	CallAnswered = "answered" // with data, without a match, or with a refusal of this one record
	CallReplayed = "replayed" // the same call was answered before; it is free
	CallPending  = "pending"  // with the promise of an answer that comes later
)

// CallCounters counts the calls of a run and their results. The zero value is ready to use.
// Its methods are safe from any goroutine and hold no lock that a call waits for.
type CallCounters struct {
	asked, closed, matched        atomic.Int64
	failed, skipped               atomic.Int64
	stored, withheld              atomic.Int64
	duplicates, unasked           atomic.Int64
	credits                       atomic.Int64
	unknown, refused, quarantined atomic.Int64
	parked, otherAddress          atomic.Int64
	overPrice                     atomic.Int64
	balance                       atomic.Pointer[int64]
	earlierCalls, earlierCredits  atomic.Int64
	calls, retries                tallies
	latency                       latencies
	paced                         atomic.Pointer[func() pace.Snapshot]
	resolvers                     atomic.Pointer[[]Resolver]
	seen                          distinct.Repeats
}

// Resolver has the counters of one resolver.
type Resolver struct {
	Name     string
	Counters *CallCounters
}

// CallSnapshot has the counts of a CallCounters. Its times are not in its JSON, because
// writers choose the unit.
type CallSnapshot struct {
	// Asked are the distinct questions of the rows so far. Closed of them need no
	// more work: Matched of those have a match, Failed and Skipped have no answer, and
	// Stored were answered from the store. Duplicates are rows with the question of another row.
	Asked      int64 `json:"asked"`
	Closed     int64 `json:"closed"`
	Matched    int64 `json:"matched"`
	Failed     int64 `json:"failed"`
	Skipped    int64 `json:"skipped"`
	Stored     int64 `json:"stored"`
	Duplicates int64 `json:"duplicates"`
	// Calls are the requests that left, ByClass by how they ended.
	Calls   int64            `json:"calls"`
	ByClass map[string]int64 `json:"by_class"`
	// Retries are questions sent again, by the class of the error that led to
	// it.
	Retries map[string]int64 `json:"retries"`
	// Credits are what the answers of this run cost.
	Credits int64 `json:"credits"`
	// EarlierCalls and EarlierCredits are what earlier runs of the same
	// dataset count with: a call for each question, and the credits
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
	// Quarantined are members of answers that were left out because they have the
	// wrong form.
	Quarantined int64 `json:"quarantined"`
	// OtherAddress are answers whose data are of an address that was not asked about.
	OtherAddress int64 `json:"answered_under_another_address,omitempty"`
	// OverPrice are answers of this run that cost more than their price.
	OverPrice int64 `json:"over_price,omitempty"`
	// Balance is what the provider said was left before the first call; nil if it did not.
	Balance *int64 `json:"balance,omitempty"`

	// P50, P95 and P99 are quantiles of the time from a request to its answer, within
	// 2%; 0 without answers.
	P50 time.Duration `json:"-"`
	P95 time.Duration `json:"-"`
	P99 time.Duration `json:"-"`

	// Waits is how long calls waited before they left, by pace.Reason.
	Waits map[string]time.Duration `json:"-"`
	// Rate is how many calls a second may leave now; 0 without a limit.
	Rate     float64 `json:"-"`
	InFlight int     `json:"-"`
	Waiting  int     `json:"-"`
	// Reason is what calls wait for now (pace.Reason), and Until when that ends;
	// zero if it is not known.
	Reason string    `json:"-"`
	Until  time.Time `json:"-"`
	// DeadSince is when the service stopped to answer; zero while it answers.
	DeadSince time.Time `json:"-"`
	// AskedToWait is the wait that the service asked for, if it is longer than the
	// longest pause; 0 otherwise.
	AskedToWait time.Duration `json:"-"`

	// Resolvers are those that the calls went to, if there are several; then Waits and what calls
	// wait for are known of each alone.
	Resolvers []ResolverSnapshot `json:"-"`
}

// ResolverSnapshot has the counts of one of several resolvers.
type ResolverSnapshot struct {
	Name  string
	Calls CallSnapshot
}

// IsFirst reports whether a question comes for the first time; beyond a million, always. Only then
// it is counted in Asked, Stored, Withheld and Closed: how soon it comes again changes nothing.
func (m *CallCounters) IsFirst(question string) bool {
	return m.seen.IsFirst(xxh3.HashString(question))
}

// Asked counts distinct questions of rows.
func (m *CallCounters) Asked(n int64) { m.asked.Add(n) }

// Closed counts a question that needs no more work in this run: answered,
// failed or given up.
func (m *CallCounters) Closed(as outcome.Outcome) {
	m.closed.Add(1)
	switch as {
	case outcome.Matched:
		m.matched.Add(1)
	case outcome.Failed:
		m.failed.Add(1)
	case outcome.Skipped:
		m.skipped.Add(1)
	}
}

// Stored counts questions that were answered from the store.
func (m *CallCounters) Stored(n int64) { m.stored.Add(n) }

// Withheld counts questions that are closed without an answer and without a call.
func (m *CallCounters) Withheld(n int64) { m.withheld.Add(n) }

// Unasked counts rows without a question.
func (m *CallCounters) Unasked(n int64) { m.unasked.Add(n) }

// Duplicates counts rows with a question that came before. Count
// the questions before: progress is estimated by the rows of a question.
func (m *CallCounters) Duplicates(n int64) { m.duplicates.Add(n) }

// Called counts a request that left, and the time it took. class is one of the constants
// above, or the resolution.Class of its error.
func (m *CallCounters) Called(took time.Duration, class string) {
	m.calls.count(class, 1)
	switch class {
	case CallAnswered, CallReplayed, CallPending:
		m.latency.observe(took)
	}
}

// Retried counts a question that is sent again because of an error of class.
func (m *CallCounters) Retried(class string) { m.retries.count(class, 1) }

// Settled counts the credits of an answer.
func (m *CallCounters) Settled(credits int64) { m.credits.Add(credits) }

// Unknown counts calls that may have been billed and have no answer.
func (m *CallCounters) Unknown(n int64) { m.unknown.Add(n) }

// Refused counts questions that the service would not work on.
func (m *CallCounters) Refused(n int64) { m.refused.Add(n) }

// Parked counts calls whose answer comes later: 1 when it is promised, -1 when it came or
// was given up.
func (m *CallCounters) Parked(n int64) { m.parked.Add(n) }

// Quarantined counts members of answers that were left out.
func (m *CallCounters) Quarantined(n int64) { m.quarantined.Add(n) }

// Balance notes what is left before the first call.
func (m *CallCounters) Balance(left int64) { m.balance.Store(&left) }

// OverPrice counts answers that cost more than their price.
func (m *CallCounters) OverPrice(n int64) { m.overPrice.Add(n) }

// OtherAddress counts answers under another address.
func (m *CallCounters) OtherAddress(n int64) { m.otherAddress.Add(n) }

// Earlier sets the counts of earlier runs of the same dataset.
func (m *CallCounters) Earlier(calls, credits int64) {
	m.earlierCalls.Store(calls)
	m.earlierCredits.Store(credits)
}

// Paced sets the source of waits and rate; without it they are zero.
func (m *CallCounters) Paced(look func() pace.Snapshot) { m.paced.Store(&look) }

// Sum has m count the calls to resolvers together. The questions of m are keys, each of
// which several resolvers may be asked about.
func (m *CallCounters) Sum(of []Resolver) { m.resolvers.Store(&of) }

func (m *CallCounters) summed() []Resolver {
	if of := m.resolvers.Load(); of != nil {
		return *of
	}
	return nil
}

// addResolvers adds the calls to resolvers.
func (s *CallSnapshot) addResolvers(of []Resolver) {
	all := &latencies{}
	for _, r := range of {
		c := r.Counters.Snapshot()
		if s.Resolvers = append(s.Resolvers, ResolverSnapshot{r.Name, c}); len(of) == 1 { // its pace is that of all
			s.Resolvers = nil
			s.Waits, s.Rate, s.Reason, s.Until, s.DeadSince, s.AskedToWait = c.Waits, c.Rate, c.Reason, c.Until, c.DeadSince, c.AskedToWait
			s.Balance = c.Balance
		}
		all.add(&r.Counters.latency)
		for class, n := range c.ByClass {
			s.ByClass[class] += n
		}
		for class, n := range c.Retries {
			s.Retries[class] += n
		}
		s.Calls, s.Credits = s.Calls+c.Calls, s.Credits+c.Credits
		s.EarlierCalls, s.EarlierCredits = s.EarlierCalls+c.EarlierCalls, s.EarlierCredits+c.EarlierCredits
		s.Unknown, s.Parked, s.Refused = s.Unknown+c.Unknown, s.Parked+c.Parked, s.Refused+c.Refused
		s.Quarantined, s.OtherAddress = s.Quarantined+c.Quarantined, s.OtherAddress+c.OtherAddress
		s.OverPrice += c.OverPrice
		s.InFlight, s.Waiting = s.InFlight+c.InFlight, s.Waiting+c.Waiting
	}
	quantiles := all.quantiles(0.50, 0.95, 0.99)
	s.P50, s.P95, s.P99 = quantiles[0], quantiles[1], quantiles[2]
}

// Snapshot returns the present counts.
func (m *CallCounters) Snapshot() CallSnapshot {
	duplicates := m.duplicates.Load() // before asked
	s := CallSnapshot{
		Asked: m.asked.Load(), Closed: m.closed.Load(), Matched: m.matched.Load(), Failed: m.failed.Load(), Skipped: m.skipped.Load(), Stored: m.stored.Load(), Duplicates: duplicates,
		Credits: m.credits.Load(), EarlierCalls: m.earlierCalls.Load(), EarlierCredits: m.earlierCredits.Load(),
		Unknown: m.unknown.Load(), Parked: m.parked.Load(), Refused: m.refused.Load(), Quarantined: m.quarantined.Load(),
		OtherAddress: m.otherAddress.Load(), OverPrice: m.overPrice.Load(), Balance: m.balance.Load(),
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
	if of := m.summed(); of != nil {
		s.addResolvers(of)
	}
	return s
}

// Latencies counts the calls whose answer took at most each of bounds, which rise, and returns
// their count and sum, as for a Prometheus histogram.
func (m *CallCounters) Latencies(bounds []time.Duration) (atMost []int64, count int64, sum time.Duration) {
	of := m.summed()
	if of == nil {
		return m.latency.cumulated(bounds)
	}
	all := &latencies{}
	for _, r := range of {
		all.add(&r.Counters.latency)
	}
	return all.cumulated(bounds)
}

// tallies counts by word. There are few words.
type tallies struct{ words sync.Map } // string → *atomic.Int64

func (t *tallies) count(word string, n int64) {
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
