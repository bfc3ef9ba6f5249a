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

	"github.com/leadetl/leadetl/resolution/service/account"
	"github.com/leadetl/leadetl/resolution/service/admission"
	"github.com/leadetl/leadetl/resolution/service/answering"
	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/dashboard"
	"github.com/leadetl/leadetl/resolution/service/metrics"
	"github.com/leadetl/leadetl/resolution/service/openapi"
	"github.com/leadetl/leadetl/resolution/service/operator"
	"github.com/leadetl/leadetl/resolution/service/serving"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// Service answers the interface. The handlers work without Serve, but only Serve
// runs keyword searches and posts callbacks.
type Service struct {
	options Options
	state   *sqlite.Store
	log     *slog.Logger
	clock   *clock
	metrics *metrics.Metrics

	roster    *account.Roster
	desk      *account.Desk
	gate      *admission.Gate
	answering *answering.Desk
	sender    *callback.Sender
	operator  *operator.Handler
	dashboard *dashboard.Account // nil without a dashboard
	console   *dashboard.Operator
	health    *serving.Health
	guard     serving.Guard

	paths    map[string]*route
	window   []string // header of answers: seconds that keys are remembered
	document func() *wire.Page
	docs     func() map[string]*wire.Page // by path below /docs
	overTLS  bool                         // set before the first request
	logged   atomic.Uint64                // requests that were counted for the log
}

// New makes a service. It opens no file or connection and starts no goroutine.
// The error joins all errors in o.
func New(o Options) (*Service, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Service{
		options: o, state: o.State, log: o.Log,
		metrics: metrics.New(o.State),
		window:  []string{strconv.Itoa(int(o.Retention.KeyWindow().Seconds()))},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s.clock = newClock(o.Now)
	s.health = &serving.Health{Check: func(ctx context.Context) error { return s.noteDamage(o.State.Check(ctx)) }, Now: s.clock.now}
	s.guard = serving.Guard{Log: s.log, Complaints: rate.NewLimiter(10, 20)}
	s.roster = account.NewRoster(o.State, o.Pepper, s.clock.now, s.log)
	s.sender = callback.NewSender(callback.Options{
		Outbox:      o.State,
		Secrets:     s.roster.CallbackSecrets,
		Policy:      o.Callbacks,
		Concurrency: o.CallbackConcurrency,
		PerReceiver: o.CallbackPerReceiver,
		Grace:       o.Connections.DrainTimeout,
		Roots:       o.CallbackRoots,
		Log:         s.log,
		Observe:     s.metrics.Attempted,
		Now:         s.clock.now,
	})
	s.desk = &account.Desk{State: o.State, Roster: s.roster, Now: s.clock.now, Posted: s.sender.Wake, Keys: account.Keys{State: o.State, Pepper: o.Pepper, Now: s.clock.now}, Rates: o.Limits.Rates()}
	s.gate = admission.New(admission.Gate{
		Replies: o.State, Roster: s.roster, Pepper: o.Pepper, Tokens: o.Tokens, Limits: o.Limits, MaxBody: o.MaxBody,
		Proxies: o.TrustedProxies, Metrics: s.metrics, Log: s.log, Complaints: s.guard.Complaints, Now: s.clock.now,
	})
	s.answering = answering.New(answering.Desk{
		State: o.State, Resolver: o.Resolver, Searcher: o.Searcher, Roster: s.roster, Gate: s.gate, Metrics: s.metrics, Log: s.log, Now: s.clock.now,
		Requests: o.Requests, Profiles: o.Profiles, Callbacks: o.Callbacks, Costs: o.Costs, ActiveJobs: o.Limits.ActiveJobs,
		ResolveTimeout: o.ResolveTimeout, JobTimeout: o.JobTimeout, Lease: o.Lease, Results: o.Retention.Results, Posted: s.sender.Wake,
	}, o.JobWorkers)
	office := account.Office{Of: o.State, Desk: s.desk}
	s.operator = &operator.Handler{State: o.State, Key: o.SystemKey, Now: s.clock.now, Office: office}
	described := sync.OnceValue(func() *openapi.Interface { return openapi.New(o.described()) })
	s.document = sync.OnceValue(func() *wire.Page { return wire.NewPage(described().Document()) })
	s.docs = sync.OnceValue(func() map[string]*wire.Page {
		all := map[string]*wire.Page{}
		for id, page := range described().Pages() {
			all[id] = wire.NewPage(page)
		}
		return all
	})
	s.paths = s.routes()
	if o.Dashboard {
		s.dashboard = dashboard.New(dashboard.Account{
			State: o.State, Now: s.clock.now, Log: s.log, Gate: s.gate, Desk: s.desk,
		})
		limits, prices := o.shown()
		s.console = dashboard.NewOperator(dashboard.Operator{
			State: o.State, Key: o.SystemKey, Now: s.clock.now, Log: s.log, Limits: limits, Prices: prices, Gate: s.gate, Office: office,
		})
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
