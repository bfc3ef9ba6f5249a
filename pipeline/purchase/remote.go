package purchase

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
)

// Service makes calls that may cost something. A Buyer calls it from up to
// Concurrency goroutines at once, after the intent is stored and the pace allows it. Each
// method makes one request at most and ends with its answer or with ctx: an error is a
// *resolution.CallError or that of ctx. A reply belongs to the caller.
type Service interface {
	Do(ctx context.Context, call resolution.Call) (resolution.Reply, error)
	Poll(ctx context.Context, op resolution.Operation, id, clientRef string) (resolution.Reply, error)
}

// Searcher is a Service that also makes pages of searches.
type Searcher interface {
	Start(ctx context.Context, search resolution.SearchCall) (resolution.Reply, error)
}

// Reader reads a stored answer as Service read it when it came. It adds the data of a
// record to into, or to Answers of its own if that is nil.
type Reader = func(op resolution.Operation, status int, body []byte, into *resolution.Answers) (resolution.Reply, error)

// Checker says whose answer a body is: the error says that it is that to another question
// than call, and other is resolution.About.OtherAddress.
type Checker = func(call resolution.Call, body []byte) (other bool, err error)

// Remote is the service that answers the questions of a run, and how it may be
// asked.
type Remote struct {
	// Service is asked; nil when Offline.
	Service Service
	Read    Reader
	// Check looks at answers that come after their call; nil takes all.
	Check Checker
	// Name says who is asked, as stored answers know it: the service's
	// address without a slash at its end.
	Name string
	// Address is where it is, for people; "" is Name.
	Address string
	// Through names the proxy that calls go by, such as "the proxy of
	// HTTPS_PROXY", without its address; "" when they go straight.
	Through string
	// Question is what questions are stored under in the place of the operation, if several
	// operations ask the same; "" is the operation.
	Question string
	// ReadMiss reads a stored miss again, which may be a match by the rules of today; nil is Read.
	ReadMiss Reader
	// Judged says that the service's replies are judged by the rules of an entry. When these change,
	// stored answers are judged again; their credits stay.
	Judged bool
	// Answers holds what was bought before; nil only for a plan without any.
	Answers Store
	// Pace says when a call may leave; nil when Offline.
	Pace *pace.Controller
	// Concurrency is how many calls Pace lets be in flight.
	Concurrency int
	// CallsAtOnce is how many calls Pace may count as one, for a plan; 0 is one.
	CallsAtOnce int
	// RefreshMatch and RefreshNoMatch are the ages at which a stored answer is
	// asked for again; 0 is never.
	RefreshMatch, RefreshNoMatch time.Duration
	// RunBegan is when the first process of the run began, from which ages are measured; zero is the
	// process itself.
	RunBegan time.Time
	// Plain404 says what a 404 without a code means.
	Plain404 Plain404
	// MaxAttempts is how often a call is tried whose failures are its own; 0 is 10.
	MaxAttempts int
	// FirstMisses is how many keys, all of them misses, say that the address may be wrong; 0 is 1000.
	FirstMisses int
	// BadRows is how many bad rows before the first answer say that the entry of a provider is
	// wrong; 0 is 20.
	BadRows int
	// Offline makes no calls: rows without a stored answer are skipped.
	Offline bool
	// Keys is how long the service honours an idempotency key: until then, a call
	// without an answer is sent again under its key. nil is not at all.
	Keys *KeyWindow
	// RetryBills says that the service bills each request that reaches it. Another one about a
	// question is made only after a refusal for too many calls, or a failure that says that it
	// was not billed; after that a few times.
	RetryBills bool
	// RetryUnknown sends the unknown calls of earlier runs again, although the
	// service may bill them twice.
	RetryUnknown bool
	// NewKey sends them under a new idempotency key.
	NewKey bool
	Budget Budget
	// Total is the account of the job, which all its Remotes share; nil limits nothing.
	Total *Total
	// Beside are the prices of all Remotes of the job, for what counts against an allowance.
	Beside map[answers.Scope]Price
	// Expect is told of questions before the first of them is asked; may be nil.
	Expect func(keys []string)
	// BeforeFirst is called once, before the first call; may be nil.
	BeforeFirst func(ctx context.Context)
	// PassOver answers no question that would wait until the service answers again: the next
	// resolver of an order is asked.
	PassOver bool
	// Price is what a call costs, and so what the budget holds before it leaves.
	Price Price
	// Strict stops the Remote as a budget does when an answer costs more than its price.
	Strict bool
	// Patience is how long an answer that comes later is waited for.
	Patience time.Duration
	// Later is how answers about records that come later are asked for; zero if they are not.
	Later Later
	// Deliveries is where such answers arrive; nil if nothing listens for them.
	Deliveries *Deliveries
	Counters   *stats.CallCounters // never nil
}

// Later says how often an answer that comes later is asked for, and how long. A later run asks
// on for as long.
type Later struct{ Every, Wait time.Duration }

// attempts is MaxAttempts, or the usual number.
func (r *Remote) attempts() int { return cmp.Or(r.MaxAttempts, maxAttempts) }

// Scope is what the questions of an operation are stored under.
func (r *Remote) Scope(op resolution.Operation) answers.Scope {
	return answers.Scope{Service: r.Name, Operation: cmp.Or(resolution.Operation(r.Question), op)}
}

// AtRest returns a Remote that gives stored answers alone, and counts apart.
func (r *Remote) AtRest() *Remote {
	rest := *r
	rest.Service, rest.Deliveries, rest.Offline, rest.Keys, rest.RetryUnknown = nil, nil, true, nil, false
	rest.Counters = &stats.CallCounters{}
	return &rest
}

// UnknownWait reports whether calls about an operation are unknown, and none of them
// may be sent again.
func (r *Remote) UnknownWait(ctx context.Context, op resolution.Operation) (wait bool, err error) {
	if r.Answers == nil || r.RetryUnknown {
		return false, nil
	}
	now := time.Now()
	for c, err := range r.Answers.Unknown(ctx) {
		switch {
		case err != nil:
			return false, err
		case c.Scope != r.Scope(op):
		case r.keyHolds(answers.Found{Open: c.State, Sent: c.Sent, FirstSent: c.FirstSent(), Deadline: c.Deadline}, now):
			return false, nil
		default:
			wait = true
		}
	}
	return wait, nil
}

// RetriesAny reports whether a call about an operation is unknown that the user wants sent once more.
func (r *Remote) RetriesAny(ctx context.Context, op resolution.Operation) (bool, error) {
	if r.Answers == nil || !r.RetryUnknown {
		return false, nil
	}
	for c, err := range r.Answers.Unknown(ctx) {
		if err != nil || c.Scope == r.Scope(op) {
			return err == nil, err
		}
	}
	return false, nil
}

// keyHolds reports whether an open call may be sent again under its key. A last attempt
// that has not come yet says that a clock was wrong.
func (r *Remote) keyHolds(f answers.Found, now time.Time) bool {
	return !r.RetryBills && !f.Sent.After(now) && r.Keys.Holds(f.FirstSent, forgotten(f), now)
}

// forgotten is when the service forgets the key of an open call, as it said to an
// earlier process; zero if that is not known.
func forgotten(f answers.Found) time.Time {
	if f.Open == answers.Parked { // its deadline is that of its answer
		return time.Time{}
	}
	return f.Deadline
}

// Store keeps what was bought, and the calls that are open. A run opens one and closes it
// when all calls have ended. It is safe from many goroutines. A method that changes
// something returns after the change is durable, even if ctx ends while it is written.
// *answers.Store is one, and documents each method.
type Store interface {
	Lookups
	OpenCalls
	Calls
	AnswerStore
	Ledger
}

// Lookups finds what is stored of questions, for buyers and plans: once for up to
// MaxLookups keys of a batch. The result is in the order of the keys, in the memory of
// into, and the caller's until it calls again with that memory.
type Lookups interface {
	Lookup(ctx context.Context, scope answers.Scope, keys []string, f answers.Freshness, bodies bool, into []answers.Found) ([]answers.Found, error)
	LookupHashes(ctx context.Context, hashes []answers.Hash, f answers.Freshness, into []answers.Found) ([]answers.Found, error)
}

// OpenCalls finds the call that an answer belongs to, once for each callback or poll;
// answers.ErrNoCall without it.
type OpenCalls interface {
	Find(ctx context.Context, h answers.Hash) (answers.OpenCall, error)
	FindByResolution(ctx context.Context, service, id string) (answers.OpenCall, error)
}

// Calls records the life of a call, in the goroutine that makes it: Intent before each
// request, and Park or Fail after a request without an answer. A call ends with
// Answers.Place. Up to 2 × Concurrency goroutines call it at once, each about another
// question.
type Calls interface {
	Intent(ctx context.Context, q answers.Question, send answers.Send) (answers.Call, error)
	Park(ctx context.Context, q answers.Question, p answers.Parking) error
	Fail(ctx context.Context, q answers.Question, f answers.Failure) error
	SetKeyWindow(ctx context.Context, scope answers.Scope, window time.Duration) error
	Keep(ctx context.Context, q answers.Question, body []byte) error
	Reopen(ctx context.Context, q answers.Question, a answers.Answer) error
	Restore(ctx context.Context, q answers.Question) error
}

// AnswerStore stores answers, once for each: Place ends the call and runs placed as soon as
// no later change can come before it; Put needs no call.
type AnswerStore interface {
	Place(ctx context.Context, q answers.Question, a answers.Answer, placed func()) error
	Put(ctx context.Context, q answers.Question, a answers.Answer) error
	// Knows reports whether any match or miss of a scope is stored, and whether a match is.
	Knows(ctx context.Context, scope answers.Scope) (known, matched bool, err error)
}

// Ledger says what a run has spent, and what may have been billed. It is read before
// the first call and for the report; the sequences end at the first error.
type Ledger interface {
	SumSpent(ctx context.Context, run string) (paid answers.Spending, open []answers.OpenCall, err error)
	Unknown(ctx context.Context) iter.Seq2[answers.OpenCall, error]
	Parked(ctx context.Context) iter.Seq2[answers.OpenCall, error]
	// SpentSince and OpenAnywhere are about all scopes of the state.
	SpentSince(ctx context.Context, day string) ([]answers.DaySpending, error)
	OpenAnywhere(ctx context.Context) iter.Seq2[answers.OpenCall, error]
}

var _ Store = (*answers.Store)(nil)
