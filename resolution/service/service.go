// Package service serves the Lead Resolution Service Interface over HTTP, on
// any Resolver and Searcher: credentials, limits, credits, idempotency,
// keyword jobs and callbacks.
//
// The one thing to know before using it: an answer is sent only after its
// charge is on disk, in one transaction with everything else it promises. What
// a caller was told survives a crash.
package service

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/google/uuid"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/dashboard"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/metrics"
	"github.com/leadetl/leadetl/resolution/service/openapi"
	"github.com/leadetl/leadetl/resolution/service/operator"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// Service answers the interface. The handlers work without Serve, but only Serve
// runs keyword searches and posts callbacks.
type Service struct {
	options  Options
	state    State
	log      *slog.Logger
	now      func() time.Time
	metrics  *metrics.Metrics
	requests metrics.Requests

	paths    map[string]*route
	rosters  *rosters
	limits   [classes]*limit.Buckets
	guesses  *limit.Buckets // failed authentications
	keys     keysHeld
	window   []string // header of answers: seconds that keys are remembered
	sender   *callback.Sender
	operator *operator.Handler
	account  *dashboard.Account // nil without a dashboard
	console  *dashboard.Operator
	work     chan struct{} // wakes workers

	document, docs func() *wire.Page

	draining   atomic.Bool
	overTLS    bool          // set before the first request
	logged     atomic.Uint64 // requests that were counted for the log
	readiness  readiness
	complaints *rate.Limiter // bounds the log lines about failed requests
}

// New makes a service. It opens no file or connection and starts no goroutine.
// The error joins all errors in o.
func New(o Options) (*Service, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Service{
		options: o, state: o.State, log: o.Log, now: o.Now,
		metrics: metrics.New(o.State),
		guesses: limit.New(o.Limits.FailedAuth),
		keys:    keysHeld{held: map[[32]byte][32]byte{}},
		work:    make(chan struct{}, o.JobWorkers),
		window:  []string{strconv.Itoa(int(o.Retention.KeyWindow().Seconds()))},

		complaints: rate.NewLimiter(10, 20),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.limits = [classes]*limit.Buckets{
		single: limit.New(o.Limits.Single), create: limit.New(o.Limits.Create), result: limit.New(o.Limits.Result),
	}
	s.rosters = newRosters(o.State, o.Pepper, s.now, s.log)
	s.sender = callback.NewSender(callback.Options{
		Outbox:      o.State,
		Secrets:     s.rosters.callbackSecrets,
		Policy:      o.Callbacks,
		Concurrency: o.CallbackConcurrency,
		PerReceiver: o.CallbackPerReceiver,
		Grace:       o.Connections.DrainTimeout,
		Roots:       o.CallbackRoots,
		Log:         s.log,
		Observe:     s.metrics.Attempted,
	})
	s.operator = &operator.Handler{
		State: o.State, Key: o.SystemKey, Now: s.now,
		Names: s.rosters.names, Credited: s.rosters.credited, Callback: s.finishedCallback, Posted: s.sender.Wake,
	}
	described := sync.OnceValue(func() *openapi.Interface { return openapi.New(o.described()) })
	s.document = sync.OnceValue(func() *wire.Page { return wire.NewPage(described().Document()) })
	s.docs = sync.OnceValue(func() *wire.Page { return wire.NewPage(described().Page()) })
	s.paths = s.routes()
	if o.Dashboard {
		s.account, s.console = s.newDashboard(), s.newConsole()
	}
	return s, nil
}

// Public is the handler for callers.
func (s *Service) Public() http.Handler { return http.HandlerFunc(s.servePublic) }

// Metrics is the handler for Prometheus, and for probes of the process.
func (s *Service) Metrics() http.Handler { return http.HandlerFunc(s.serveMetrics) }

// Internal is the handler for operators and other services of the same owner.
// Nobody else may reach it.
func (s *Service) Internal() http.Handler { return http.HandlerFunc(s.serveInternal) }

// State is the store of a service. Every method is safe for concurrent use, and
// a change is durable when its method returns. Errors are those of package
// state, resolution.ErrInvalid and resolution.ErrUnavailable; an error means
// that nothing was changed.
type State interface {
	// Check tests whether the state can be read and written.
	Check(ctx context.Context, now time.Time) error
	// Purge removes what is older than the retention.
	Purge(ctx context.Context, now time.Time, r state.Retention) (state.Purged, error)

	accountState
	ownState
	callState
	jobState
	operator.State
	dashboard.State
	dashboard.OperatorState
	metrics.Backlog
	callback.Outbox
}

// accountState stores the callers and their credits.
type accountState interface {
	// CredentialsVersion rises with every change to Credentials.
	CredentialsVersion(ctx context.Context) (int64, error)
	Credentials(ctx context.Context) (state.Credentials, error)
	Balance(ctx context.Context, organization int64) (state.Balance, error)
	MoveTestKey(ctx context.Context, public string, now time.Time) error
}

// ownState counts the requests of organizations.
type ownState interface {
	CountRequests(ctx context.Context, counts []state.Requests) error
}

// callState stores charges, replies and new jobs.
type callState interface {
	// Settle stores a charge with its reply and callback in one transaction, and
	// returns the credits left.
	Settle(ctx context.Context, c state.Charge) (available int64, err error)
	// Reply returns the stored reply of a key, nil without one.
	Reply(ctx context.Context, key [32]byte, now time.Time) (*state.Reply, error)
	// CreateJob queues a job, reserves its credits and stores its reply in one
	// transaction, and returns the credits left.
	CreateJob(ctx context.Context, job state.Job, maxActive int, reply *state.Reply) (available int64, err error)
	FindJob(ctx context.Context, organization int64, id uuid.UUID) (*state.Job, error)
}

// jobState is the queue of keyword searches.
type jobState interface {
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
