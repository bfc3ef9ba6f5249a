package serving

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// plain is a listener that wraps each connection in a connection.
type plain struct {
	net.Listener
	header func() http.Header
}

// Accept implements net.Listener.
func (l plain) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &connection{Conn: c, header: l.header}, nil
}

// secure is a TLS listener. It makes the handshakes itself, concurrently.
// http.Server speaks HTTP/2 only on a *tls.Conn, but HTTP/1 connections must be
// wrapped to be inspected.
type secure struct {
	net.Listener
	header   func() http.Header
	config   *tls.Config
	timeout  time.Duration // of a handshake
	accepted chan accepted
	open     context.Context // canceled by Close
	close    context.CancelFunc
	running  sync.WaitGroup
}

type accepted struct {
	conn net.Conn
	err  error
}

func newSecure(l net.Listener, header func() http.Header, config *tls.Config, timeout time.Duration) *secure {
	s := &secure{Listener: l, header: header, config: config, timeout: timeout, accepted: make(chan accepted)}
	s.open, s.close = context.WithCancel(context.Background())
	s.running.Go(s.run)
	return s
}

// run accepts until the listener is closed. After an error it waits until the
// server has seen it.
func (s *secure) run() {
	for {
		c, err := s.Listener.Accept()
		if err == nil {
			s.running.Go(func() { s.shakeHands(tls.Server(c, s.config)) })
			continue
		}
		select {
		case s.accepted <- accepted{err: err}:
		case <-s.open.Done():
			return
		}
	}
}

func (s *secure) shakeHands(c *tls.Conn) {
	ctx, cancel := context.WithTimeout(s.open, s.timeout)
	defer cancel()
	to := accepted{conn: c}
	// If the handshake failed, the server gets the same error and answers it.
	if err := c.HandshakeContext(ctx); err == nil && c.ConnectionState().NegotiatedProtocol != "h2" {
		to.conn = &connection{Conn: c, header: s.header}
	}
	select {
	case s.accepted <- to:
	case <-s.open.Done():
		_ = c.Close() // nothing accepts it any more
	}
}

// Accept implements net.Listener.
func (s *secure) Accept() (net.Conn, error) {
	select {
	case a := <-s.accepted:
		return a.conn, a.err
	case <-s.open.Done():
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (s *secure) Close() error {
	s.close()
	err := s.Listener.Close()
	s.running.Wait()
	return err
}
