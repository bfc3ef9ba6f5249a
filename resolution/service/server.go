package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"

	"golang.org/x/net/netutil"
)

// Serve answers on both listeners until ctx ends, and works on keyword
// searches and callbacks meanwhile. internal may be nil. With secure, the
// public listener speaks TLS. Serve closes the listeners, and is called once.
//
// When ctx ends it drains: /readyz says 503, no connection is accepted any
// more, and what is under way has Connections.DrainTimeout to finish. A
// keyword search that does not goes back into the queue. Then everything has
// stopped, and the error is nil unless requests were cut off.
func (s *Service) Serve(ctx context.Context, public, internal net.Listener, secure *tls.Config) error {
	s.checkDescriptors()
	servers := []*server{s.newServer("public", netutil.LimitListener(s.tell("public", public), s.options.Connections.Max), s.Public(), secure)}
	if internal != nil {
		servers = append(servers, s.newServer("internal", s.tell("internal", internal), s.Internal(), nil))
	}
	if err := s.begin(ctx); err != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("start: %w", err)
		} else {
			err = nil // told to end before it began
		}
		for _, v := range servers {
			err = errors.Join(err, v.listener.Close())
		}
		return err
	}

	// taking ends when the drain begins, working when nothing may go on.
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
		upkeep.Go(func() { failed <- v.run() })
	}

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed: // one that cannot go on ends all
	}
	s.log.Info("draining")
	s.draining.Store(true)
	drain()

	deadline, done := context.WithTimeout(context.WithoutCancel(ctx), s.options.Connections.DrainTimeout)
	defer done()
	err = errors.Join(err, servers[0].shutdown(deadline))
	context.AfterFunc(deadline, stop)
	jobs.Wait()
	senders.Wait()
	if _, requeue := s.state.RequeueLeased(context.WithoutCancel(ctx)); requeue != nil {
		err = errors.Join(err, fmt.Errorf("give jobs back: %w", requeue))
	}
	for _, v := range servers[1:] { // it told of the drain until now
		err = errors.Join(err, v.shutdown(deadline))
	}
	stop()
	upkeep.Wait()
	return err
}

// begin makes ready what an earlier run left.
func (s *Service) begin(ctx context.Context) error {
	n, err := s.state.RequeueLeased(ctx)
	if err != nil {
		return err
	}
	if n > 0 {
		s.log.Info("keyword searches of an earlier run go on", "jobs", n)
	}
	if err := s.rosters.refresh(ctx); err != nil {
		return err
	}
	return s.rosters.check()
}

// server is one of the listeners with what answers on it.
type server struct {
	name     string
	listener net.Listener
	http     *http.Server
	underway underway
}

func (s *Service) newServer(name string, l net.Listener, h http.Handler, secure *tls.Config) *server {
	c := s.options.Connections
	v := &server{name: name, listener: l}
	v.http = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !v.underway.enter() {
				panic(http.ErrAbortHandler)
			}
			defer v.underway.leave()
			h.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: c.HeaderTimeout,
		ReadTimeout:       c.ReadTimeout,
		WriteTimeout:      c.WriteTimeout,
		IdleTimeout:       c.IdleTimeout,
		MaxHeaderBytes:    c.MaxHeaderBytes,
		ErrorLog:          log.New(io.Discard, "", 0), // it would tell of clients' addresses
	}
	if secure != nil {
		v.http.TLSConfig = secure.Clone()
		v.http.TLSConfig.MinVersion = max(secure.MinVersion, tls.VersionTLS12)
	}
	return v
}

// run answers until shutdown, which is no error.
func (v *server) run() error {
	var err error
	if v.http.TLSConfig != nil {
		err = v.http.ServeTLS(v.listener, "", "")
	} else {
		err = v.http.Serve(v.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("%s listener: %w", v.name, err)
}

// shutdown closes the listener, waits for the requests under way until ctx
// ends, and cuts the rest off.
func (v *server) shutdown(ctx context.Context) error {
	err := v.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("%s listener: requests were cut off: %w", v.name, err), v.http.Close())
	}
	v.underway.end()
	return err
}
