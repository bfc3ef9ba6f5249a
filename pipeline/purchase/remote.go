package purchase

import (
	"context"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
)

// Service makes calls that may cost something. Each method makes one request
// at most and is called from many goroutines at once; an error is a
// *resolution.CallError or the context's.
type Service interface {
	Do(ctx context.Context, call resolution.Call) (resolution.Reply, error)
	Start(ctx context.Context, search resolution.SearchCall) (resolution.SearchReply, error)
	Poll(ctx context.Context, op resolution.Operation, id string) (resolution.SearchReply, error)
}

// Reader reads a stored answer as Service read it when it came.
type Reader interface {
	Read(op resolution.Operation, status int, body []byte) (resolution.Reply, error)
	ReadSearch(op resolution.Operation, status int, body []byte) (resolution.SearchReply, error)
}

// Remote is the service that answers the questions of a run, and how it may be
// asked.
type Remote struct {
	// Service is asked; nil when Offline.
	Service Service
	Reader  Reader
	// Name says who is asked, as stored answers know it: the service's
	// address without a slash at its end.
	Name string
	// Through names the proxy that calls go by, such as "the proxy of
	// HTTPS_PROXY", without its address; "" when they go straight.
	Through string
	// Answers holds what was bought before; nil only for a plan without any.
	Answers Store
	// Pace says when a call may leave; nil when Offline.
	Pace *pace.Controller
	// Concurrency is how many calls Pace lets be in flight.
	Concurrency int
	// RefreshMatch and RefreshNoMatch are the ages at which a stored answer is
	// asked for again; 0 is never.
	RefreshMatch, RefreshNoMatch time.Duration
	// Offline asks nobody: rows without a stored answer are skipped.
	Offline bool
	// Idempotent says that the service honours idempotency keys: a call without
	// an answer is sent again under its key.
	Idempotent bool
	// RetryUnknown sends the unknown calls of earlier runs again, although the
	// service may bill them twice.
	RetryUnknown bool
	Budget       Budget
	// Price is what a call costs, and so what the budget holds before it leaves.
	Price Price
	// Patience is how long an answer that comes later is waited for.
	Patience time.Duration
	// Deliveries is where such answers arrive; nil when nobody listens for them.
	Deliveries *Deliveries
	Counters   *stats.CallCounters // never nil
}

// Scope is what the questions of an operation are stored under.
func (r *Remote) Scope(op resolution.Operation) answers.Scope {
	return answers.Scope{Service: r.Name, Operation: op}
}

// AnyUnknown reports whether calls about an operation are unknown.
func (r *Remote) AnyUnknown(ctx context.Context, op resolution.Operation) (bool, error) {
	if r.Answers == nil {
		return false, nil
	}
	for c, err := range r.Answers.Unknown(ctx) {
		if err != nil {
			return false, err
		}
		if c.Scope == r.Scope(op) {
			return true, nil
		}
	}
	return false, nil
}
