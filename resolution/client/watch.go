package client

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// wire is a connection that counts the bytes handed to the system to send. A
// request of which none was sent cannot have reached the service.
type wire struct {
	net.Conn
	bytes atomic.Int64
}

func (c *wire) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.bytes.Add(int64(n))
	return n, err
}

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

func watched(d dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := d(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &wire{Conn: c}, nil
	}
}

// watch follows one request: its connection, and how many bytes were sent there
// before it.
type watch struct {
	conn   *wire // nil before there is one
	before int64
	ended  atomic.Pointer[time.Time] // when the last byte was sent
}

func (w *watch) begin(info httptrace.GotConnInfo) {
	c := info.Conn
	if encrypted, is := c.(*tls.Conn); is {
		c = encrypted.NetConn()
	}
	if w.conn, _ = c.(*wire); w.conn != nil {
		w.before = w.conn.bytes.Load()
	}
}

// end notes that the request was sent. net/http calls it in another goroutine.
func (w *watch) end(httptrace.WroteRequestInfo) { w.ended.Store(new(time.Now())) }

// waited is how long ago the last byte was sent; 0 if some are not sent yet.
func (w *watch) waited() time.Duration {
	if at := w.ended.Load(); at != nil {
		return time.Since(*at)
	}
	return 0
}

// wrote reports whether any of the request was sent.
func (w *watch) wrote() bool { return w.conn != nil && w.conn.bytes.Load() != w.before }
