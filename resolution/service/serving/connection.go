package serving

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// lingerTimeout is how long the rest of a refused request is read and thrown away
// after its answer. A connection that is closed with unread bytes is reset, and a
// client that sends first might never see the answer.
// Source: RFC 9112, 9.6.
const lingerTimeout = 5 * time.Second

// connection is an HTTP/1 connection that inspects the bytes its server reads and
// writes.
type connection struct {
	net.Conn
	header    func() http.Header
	lines     lines
	ambiguous atomic.Bool
}

// Read implements net.Conn.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.lines.ambiguous(p[:n]) {
		c.ambiguous.Store(true)
	}
	return n, err
}

// Write adds the headers of every answer to those that net/http gives before any
// handler sees the request. It writes the head of such an answer at once.
func (c *connection) Write(p []byte) (int, error) {
	line, rest, _ := bytes.Cut(p[:min(len(p), maxStatusLine)], lineEnd)
	if !bytes.HasPrefix(line, ownAnswer) || !bytes.HasPrefix(rest, ownHeader) && !bytes.HasSuffix(line, ownExpectation) {
		return c.Conn.Write(p)
	}
	whole := bytes.NewBuffer(append(bytes.Clone(line), lineEnd...))
	_ = c.header().Write(whole) // a Buffer takes everything
	whole.Write(p[len(line)+len(lineEnd):])
	if _, err := c.Conn.Write(whole.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// maxStatusLine bounds the bytes in which net/http's own status line and header are
// looked for.
const maxStatusLine = 1 << 10

// How net/http begins its own answers.
// Source: Go 1.26, net/http/server.go, conn.serve and response.sendExpectationFailed.
var (
	ownAnswer      = []byte("HTTP/1.1 ")
	ownHeader      = []byte("Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")
	ownExpectation = []byte(" 417 Expectation Failed")
	lineEnd        = []byte("\r\n")
)

// CloseWrite ends the answers and throws away what the client still sends.
// http.Server calls it before it closes a connection whose request it did not read.
func (c *connection) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return nil
	}
	err := half.CloseWrite()
	Linger(c.Conn)
	return err
}

// Linger reads and throws away what a client still sends, for a bounded time.
func Linger(c interface {
	io.Reader
	SetReadDeadline(time.Time) error
}) {
	if c.SetReadDeadline(time.Now().Add(lingerTimeout)) == nil {
		_, _ = io.Copy(io.Discard, c) // ends when the client closes, or at the deadline
	}
}

// lines inspects the header lines of requests. It does not know where bodies
// begin. A line of a body that looks like a header affects only its own request.
type lines struct {
	begun   [len("transfer-encoding:")]byte // of the current line
	n       int                             // bytes in the line, as far as begun
	lengths bool                            // since the last empty line
	chunks  bool
}

// ambiguous reports whether the bytes complete a head with both Content-Length
// and Transfer-Encoding, which two servers may read as different requests.
// Source: RFC 9112, 6.1.
func (l *lines) ambiguous(p []byte) (found bool) {
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		l.n += copy(l.begun[l.n:], line)
		p = rest
		if !ended {
			break
		}
		begun := l.begun[:l.n]
		l.n = 0
		switch {
		case len(begun) == 0 || len(begun) == 1 && begun[0] == '\r':
			found = found || l.lengths && l.chunks
			l.lengths, l.chunks = false, false
		case hasName(begun, "content-length:"):
			l.lengths = true
		case hasName(begun, "transfer-encoding:"):
			l.chunks = true
		}
	}
	return found
}

func hasName(line []byte, name string) bool {
	return len(line) >= len(name) && bytes.EqualFold(line[:len(name)], []byte(name))
}

// connectionKey is the key of a request's connection in its context.
type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	if c, ok := c.(*connection); ok {
		return context.WithValue(ctx, connectionKey{}, c)
	}
	return ctx
}

// Ambiguous reports whether a request came with both Content-Length and
// Transfer-Encoding. net/http ignores the length and does not say so.
func Ambiguous(r *http.Request) bool {
	if len(r.TransferEncoding) == 0 {
		return false
	}
	c, ok := r.Context().Value(connectionKey{}).(*connection)
	return ok && c.ambiguous.Load()
}

// Limit returns l with at most n open connections; further ones wait. Unlike the
// connections of netutil.LimitListener, these can be half closed.
func Limit(l net.Listener, n int) net.Listener {
	return &limit{Listener: l, places: make(chan struct{}, n), closed: make(chan struct{})}
}

type limit struct {
	net.Listener
	places  chan struct{}
	closed  chan struct{}
	closing sync.Once
}

// Accept implements net.Listener.
func (l *limit) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &place{Conn: c, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

// Close implements net.Listener.
func (l *limit) Close() error {
	err := l.Listener.Close()
	l.closing.Do(func() { close(l.closed) })
	return err
}

// place is one connection of a limit.
type place struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (p *place) Close() error {
	err := p.Conn.Close()
	p.leave()
	return err
}

// CloseWrite closes the write side.
func (p *place) CloseWrite() error {
	if half, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
