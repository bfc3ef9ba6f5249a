// Package serving serves HTTP on a listener until it is told to stop, and then
// waits for the requests in flight.
package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
)

// Server answers the requests of one listener.
type Server struct {
	name     string
	listener net.Listener
	http     *http.Server
	inFlight openRequests
}

// New makes a server from config, which it changes. header returns the headers of
// an answer to a malformed request. If secure is not nil, the server speaks TLS.
func New(name string, l net.Listener, config *http.Server, header func() http.Header, secure *tls.Config) *Server {
	s := &Server{name: name, listener: l, http: config}
	handler := config.Handler
	config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.inFlight.enter() {
			panic(http.ErrAbortHandler)
		}
		defer s.inFlight.leave()
		handler.ServeHTTP(w, r)
	})
	config.ConnContext = withConnection
	config.DisableGeneralOptionsHandler = true   // its answer would lack our headers
	config.ErrorLog = log.New(io.Discard, "", 0) // its lines contain addresses of clients
	if secure != nil {
		config.TLSConfig = secure.Clone()
		config.TLSConfig.MinVersion = max(secure.MinVersion, tls.VersionTLS12)
		config.TLSConfig.NextProtos = []string{"h2", "http/1.1"}
		s.listener = newSecure(l, header, config.TLSConfig, config.ReadHeaderTimeout)
	} else {
		s.listener = plain{l, header}
	}
	return s
}

// Close closes the listener of a server that is not running.
func (s *Server) Close() error { return s.listener.Close() }

// Run answers until Shutdown, which is not an error.
func (s *Server) Run() error {
	err := s.http.Serve(s.listener)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("%s listener: %w", s.name, err)
}

// Shutdown closes the listener, waits for the requests in flight until ctx
// ends, and cuts off the rest.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("%s listener: requests were cut off: %w", s.name, err), s.http.Close())
	}
	s.inFlight.drain()
	return err
}
