// Package answering answers the operations: single records at once, keyword
// searches as jobs that workers run later.
//
// The one thing to know before using it: an answer leaves only after its charge
// is on disk, in one transaction with everything else it promises.
package answering

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/account"
	"github.com/leadetl/leadetl/resolution/service/admission"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/metrics"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
	"github.com/leadetl/leadetl/transforms/profile"
)

// Desk answers calls that were admitted. All fields are required.
type Desk struct {
	State    State
	Resolver resolution.Resolver
	Searcher resolution.Searcher
	Roster   *account.Roster
	Gate     *admission.Gate
	Metrics  *metrics.Metrics
	Log      *slog.Logger
	Now      func() time.Time

	Requests  request.Limits
	Profiles  profile.Rules
	Callbacks *callback.Policy
	Costs     Costs
	// ActiveJobs is how many unfinished keyword searches an organization may have.
	ActiveJobs int
	// ResolveTimeout bounds how long the Resolver has for one answer, JobTimeout
	// how long one attempt at a keyword search may take.
	ResolveTimeout, JobTimeout time.Duration
	// Lease is how long a worker keeps a job without renewing it.
	Lease time.Duration
	// Results is how long the result of a search is kept.
	Results time.Duration
	// Posted is called after a callback became due.
	Posted func()

	single *resolution.Single // of Resolver
	work   chan struct{}      // wakes workers
}

// New makes a desk of d for a number of workers.
func New(d Desk, workers int) *Desk {
	d.single, d.work = resolution.NewSingle(d.Resolver), make(chan struct{}, workers)
	return &d
}

// State stores charges and jobs.
type State interface {
	// Settle stores a charge with its reply and callback in one transaction, and
	// returns the credits left.
	Settle(ctx context.Context, c state.Charge) (available int64, err error)
	// Answer returns a stored answer and its operation.
	Answer(ctx context.Context, organization int64, id uuid.UUID, now time.Time) ([]byte, resolution.Operation, error)
	// CreateJob queues a job, reserves its credits and stores its reply in one
	// transaction, and returns the credits left.
	CreateJob(ctx context.Context, job state.Job, maxActive int, reply *state.Reply) (available int64, err error)
	FindJob(ctx context.Context, organization int64, id uuid.UUID) (*state.Job, error)
	// LeaseJob returns the next job, nil without one.
	LeaseJob(ctx context.Context, now, until time.Time) (*state.Job, error)
	RenewLease(ctx context.Context, id uuid.UUID, lease int, until time.Time) error
	// PostponeJob puts a job back after a failed attempt, ReturnJob as if it had
	// not been leased.
	PostponeJob(ctx context.Context, id uuid.UUID, lease int, until time.Time) error
	ReturnJob(ctx context.Context, id uuid.UUID, lease int) error
	// FinishJob stores the end of a job, its price and its callback in one
	// transaction.
	FinishJob(ctx context.Context, f state.Finish) error
	// RequeueLeased puts all leased jobs back, and counts a death for each.
	RequeueLeased(ctx context.Context) (int, error)
}

// Offers refuses an operation that the Resolver or the Searcher does not
// support. Results of earlier searches can still be fetched.
func (d *Desk) Offers(c *admission.Call) error {
	var from any = d.Resolver
	switch c.Class {
	case admission.Create:
		from = d.Searcher
	case admission.Single:
	default:
		return nil
	}
	if can, ok := from.(interface {
		Offers(resolution.Operation) error
	}); ok && can.Offers(c.Operation) != nil {
		return wire.Refuse(wire.Unavailable, "This service has no data for this operation.")
	}
	return nil
}
