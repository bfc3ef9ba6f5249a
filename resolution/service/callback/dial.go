package callback

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// dialFunc opens a connection to host:port.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// dialTimeout bounds connecting and TLS together. It is shorter than an attempt, so
// that the other addresses of a name are tried after a dead one.
const dialTimeout = 10 * time.Second

// dialer returns a dialFunc that enforces the policy. It checks the IP address that
// the system is about to connect to, after all look-ups, so nothing can change
// between the check and the connection. plain is for http, which only addresses of
// Allow may use.
func (p *Policy) dialer(plain bool) dialFunc {
	d := &net.Dialer{
		Resolver: p.resolver(),
		ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			return p.judge(network, address, plain)
		},
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if _, err := netip.ParseAddr(host); err != nil {
			host = absolute(host)
		}
		return d.DialContext(ctx, network, net.JoinHostPort(host, port))
	}
}

// judge checks whether a connection may be opened. The error is a Refusal.
func (p *Policy) judge(network, address string, plain bool) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return ErrSpecialAddress // not an address at all
	}
	switch {
	case p.opened(a.Addr()):
		return nil
	case plain:
		return ErrNotHTTPS
	case a.Port() != 443 && a.Port() != 8443:
		return ErrPort
	case isSpecial(a.Addr()):
		return ErrSpecialAddress
	}
	return nil
}

// tlsError says that a connection was made, but TLS over it failed.
type tlsError struct{ err error }

func (e *tlsError) Error() string { return fmt.Sprintf("tls: %v", e.err) }

func (e *tlsError) Unwrap() error { return e.err }

// overTLS returns a dialFunc for https: TLS 1.2 or later, with a trusted certificate
// for the host in address. fits, if not nil, checks the connection; its error closes
// it.
func overTLS(dial dialFunc, config *tls.Config, fits func(*tls.Conn) error) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		raw, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := config.Clone()
		c.ServerName, c.MinVersion = host, tls.VersionTLS12
		conn := tls.Client(raw, c)
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, &tlsError{err}
		}
		if fits != nil {
			if err := fits(conn); err != nil {
				_ = conn.Close()
				return nil, err
			}
		}
		return conn, nil
	}
}

// bounded returns a dialFunc that ends after dialTimeout, and when life ends. The
// transport does not end it with its attempt, because another attempt may use the
// connection.
func bounded(dial dialFunc, life context.Context) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		return dial(ctx, network, address)
	}
}
