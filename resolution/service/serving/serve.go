package serving

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

	"github.com/leadetl/leadetl/resolution/service/wire"
)

// Listener is one listener of a service with what answers on it.
type Listener struct {
	Name    string
	On      net.Listener
	TLS     *tls.Config // nil means plain HTTP
	Handler http.Handler
}

// Task is what a service does at an interval.
type Task struct {
	Every   time.Duration
	AtStart bool   // also at once
	Name    string // what it does, after "cannot"
	Do      func(context.Context) error
}

// Service is what runs while its listeners are open. All functions are required.
type Service struct {
	Connections Connections
	Outgoing    int // connections that it opens itself
	Health      *Health
	Log         *slog.Logger
	Now         func() time.Time

	// Begin comes before the first request.
	Begin func(ctx context.Context) error
	Tasks []Task
	// Workers take new work until taking ends, and finish it until working ends.
	Workers []func(taking, working context.Context)
	// Hurry makes all work wait less for what others hold. It comes when the time of the
	// drain is over, or what is left to do is the end.
	Hurry func()
	// Return gives back the work that was not finished. End is the last.
	Return, End func(ctx context.Context) error
}

// endTimeout is the time for the last changes. What they do not do, the next start does, or
// a kill would have lost it too.
const endTimeout = 3 * time.Second

// Run answers on listeners until ctx ends, and drains. The first listener stops
// accepting before the others, which tell monitoring about the drain. Run closes
// the listeners. Nothing runs after it returns. The error is nil unless requests
// were cut off.
func (s *Service) Run(ctx context.Context, on ...Listener) error {
	CheckDescriptors(s.Log, s.Connections.Max, s.Outgoing)
	servers := s.servers(on)
	if err := s.Begin(ctx); err != nil {
		if err = fmt.Errorf("start: %w", err); ctx.Err() != nil {
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
	var upkeep, workers sync.WaitGroup
	for _, t := range s.Tasks {
		upkeep.Go(func() { s.repeat(working, t) })
	}
	for _, work := range s.Workers {
		workers.Go(func() { work(taking, working) })
	}
	for _, v := range servers {
		upkeep.Go(func() { failed <- v.Run() })
	}

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed: // one that fails stops all
	}
	s.Health.draining.Store(true)
	s.Log.Info("draining", "delay", s.Connections.DrainDelay)
	if err == nil {
		select {
		case <-time.After(s.Connections.DrainDelay):
		case err = <-failed:
		}
	}
	drain()

	deadline, done := context.WithTimeout(context.WithoutCancel(ctx), s.Connections.DrainTimeout)
	defer done()
	err = errors.Join(err, servers[0].Shutdown(deadline))
	context.AfterFunc(deadline, func() {
		s.Hurry()
		stop()
	})
	workers.Wait()
	s.Hurry()
	last, over := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer over()
	err = errors.Join(err, s.late("give jobs back", s.Return(last)))
	for _, v := range servers[1:] { // it answered /readyz until now
		err = errors.Join(err, v.Shutdown(deadline))
	}
	stop()
	upkeep.Wait()
	return errors.Join(err, s.late("store the counts of requests", s.End(last)))
}

// servers makes the servers of listeners, of which the first has the limit.
func (s *Service) servers(on []Listener) (servers []*Server) {
	for i, l := range on {
		from := LogErrors(l.On, l.Name, s.Log, s.Now)
		if i == 0 {
			from = Limit(from, s.Connections.Max)
		}
		servers = append(servers, New(l.Name, from, s.Connections.server(l.Handler), headerOfRefusal, l.TLS))
	}
	return servers
}

// late logs that the last changes were not possible in time, such as under the lock of another
// process: the next start does them, or does without. Other errors are returned.
func (s *Service) late(what string, err error) error {
	if err == nil || wire.MayPass(err) {
		if err != nil {
			s.Log.Warn("stopped before it was possible to "+what, "error", err)
		}
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// repeat runs a task until ctx ends. It logs the first of consecutive errors, and
// the success after them.
func (s *Service) repeat(ctx context.Context, t Task) {
	tick := time.NewTicker(t.Every)
	defer tick.Stop()
	failing := false
	for now := t.AtStart; ; now = false {
		if !now {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		err := t.Do(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !failing:
			s.Log.Error("cannot "+t.Name, "error", err)
		case err == nil && failing:
			s.Log.Info("possible again: to " + t.Name)
		}
		failing = err != nil
	}
}
