package exchange

import (
	"context"
	"crypto/tls"
	"errors"
	"hash/maphash"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// wire is a connection. It counts the bytes handed to the system to send: a request of
// which none was sent cannot have reached the service. And it knows whether there is
// anything on it that belongs to no request. net/http gives a connection to the next
// call before it looks for that, and would take the rest of one answer for the next.
type wire struct {
	net.Conn
	raw   syscall.RawConn // nil without one
	era   int64           // of its line when it was dialed
	bytes atomic.Int64
	last  uint64        // digest of the last answer
	took  time.Duration // for which that was waited

	mu      sync.Mutex
	changed sync.Cond // waits, taken or closed
	waits   bool      // in Read: net/http has looked at all that came before
	taken   bool      // by a call, until its answer is judged
	ended   bool      // Read came to an end
	closed  bool
}

func newWire(c net.Conn, era int64) *wire {
	w := &wire{Conn: c, era: era}
	w.changed.L = &w.mu
	if system, is := c.(syscall.Conn); is {
		w.raw, _ = system.SyscallConn()
	}
	return w
}

func (c *wire) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.bytes.Add(int64(n))
	return n, err
}

// Read waits first, and reads then, so that what has arrived is always either to be seen
// on the connection or in the hands of net/http.
func (c *wire) Read(p []byte) (int, error) {
	c.change(func() { c.waits = true })
	if c.raw != nil {
		_ = c.raw.Read(hasArrived) // Conn.Read has its error, too
		c.change(func() { c.waits = false })
	}
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits, c.ended = false, c.ended || err != nil
	return n, err
}

// hasArrived reports whether bytes, or the end, are there to be read.
func hasArrived(fd uintptr) bool {
	var one [1]byte
	for {
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if !errors.Is(err, syscall.EINTR) {
			return !errors.Is(err, syscall.EAGAIN)
		}
	}
}

func (c *wire) Close() error {
	c.change(func() { c.closed = true })
	return c.Conn.Close()
}

func (c *wire) change(set func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	set()
	c.changed.Broadcast()
}

// take waits until the last call is done with the wire, and reports whether the next
// one may use it: nothing has arrived that belongs to no request, not even the end. A
// new connection under TLS has messages of TLS itself.
func (c *wire) take(reused, encrypted bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed && (c.taken || !c.waits) {
		c.changed.Wait()
	}
	if c.closed {
		return false
	}
	c.taken = true
	if c.raw == nil || !reused && encrypted {
		return true
	}
	arrived := true // if it is closed
	_ = c.raw.Control(func(fd uintptr) { arrived = hasArrived(fd) })
	return !arrived
}

// leave gives the wire to the next call.
func (c *wire) leave() { c.change(func() { c.taken = false }) }

// isOverfull reports whether more than one answer came, as soon as net/http has looked:
// it closes such a connection. Another answer is waited for with patience.
func (c *wire) isOverfull(patience time.Duration) bool {
	until := time.Now().Add(patience)
	if patience > 0 {
		defer time.AfterFunc(patience, c.changed.Broadcast).Stop()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed && (!c.waits || time.Now().Before(until)) {
		c.changed.Wait()
	}
	return c.closed && !c.ended
}

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Watched makes wires of the connections of a line.
func (l *Line) Watched(d dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		era := l.era.Load()
		conn, err := d(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return newWire(conn, era), nil
	}
}

// Watch follows one request: its connection, and how many bytes were sent there
// before it.
type Watch struct {
	line   *Line
	conn   *wire // nil before there is one
	before int64
	reused bool                      // the connection had requests before
	unfit  bool                      // the connection was not used
	repeat time.Duration             // how long to wait for another answer, if this one is as that before; else 0
	kept   atomic.Bool               // the connection is for other requests, too
	ended  atomic.Pointer[time.Time] // when the last byte was sent
}

// begin is called with the connection for a request, perhaps again with another one.
// It closes an unwanted one, so that all writes to it fail: also any that net/http takes to
// send a GET once more, because a kept connection broke after it was sent.
func (w *Watch) begin(info httptrace.GotConnInfo) {
	w.Done()
	isSent := w.wrote()
	c, encrypted := info.Conn, false
	for {
		layer, is := c.(*tls.Conn) // two, by a proxy with TLS
		if !is {
			break
		}
		c, encrypted = layer.NetConn(), true
	}
	if isSent {
		_ = c.Close()
		return
	}
	if w.conn, _ = c.(*wire); w.conn == nil {
		return
	}
	w.before, w.reused = w.conn.bytes.Load(), info.Reused
	w.unfit = !w.conn.take(info.Reused, encrypted) || w.reused && w.conn.era != w.line.era.Load()
	if w.unfit {
		_ = w.conn.Close()
	}
}

// Done gives the connection to the next call, unless calls have failed since it was
// dialed.
func (w *Watch) Done() {
	switch {
	case w.conn == nil:
	case w.conn.era != w.line.era.Load():
		_ = w.conn.Close()
	default:
		w.conn.leave()
	}
}

// trace are the hooks with which net/http tells of a request.
func (w *Watch) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn:      w.begin,
		WroteRequest: w.end,
		PutIdleConn:  func(err error) { w.kept.Store(err == nil) },
	}
}

// IsDoubtful reports whether the answer may be that to another request: there was one
// before on this connection, and more came than one answer. found says that it is an answer
// with data: if it is the one before, byte for byte, it may have been sent twice, and the right one
// is waited for. If others are mixed up meanwhile, it is doubtful, too.
func (w *Watch) IsDoubtful(found bool) bool {
	if w.conn == nil || !w.reused {
		return false
	}
	patience, isRepeat := time.Duration(0), found && w.repeat > 0
	if isRepeat && (w.line.alike.Load() < enoughAlike || w.line.era.Load() > 0) {
		patience = w.repeat
	}
	isOverfull := w.kept.Load() && w.conn.isOverfull(patience)
	if w.conn.era != w.line.era.Load() { // Renew has closed it
		return isRepeat
	}
	if isRepeat && !isOverfull {
		w.line.alike.Add(1)
	}
	return isOverfull
}

// enoughAlike answers that were the same as the one before, and right, say that a service answers
// different questions alike: it is not waited for others any more until it mixes some up.
const enoughAlike = 8

// The bounds of the wait for another answer. In between it is twice the wait for the one before.
const leastRepeat, mostRepeat = 50 * time.Millisecond, 2 * time.Second

// compare compares an answer, with its encodings, with the one before it on the connection.
func (w *Watch) compare(status int, header http.Header, body []byte, took time.Duration) {
	if w.conn == nil {
		return
	}
	var sum maphash.Hash
	sum.SetSeed(w.line.seed)
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			sum.WriteString(name)
			sum.WriteString(value)
		}
	}
	sum.Write(body)
	digest := sum.Sum64() + uint64(status)
	if w.reused && digest == w.conn.last {
		w.repeat = min(max(2*w.conn.took, leastRepeat), mostRepeat)
	}
	w.conn.last, w.conn.took = digest, took
}

// end notes that the request was sent. net/http calls it in another goroutine.
func (w *Watch) end(httptrace.WroteRequestInfo) { w.ended.Store(new(time.Now())) }

// waited is how long ago the last byte was sent; 0 if some are not sent yet.
func (w *Watch) waited() time.Duration {
	if at := w.ended.Load(); at != nil {
		return time.Since(*at)
	}
	return 0
}

// wrote reports whether any of the request was sent. On an unfit connection nothing was:
// what TLS says when it is closed is not the request.
func (w *Watch) wrote() bool {
	return w.conn != nil && !w.unfit && w.conn.bytes.Load() != w.before
}
