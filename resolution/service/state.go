package service

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/operator"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// State is the store of a service. Every method is safe for concurrent use, and
// a change is durable when its method returns. Errors are those of package
// state, resolution.ErrInvalid and resolution.ErrUnavailable; an error means
// that nothing was changed.
type State interface {
	Ping(ctx context.Context) error
	// Purge removes what is older than the retention.
	Purge(ctx context.Context, now time.Time, r state.Retention) (state.Purged, error)

	accountState
	callState
	jobState
	operator.State
	backlogState
	outboxState
}

// accountState says who may call.
type accountState interface {
	// CredentialsVersion rises with every change to Credentials.
	CredentialsVersion(ctx context.Context) (int64, error)
	Credentials(ctx context.Context) (state.Credentials, error)
	Balance(ctx context.Context, organization int64) (state.Balance, error)
}

// callState keeps what calls cost and what they were answered.
type callState interface {
	// Settle stores a charge with its reply and callback in one transaction, and
	// returns the credits left.
	Settle(ctx context.Context, c state.Charge) (available int64, err error)
	// Reply returns the stored reply of a key, nil when there is none.
	Reply(ctx context.Context, key [32]byte, now time.Time) (*state.Reply, error)
	// CreateJob queues a job, reserves its credits and stores its reply in one
	// transaction, and returns the credits left.
	CreateJob(ctx context.Context, job state.Job, maxActive int, reply *state.Reply) (available int64, err error)
	FindJob(ctx context.Context, organization int64, id uuid.UUID) (*state.Job, error)
}

// jobState is the queue of keyword searches.
type jobState interface {
	// LeaseJob returns the next job, nil when there is none.
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

// backlogState counts what waits.
type backlogState interface {
	Stats(ctx context.Context) (state.Stats, error)
}

// outboxState keeps callbacks until they are delivered.
type outboxState = callback.Outbox
