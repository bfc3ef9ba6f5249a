package service

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/leadetl/leadetl/resolution/service/account"
	"github.com/leadetl/leadetl/resolution/service/serving"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// Listeners are the listeners of a service.
type Listeners struct {
	Public net.Listener
	// TLS is spoken on Public; nil means plain HTTP.
	TLS *tls.Config
	// Internal and Metrics are plain HTTP; nil means that there is none.
	Internal, Metrics net.Listener
}

// Serve answers on its listeners until ctx ends, and works on keyword searches
// and callbacks meanwhile. It closes the listeners, and is called once.
//
// When ctx ends, Serve drains. /readyz answers 503, and for
// Connections.DrainDelay calls are still accepted, so that load balancers can
// notice. Then no more connections are accepted, and requests, searches and
// callbacks in progress have Connections.DrainTimeout to finish. An unfinished
// keyword search goes back into the queue. Nothing runs after Serve returns. The
// error is nil unless requests were cut off.
func (s *Service) Serve(ctx context.Context, on Listeners) error {
	s.overTLS = on.TLS != nil
	listeners := []serving.Listener{{Name: "public", On: on.Public, TLS: on.TLS, Handler: s.Public()}}
	if on.Internal != nil {
		listeners = append(listeners, serving.Listener{Name: "internal", On: on.Internal, Handler: s.Internal()})
	}
	if on.Metrics != nil {
		listeners = append(listeners, serving.Listener{Name: "metrics", On: on.Metrics, Handler: s.Metrics()})
	}
	workers := []func(taking, working context.Context){
		func(taking, _ context.Context) { _ = s.sender.Run(taking) }, // always nil
	}
	for range s.options.JobWorkers {
		workers = append(workers, s.answering.RunJobs)
	}
	running := &serving.Service{
		Connections: s.options.Connections, Outgoing: s.options.CallbackConcurrency, Health: s.health, Log: s.log, Now: s.clock.now,
		Begin: s.begin, Tasks: s.tasks(), Workers: workers, Hurry: s.state.Hurry, End: s.desk.StoreRequests,
		Return: func(ctx context.Context) error {
			_, err := s.state.RequeueLeased(ctx)
			return err
		},
	}
	return running.Run(ctx, listeners...)
}

// begin takes up what an earlier process left, and reads the credentials. Where the state is
// damaged there, the service starts all the same, and /readyz says why it gets no calls.
func (s *Service) begin(ctx context.Context) error {
	err := s.noteDamage(s.takeUp(ctx))
	if errors.Is(err, state.ErrDamaged) {
		s.log.Error("cannot take up callbacks and searches of an earlier run", "error", err)
		err = nil
	}
	if err != nil {
		return err
	}
	if err := s.roster.Refresh(ctx); err != nil {
		return err
	}
	return s.roster.Check()
}

// takeUp makes due what a clock that was ahead put off, and requeues the jobs that an earlier
// process left.
func (s *Service) takeUp(ctx context.Context) error {
	if err := s.clampDue(ctx); err != nil {
		return err
	}
	n, err := s.state.RequeueLeased(ctx)
	if err == nil && n > 0 {
		s.log.Info("keyword searches of an earlier run are queued again", "jobs", n)
	}
	return err
}

func (s *Service) clampDue(ctx context.Context) error {
	early, err := s.state.ClampDue(ctx, s.clock.now(), s.options.Lease, s.sender.LongestWaits())
	if early > 0 {
		s.log.Warn("the clock was ahead when callbacks or searches were postponed; they are due now", "count", early)
	}
	return err
}

// noteDamage lets /readyz fail if an error says that the state is damaged. It returns the error.
func (s *Service) noteDamage(err error) error {
	if errors.Is(err, state.ErrDamaged) {
		s.setDamaged(true)
	}
	return err
}

func (s *Service) setDamaged(damaged bool) {
	s.health.SetDamaged(damaged)
	s.metrics.SetDamaged(damaged)
}

// tasks are what runs beside the requests. A kill loses the counts of requests
// since they were stored last.
func (s *Service) tasks() []serving.Task {
	tasks := []serving.Task{
		{Every: account.RefreshEvery, Name: "read credentials", Do: s.roster.Refresh},
		{Every: time.Second, Name: "read balances", Do: s.roster.RefreshBalances},
		{Every: 5 * time.Second, Name: "count requests", Do: s.desk.StoreRequests},
		{Every: 5 * time.Second, AtStart: true, Name: "make due what a clock put off that was set back", Do: func(ctx context.Context) error {
			return s.clock.follow(func() error { return s.clampDue(ctx) })
		}},
		{Every: 24 * time.Hour, AtStart: true, Name: "find the state undamaged", Do: s.findDamage},
		{Every: 5 * time.Minute, Name: "remove data past its retention", Do: s.retain},
	}
	if s.options.Tokens != nil {
		tasks = append(tasks, serving.Task{Every: time.Second, Name: "read the keys of tokens", Do: func(ctx context.Context) error {
			return s.options.Tokens.Reload(ctx, s.clock.now())
		}})
	}
	return tasks
}

// findDamage reads the whole state. /readyz fails while it is damaged: a service whose
// answers and charges may be lost should get no more calls.
func (s *Service) findDamage(ctx context.Context) error {
	err := s.state.FindDamage(ctx)
	damaged := errors.Is(err, state.ErrDamaged)
	if err == nil || damaged {
		s.setDamaged(damaged)
	}
	return err
}

// retain removes data past its retention, from the state and from memory.
func (s *Service) retain(ctx context.Context) error {
	now := s.clock.now()
	s.gate.Sweep(now)
	purged, err := s.state.Purge(ctx, now, s.options.Retention)
	if err == nil {
		s.log.LogAttrs(ctx, slog.LevelDebug, "remove data past its retention", slog.Any("purged", purged))
	}
	return err
}
