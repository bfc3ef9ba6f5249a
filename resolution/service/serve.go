package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leadetl/leadetl/resolution/service/listener"
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
	max := s.options.Connections.Max
	listener.CheckDescriptors(s.log, max, s.options.CallbackConcurrency)
	s.overTLS = on.TLS != nil
	public := listener.Limit(listener.LogErrors(on.Public, "public", s.log, s.now), max)
	servers := []*listener.Server{listener.New("public", public, s.options.Connections.server(s.Public()), headerOfRefusal, on.TLS)}
	for _, plain := range []struct {
		name    string
		on      net.Listener
		handler http.Handler
	}{{"internal", on.Internal, s.Internal()}, {"metrics", on.Metrics, s.Metrics()}} {
		if plain.on != nil {
			l := listener.LogErrors(plain.on, plain.name, s.log, s.now)
			servers = append(servers, listener.New(plain.name, l, s.options.Connections.server(plain.handler), headerOfRefusal, nil))
		}
	}
	if err := s.begin(ctx); err != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("start: %w", err)
		} else {
			err = nil // stopped before it started
		}
		for _, v := range servers {
			err = errors.Join(err, v.Close())
		}
		return err
	}

	// taking ends when the drain starts, working when everything has to stop.
	taking, drain := context.WithCancel(ctx)
	defer drain()
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	failed := make(chan error, len(servers)) // one each
	var upkeep, senders, jobs sync.WaitGroup
	s.startUpkeep(working, &upkeep)
	for range s.options.JobWorkers {
		jobs.Go(func() { s.runJobs(taking, working) })
	}
	senders.Go(func() { _ = s.sender.Run(taking) }) // always nil
	for _, v := range servers {
		upkeep.Go(func() { failed <- v.Run() })
	}

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed: // one that fails stops all
	}
	s.draining.Store(true)
	s.log.Info("draining", "delay", s.options.Connections.DrainDelay)
	if err == nil {
		select {
		case <-time.After(s.options.Connections.DrainDelay):
		case err = <-failed:
		}
	}
	drain()

	deadline, done := context.WithTimeout(context.WithoutCancel(ctx), s.options.Connections.DrainTimeout)
	defer done()
	err = errors.Join(err, servers[0].Shutdown(deadline))
	context.AfterFunc(deadline, stop)
	jobs.Wait()
	senders.Wait()
	if _, requeue := s.state.RequeueLeased(context.WithoutCancel(ctx)); requeue != nil {
		err = errors.Join(err, fmt.Errorf("give jobs back: %w", requeue))
	}
	for _, v := range servers[1:] { // it answered /readyz until now
		err = errors.Join(err, v.Shutdown(deadline))
	}
	stop()
	upkeep.Wait()
	return errors.Join(err, s.countRequests(context.WithoutCancel(ctx)))
}

// begin requeues the jobs that an earlier process left, and reads the
// credentials.
func (s *Service) begin(ctx context.Context) error {
	n, err := s.state.RequeueLeased(ctx)
	if err != nil {
		return err
	}
	if n > 0 {
		s.log.Info("keyword searches of an earlier run are queued again", "jobs", n)
	}
	if err := s.rosters.refresh(ctx); err != nil {
		return err
	}
	return s.rosters.check()
}

// retainEvery is how often data past its retention is removed.
const retainEvery = 5 * time.Minute

// startUpkeep starts the periodic tasks, which run until ctx ends.
func (s *Service) startUpkeep(ctx context.Context, running *sync.WaitGroup) {
	every := func(interval time.Duration, what string, do func(context.Context) error) {
		running.Go(func() { s.repeat(ctx, interval, what, do) })
	}
	every(rosterEvery, "read credentials", s.rosters.refresh)
	every(time.Second, "read balances", s.refreshBalances)
	every(countEvery, "count requests", s.countRequests)
	every(retainEvery, "remove data past its retention", s.retain)
	if s.options.Tokens != nil {
		every(time.Second, "read the keys of tokens", func(ctx context.Context) error { return s.options.Tokens.Reload(ctx, s.now()) })
	}
}

// repeat runs a task at an interval. It logs the first of consecutive errors, and
// the success after them.
func (s *Service) repeat(ctx context.Context, interval time.Duration, what string, do func(context.Context) error) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := do(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			s.log.Error("cannot "+what, "error", err)
		case err == nil && failing:
			s.log.Info("possible again: to " + what)
		}
		failing = err != nil
	}
}

// refreshBalances reads the balances of organizations that called recently:
// another process may have changed them.
func (s *Service) refreshBalances(ctx context.Context) error {
	for _, a := range s.rosters.present.Load().byID {
		if a.asked.Swap(false) {
			if _, err := s.freshBalance(ctx, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// countEvery is how often the requests of organizations are stored. A kill loses
// those since.
const countEvery = 5 * time.Second

func (s *Service) countRequests(ctx context.Context) error {
	counts := s.requests.Take()
	if len(counts) == 0 {
		return nil
	}
	err := s.state.CountRequests(ctx, counts)
	if err != nil {
		s.requests.Return(counts)
	}
	return err
}

// retain removes data past its retention, from the state and from memory.
func (s *Service) retain(ctx context.Context) error {
	now := s.now()
	for _, b := range s.limits {
		b.Sweep(now)
	}
	s.guesses.Sweep(now)
	purged, err := s.state.Purge(ctx, now, s.options.Retention)
	if err == nil {
		s.log.LogAttrs(ctx, slog.LevelDebug, "remove data past its retention", slog.Any("purged", purged))
	}
	return err
}
