// Package service serves the Lead Resolution Service Interface over HTTP, on
// any Resolver and Searcher: credentials, limits, credits, idempotency,
// keyword jobs and callbacks.
//
// The one thing to know before using it: an answer leaves only after its
// charge is on disk, in one transaction with whatever else it promises. What
// a caller was told survives the process.
package service

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/operator"
)

// Service is the interface as its server. The handlers answer without Serve,
// but only Serve works on keyword searches and posts callbacks.
type Service struct {
	options Options
	state   State
	log     *slog.Logger
	now     func() time.Time
	metrics *metrics

	paths    map[string]*route
	rosters  *rosters
	limits   [classes]*limit.Buckets
	guesses  *limit.Buckets // failed authentications
	keys     keysHeld
	sender   *callback.Sender
	operator *operator.Handler
	work     chan struct{} // wakes workers

	draining   atomic.Bool
	complaints *rate.Limiter // lines of the log about failed requests: when all fail, some will do
}

// New makes a service. It touches nothing: no file, no network, no goroutine.
// The error says everything that is wrong with o.
func New(o Options) (*Service, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Service{
		options: o, state: o.State, log: o.Log, now: o.Now,
		metrics: newMetrics(o.State),
		guesses: limit.New(o.Limits.FailedAuth),
		keys:    keysHeld{held: map[[32]byte][32]byte{}},
		work:    make(chan struct{}, o.JobWorkers),

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
		Observe:     s.metrics.attempted,
	})
	s.operator = &operator.Handler{
		State: o.State, Key: o.SystemKey, Now: s.now,
		Names: s.rosters.names, Credited: s.rosters.credited, Callback: finishedCallback, Posted: s.sender.Wake,
	}
	s.paths = s.routes()
	return s, nil
}

// Public is the handler for callers.
func (s *Service) Public() http.Handler { return http.HandlerFunc(s.servePublic) }

// Internal is the handler for operators and other services of the same owner:
// it must not be reachable by anybody else.
func (s *Service) Internal() http.Handler { return http.HandlerFunc(s.serveInternal) }
