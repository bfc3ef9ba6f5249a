package callback

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// memory is an outbox in memory: small, and as an Outbox has to be.
type memory struct {
	settleTakes time.Duration
	mu          sync.Mutex
	pending     []*pending // by due
	byID        map[int64]*pending
	results     []state.Attempt // of all attempts settled
	asked       int             // calls of Due

	dueErr, settleErr func() error // may be nil
}

type pending struct {
	state.Delivery
	due time.Time
}

func newMemory() *memory { return &memory{byID: map[int64]*pending{}} }

// add makes a delivery of organization 7 that is due at once, and returns its
// id.
func (m *memory) add(receiver, url string, body []byte) int64 { return m.addTo(7, receiver, url, body) }

func (m *memory) addTo(organization int64, receiver, url string, body []byte) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := int64(len(m.byID) + 1)
	m.byID[id] = &pending{state.Delivery{ID: id, WebhookID: fmt.Sprintf("msg_%032x", id), Organization: organization, Receiver: receiver, URL: url, Body: body}, time.Now()}
	m.insert(m.byID[id])
	return id
}

func (m *memory) insert(p *pending) {
	at, _ := m.place(p)
	m.pending = slices.Insert(m.pending, at, p)
}

func (m *memory) place(p *pending) (int, bool) {
	return slices.BinarySearchFunc(m.pending, p, func(a, b *pending) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.ID, b.ID))
	})
}

func (m *memory) DueDeliveries(_ context.Context, now time.Time, limit int, scope state.Scope) (due []state.Delivery, next time.Time, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	if m.dueErr != nil {
		if err := m.dueErr(); err != nil {
			return nil, time.Time{}, err
		}
	}
	set := func(lanes []state.Lane) map[state.Lane]bool {
		in := map[state.Lane]bool{}
		for _, l := range lanes {
			in[l] = true
		}
		return in
	}
	only, busy, of := set(scope.Only), set(scope.Busy), map[state.Lane]int{}
	for _, p := range m.pending {
		l := state.Lane{Organization: p.Organization, Receiver: p.Receiver}
		if _, begun := scope.Begun[p.ID]; begun || scope.Only != nil && !only[l] || busy[l] || slices.Contains(scope.Full, p.Organization) {
			continue
		}
		if p.due.After(now) || len(due) == limit || of[l] == scope.Each {
			if next.IsZero() {
				next = p.due
			}
			if of[l] == scope.Each {
				continue // others may be due
			}
			break
		}
		of[l]++
		due = append(due, p.Delivery)
	}
	return due, next, nil
}

func (m *memory) SettleDelivery(_ context.Context, r state.Attempt) error {
	time.Sleep(m.settleTakes)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.settleErr != nil {
		if err := m.settleErr(); err != nil {
			return err
		}
	}
	p := m.byID[r.ID]
	m.results = append(m.results, r)
	at, _ := m.place(p)
	m.pending = slices.Delete(m.pending, at, at+1)
	if p.Attempts++; r.State == state.Pending {
		p.due = r.Due
		m.insert(p)
	}
	return nil
}

// calls returns how often Due was called.
func (m *memory) calls() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

// settled returns the results so far.
func (m *memory) settled() []state.Attempt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.results)
}

// internet is the network of a synctest bubble: connections by host:port, in
// memory.
type internet struct {
	mu        sync.Mutex
	receivers map[string]*listener
	close     []func()
}

// serve puts a receiver on the network, at name:80.
func (n *internet) serve(name string, handler http.HandlerFunc) {
	l := n.listen(name)
	server := &http.Server{Handler: handler}
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(l) })
	n.close = append(n.close, func() { _ = server.Close(); done.Wait() })
}

// answer puts a receiver on the network that answers 204 after a while, and closes the
// connection. It costs less than a whole server, where there are thousands of deliveries.
func (n *internet) answer(name string, after time.Duration, g ...*gauge) {
	l := n.listen(name)
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			done.Go(func() {
				defer conn.Close()
				request, err := http.ReadRequest(bufio.NewReaderSize(conn, 1024))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, request.Body)
				for _, g := range g {
					g.enter()
				}
				time.Sleep(after)
				for _, g := range g {
					g.leave()
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
			})
		}
	})
	n.close = append(n.close, done.Wait)
}

// listen puts a receiver on the network that is not to speak HTTP.
func (n *internet) listen(name string) *listener {
	l := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.receivers == nil {
		n.receivers = map[string]*listener{}
	}
	n.receivers[name+":80"] = l
	n.close = append(n.close, func() { _ = l.Close() })
	return l
}

// dial connects; to an unused address it never does.
func (n *internet) dial(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.receivers[address]
	n.mu.Unlock()
	if l == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// shut ends all servers.
func (n *internet) shut() {
	for _, f := range n.close {
		f()
	}
}

type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }

var testSecret = Secret{secret.New("a secret of thirty-two bytes, ok")}

func secrets(int64) []Secret { return []Secret{testSecret} }

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// bubble is a sender on an internet, inside a synctest bubble.
type bubble struct {
	*internet
	*memory
	*Sender
	began time.Time
	stop  func() // ends the run and waits for it
}

// runIn starts a sender; the test calls stop before it ends, or leaves it to
// the cleanup.
func runIn(t *testing.T, net *internet, m *memory, set func(*Options)) *bubble {
	t.Helper()
	o := Options{
		Outbox: m, Secrets: secrets, Policy: &Policy{Allow: loopback},
		Random: func() float64 { return 0.5 }, // no jitter
		dial:   net.dial,
	}
	if set != nil {
		set(&o)
	}
	b := &bubble{internet: net, memory: m, Sender: NewSender(o), began: time.Now()}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := b.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	b.stop = func() { cancel(); done.Wait() }
	t.Cleanup(func() { b.stop(); net.shut() })
	return b
}

// post adds a delivery to name:80 and wakes the sender.
func (b *bubble) post(name string) int64 { return b.postFor(7, name) }

func (b *bubble) postFor(organization int64, name string) int64 {
	id := b.addTo(organization, name+":80", "http://"+name+"/hook", []byte(`{"success":true}`))
	b.Wake()
	return id
}

// after returns how long after the beginning a moment was.
func (b *bubble) after(at time.Time) time.Duration { return at.Sub(b.began) }
