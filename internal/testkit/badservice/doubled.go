package badservice

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// conn is a connection on which an answer can be sent twice.
type conn struct {
	net.Conn

	mu     sync.Mutex
	fate   Fate   // of the last answer
	answer []byte // as it was sent, to send it again
}

// conns makes a conn of each connection.
type conns struct{ net.Listener }

func (l conns) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

type connKey struct{}

func remember(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// told sends an answer again as soon as it is complete.
func told(on net.Conn, state http.ConnState) {
	if state == http.StateIdle {
		on.(*conn).repeat(Doubled)
	}
}

// follow is told the fate of the answer that follows.
func (c *conn) follow(f Fate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fate, c.answer = f, nil
}

// repeat sends the last answer again if that is its fate.
func (c *conn) repeat(f Fate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fate == f && len(c.answer) > 0 {
		c.fate = Answered
		_, _ = c.Conn.Write(c.answer) // the caller may be gone
	}
}

func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fate == Doubled || c.fate == DoubledLate {
		c.answer = append(c.answer, p...)
	}
	return c.Conn.Write(p)
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.repeat(DoubledLate)
	}
	return n, err
}
