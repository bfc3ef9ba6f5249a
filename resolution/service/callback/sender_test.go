package callback

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// status answers with a status alone.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// gauge counts what is under way, and remembers the most.
type gauge struct {
	mu        sync.Mutex
	now, most int
}

func (g *gauge) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now++
	g.most = max(g.most, g.now)
}

func (g *gauge) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now--
}

// TestSchedule follows a delivery to a receiver that is never well. It keeps its schedule if
// the sender looks at the outbox while an attempt is being settled.
func TestSchedule(t *testing.T) {
	for _, settling := range []time.Duration{0, time.Second} {
		t.Run(settling.String(), func(t *testing.T) { schedule(t, settling) })
	}
}

func schedule(t *testing.T, settling time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		n := new(internet)
		var ids, stamps []string
		var mu sync.Mutex
		n.serve("ill.example.com", func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			ids, stamps = append(ids, r.Header.Get(HeaderID)), append(stamps, r.Header.Get(HeaderTimestamp))
			w.WriteHeader(http.StatusInternalServerError)
		})
		outbox := newMemory()
		outbox.settleTakes = settling
		b := runIn(t, n, outbox, func(o *Options) { o.Poll = time.Hour })
		b.post("ill.example.com")
		time.Sleep(80 * time.Hour)

		want := []time.Duration{ // time since start, as Standard Webhooks has it
			0, 5 * time.Second, 305 * time.Second, 2105 * time.Second, 9305 * time.Second, 27305 * time.Second,
			63305 * time.Second, 113705 * time.Second, 185705 * time.Second, 272105 * time.Second,
		}
		var got []time.Duration
		for i, r := range b.settled() {
			got = append(got, b.after(r.At))
			becomes := state.Pending
			if i == len(want)-1 {
				becomes = state.Dead
			}
			if r.State != becomes || r.Status != 500 || r.Failure != "status_5xx" || r.Due.IsZero() != (becomes == state.Dead) {
				t.Errorf("attempt %d: %+v", i+1, r)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("attempts at %v, want %v", got, want)
		}
		for i := range ids {
			if ids[i] != ids[0] || i > 0 && stamps[i] == stamps[i-1] {
				t.Errorf("attempt %d: id %s at %s; the first is %s at %s", i+1, ids[i], stamps[i], ids[0], stamps[0])
			}
		}
		b.stop()
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(internet)
		answers := []struct {
			status int
			after  string
		}{{429, "60"}, {503, time.Now().Add(2 * time.Hour).UTC().Format(http.TimeFormat)}, {500, "999999"}, {503, "1"}, {204, ""}}
		var calls atomic.Int32
		n.serve("full.example.com", func(w http.ResponseWriter, _ *http.Request) {
			a := answers[calls.Add(1)-1]
			w.Header().Set("Retry-After", a.after)
			w.WriteHeader(a.status)
		})
		b := runIn(t, n, newMemory(), nil)
		b.post("full.example.com")
		time.Sleep(48 * time.Hour)
		want := []time.Duration{0, time.Minute, 2 * time.Hour, 26 * time.Hour, 28 * time.Hour}
		var got []time.Duration
		for _, r := range b.settled() {
			got = append(got, b.after(r.At))
		}
		if !slices.Equal(got, want) {
			t.Errorf("attempts at %v, want %v", got, want)
		}
		b.stop()
	})
}

func TestGoneStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(internet)
		n.serve("gone.example.com", status(http.StatusGone))
		var log bytes.Buffer
		var seen []state.Attempt
		b := runIn(t, n, newMemory(), func(o *Options) {
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
			o.Observe = func(r state.Attempt) { seen = append(seen, r) }
		})
		b.post("gone.example.com")
		time.Sleep(100 * time.Hour)
		b.stop()
		got := b.settled()
		if len(got) != 1 || got[0].State != state.Dead || got[0].Failure != FailureGone || got[0].Status != 410 {
			t.Errorf("got %+v", got)
		}
		if !slices.Equal(seen, got) {
			t.Errorf("observed %+v, settled %+v", seen, got)
		}
		for _, part := range []string{"organization=7", "webhook=msg_00000000000000000000000000000001", "failure=gone"} {
			if !strings.Contains(log.String(), part) {
				t.Errorf("the log lacks %s: %s", part, log.String())
			}
		}
		for _, part := range []string{"example.com", "hook/", "success", testSecret.Text.Reveal()} {
			if strings.Contains(log.String(), part) {
				t.Errorf("the log has %s: %s", part, log.String())
			}
		}
	})
}

// TestTimeouts: what takes too long in any phase ends after 15 seconds.
func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(internet)
		n.serve("silent.example.com", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then does a server see the connection's end
			<-r.Context().Done()
		})
		deaf := n.listen("deaf.example.com") // accepts, reads nothing
		loris := n.listen("loris.example.com")
		var servers sync.WaitGroup
		servers.Go(func() {
			conn, err := deaf.Accept()
			if err == nil {
				time.Sleep(time.Minute)
				_ = conn.Close()
			}
		})
		servers.Go(func() {
			conn, err := loris.Accept()
			if err != nil {
				return
			}
			if _, err = http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\nX-Slow: ")
			}
			for err == nil {
				time.Sleep(time.Second)
				_, err = io.WriteString(conn, "z")
			}
		})
		b := runIn(t, n, newMemory(), func(o *Options) { o.Schedule = []time.Duration{0} })
		want := map[int64]time.Duration{
			b.post("nobody.example.com"): dialTimeout, // no connection comes about
			b.post("silent.example.com"): 15 * time.Second,
			b.post("deaf.example.com"):   15 * time.Second,
			b.post("loris.example.com"):  15 * time.Second,
		}
		time.Sleep(2 * time.Minute)
		b.stop()
		servers.Wait()
		got := b.settled()
		for _, r := range got {
			if r.Failure != FailureTimeout || r.Took != want[r.ID] || r.Status != 0 {
				t.Errorf("delivery %d: %+v, want a timeout after %v", r.ID, r, want[r.ID])
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d settled, want %d", len(got), len(want))
		}
	})
}

// TestEndlessBody: 2xx is delivered; what comes behind is read to a bound in
// bytes and time.
func TestEndlessBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(internet)
		var written atomic.Int64
		n.serve("flood.example.com", func(w http.ResponseWriter, _ *http.Request) {
			for {
				count, err := w.Write(make([]byte, 1024))
				if err != nil {
					return
				}
				written.Add(int64(count))
			}
		})
		n.serve("drip.example.com", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("."))
				_ = http.NewResponseController(w).Flush()
				time.Sleep(100 * time.Millisecond)
			}
		})
		b := runIn(t, n, newMemory(), nil)
		b.post("flood.example.com")
		b.post("drip.example.com")
		time.Sleep(time.Minute)
		b.stop()
		got := b.settled()
		for _, r := range got {
			if r.State != state.Delivered || r.Took > lingerTimeout {
				t.Errorf("%+v, want delivered within %v", r, lingerTimeout)
			}
		}
		if len(got) != 2 {
			t.Errorf("%d settled, want 2", len(got))
		}
		if w := written.Load(); w > maxBodyBytes+32<<10 {
			t.Errorf("%d bytes were taken, want about %d", w, maxBodyBytes)
		}
	})
}

// TestHugeHeader: an answer's header has a bound.
func TestHugeHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(internet)
		n.serve("header.example.com", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Huge", strings.Repeat("z", 2*maxHeaderBytes))
		})
		endless := n.listen("endless.example.com")
		var server sync.WaitGroup
		server.Go(func() {
			conn, err := endless.Accept()
			if err != nil {
				return
			}
			_, err = http.ReadRequest(bufio.NewReader(conn))
			for i := 0; err == nil; i++ {
				_, err = fmt.Fprintf(conn, "HTTP/1.1 103 Early Hints\r\nX: %d\r\n\r\n", i)
			}
		})
		b := runIn(t, n, newMemory(), func(o *Options) { o.Schedule = []time.Duration{0} })
		b.post("header.example.com")
		hints := b.post("endless.example.com")
		time.Sleep(time.Minute)
		b.stop()
		server.Wait()
		got := b.settled()
		for _, r := range got {
			if r.State != state.Dead || r.ID != hints && r.Failure != FailureTooLarge {
				t.Errorf("%+v, want too_large", r)
			}
		}
		if len(got) != 2 {
			t.Errorf("%d settled, want 2", len(got))
		}
	})
}

// TestDeadReceiverDelaysNobody sends 10,000 deliveries of ten organizations to
// 50 receivers. One of them is dead, and its deliveries are the oldest.
func TestDeadReceiverDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const receivers, each = 50, 200
		n, m := new(internet), newMemory()
		var all gauge
		one := make([]gauge, receivers)
		for i := 1; i < receivers; i++ { // number 0 is dead
			n.answer(fmt.Sprintf("r%d.example.com", i), 10*time.Millisecond, &all, &one[i])
		}
		for i := range receivers {
			name := fmt.Sprintf("r%d.example.com", i)
			for range each {
				m.addTo(int64(i%10), name+":80", "http://"+name+"/hook", []byte(`{}`))
			}
		}
		b := runIn(t, n, m, nil)
		time.Sleep(10 * time.Second) // the dead one has not even timed out
		delivered := 0
		for _, r := range b.settled() {
			if r.State == state.Delivered {
				delivered++
			}
			// 9,800 deliveries of 10 ms, 60 at a time
			if late := b.after(r.At); r.State == state.Delivered && late > 2*time.Second {
				t.Fatalf("delivery %d came after %v", r.ID, late)
			}
		}
		if want := (receivers - 1) * each; delivered != want {
			t.Errorf("%d delivered, want %d", delivered, want)
		}
		if all.most > 64 || all.most < 50 {
			t.Errorf("%d at once, want at most 64 and not much less", all.most)
		}
		for i := range one {
			if one[i].most > 4 {
				t.Errorf("receiver %d: %d at once, want at most 4", i, one[i].most)
			}
		}
		b.stop()
	})
}

// TestSlotsAreKept: however many receivers are dead or slow, one that is known
// to answer is served at once, and so is one that is new.
func TestSlotsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, m := new(internet), newMemory()
		n.serve("quick.example.com", status(http.StatusNoContent))
		for i := range 30 {
			n.serve(fmt.Sprintf("new%d.example.com", i), status(http.StatusNoContent))
		}
		b := runIn(t, n, m, nil)
		b.post("quick.example.com")
		time.Sleep(time.Second)
		for i := range 100 { // dead ones, their deliveries older than what follows
			for range 20 {
				b.post(fmt.Sprintf("dead%d.example.com", i))
			}
		}
		time.Sleep(6 * time.Minute) // all are known by now, and far from done
		type post struct {
			at    time.Time
			quick bool
		}
		posted := map[int64]post{}
		for i := range 30 {
			posted[b.post("quick.example.com")] = post{time.Now(), true}
			posted[b.post(fmt.Sprintf("new%d.example.com", i))] = post{time.Now(), false}
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		b.stop()
		arrived := 0
		for _, r := range b.settled() {
			p, found := posted[r.ID]
			if !found {
				continue
			}
			arrived++
			if late := r.At.Sub(p.at); p.quick && late > 0 || late > slowAfter {
				t.Errorf("delivery %d, to one that is known: %v, waited %v", r.ID, p.quick, late)
			}
		}
		if arrived != len(posted) {
			t.Errorf("%d of %d arrived", arrived, len(posted))
		}
	})
}

// TestFlood: however many dead receivers an organization names, its quick one
// is served, and so is everybody of others; and the outbox is not asked more
// often for it.
func TestFlood(t *testing.T) {
	for _, c := range []struct {
		name string
		dead int
		prep func(*bubble) // what else is flooding
	}{
		{"3,000 names", 3000, nil},
		{"10,000 names", 10_000, nil},
		{"3,000 names, and 200 that answered once", 3000, func(b *bubble) {
			for i := range 200 { // and hang from now on
				b.postFor(6, fmt.Sprintf("trap%d.example.com", i))
				b.postFor(6, fmt.Sprintf("trap%d.example.com", i))
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, m := new(internet), newMemory()
				for _, name := range []string{"ours.example.com", "theirs.example.com"} {
					n.answer(name, 10*time.Millisecond)
				}
				for i := range 20 {
					n.answer(fmt.Sprintf("new%d.example.com", i), 10*time.Millisecond)
				}
				b := runIn(t, n, m, nil)
				for i := range 200 {
					var calls atomic.Int32
					n.serve(fmt.Sprintf("trap%d.example.com", i), func(_ http.ResponseWriter, r *http.Request) {
						_, _ = io.Copy(io.Discard, r.Body)
						if calls.Add(1) > 1 {
							<-r.Context().Done()
						}
					})
					if c.prep != nil {
						b.postFor(6, fmt.Sprintf("trap%d.example.com", i))
					}
				}
				b.postFor(7, "ours.example.com")
				b.postFor(8, "theirs.example.com")
				time.Sleep(time.Minute)
				if c.prep != nil {
					c.prep(b)
				}
				for i := range c.dead { // all older than what follows
					b.postFor(7, fmt.Sprintf("dead%d.example.com", i))
				}
				time.Sleep(5 * time.Second)
				asked, began := b.calls(), time.Now()
				posted := map[int64]time.Time{}
				for i := range 20 {
					posted[b.postFor(7, "ours.example.com")] = time.Now()
					posted[b.postFor(8, "theirs.example.com")] = time.Now()
					posted[b.postFor(int64(10+i), fmt.Sprintf("new%d.example.com", i))] = time.Now()
					time.Sleep(10 * time.Second)
				}
				asked = b.calls() - asked
				took := time.Since(began)
				b.stop()
				var worst time.Duration
				arrived := 0
				for _, r := range b.settled() {
					if at, found := posted[r.ID]; found && r.State == state.Delivered {
						arrived++
						worst = max(worst, r.At.Sub(at))
					}
				}
				t.Logf("%d of %d arrived, the worst after %v; Due was called %d times in %v", arrived, len(posted), worst, asked, took)
				if arrived != len(posted) || worst > time.Second {
					t.Error("want all of them within a second")
				}
				if perSecond := float64(asked) / took.Seconds(); perSecond > 10 {
					t.Errorf("Due was called %.1f times a second", perSecond)
				}
			})
		})
	}
}

func TestPerReceiverBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name string
			body int
			most int
			last time.Duration
		}{
			{"small", 10, 4, 3 * time.Second}, // one, then four, then three
			{"large", largeBytes, 1, 8 * time.Second},
		} {
			n, m := new(internet), newMemory()
			var g gauge
			n.serve("one.example.com", func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				g.enter()
				time.Sleep(time.Second)
				g.leave()
			})
			for range 8 {
				m.add("one.example.com:80", "http://one.example.com/", make([]byte, c.body))
			}
			b := runIn(t, n, m, nil)
			time.Sleep(time.Minute)
			b.stop()
			got := b.settled()
			if last := b.after(got[len(got)-1].At); len(got) != 8 || g.most != c.most || last != c.last {
				t.Errorf("%s: %d arrived, %d at once, the last after %v; want 8, %d, %v", c.name, len(got), g.most, last, c.most, c.last)
			}
		}
	})
}

// TestStop: what is under way when Run is told to end gets its grace.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name    string
			takes   time.Duration
			settled int
			ends    time.Duration
		}{
			{"in time", 3 * time.Second, 1, 3 * time.Second},
			{"cut off", 14 * time.Second, 0, 6 * time.Second},
		} {
			n, m := new(internet), newMemory()
			var mu sync.Mutex
			var ids []string
			n.serve("r.example.com", func(_ http.ResponseWriter, r *http.Request) {
				mu.Lock()
				ids = append(ids, r.Header.Get(HeaderID))
				mu.Unlock()
				time.Sleep(c.takes)
			})
			set := func(o *Options) { o.Grace = 5 * time.Second }
			b := runIn(t, n, m, set)
			b.post("r.example.com")
			time.Sleep(time.Second)
			late := b.add("r.example.com:80", "http://r.example.com/late", nil)
			b.stop()
			if ends := time.Since(b.began); ends != c.ends || len(b.settled()) != c.settled {
				t.Errorf("%s: ended after %v with %d settled, want %v and %d", c.name, ends, len(b.settled()), c.ends, c.settled)
			}
			mu.Lock()
			if len(ids) != 1 {
				t.Errorf("%s: %d attempts, the late delivery %d among them?", c.name, len(ids), late)
			}
			mu.Unlock()

			// The next run sends both, what was cut off under its old id.
			again := runIn(t, n, m, set)
			time.Sleep(time.Minute)
			again.stop()
			mu.Lock()
			if want := 3 - c.settled; len(ids) != want || len(m.settled()) != 2 || slices.Index(ids[1:], ids[0]) >= 0 != (c.settled == 0) {
				t.Errorf("%s: attempts %v, %d settled; want %d and 2", c.name, ids, len(m.settled()), want)
			}
			mu.Unlock()
		}
	})
}

// TestOutboxErrors: neither is a reason to ask again at once, or to post twice.
func TestOutboxErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, m := new(internet), newMemory()
		var calls atomic.Int32
		n.serve("r.example.com", func(http.ResponseWriter, *http.Request) { calls.Add(1) })
		ill := errors.New("the disk is full")
		m.dueErr = func() error { return ill }
		var log bytes.Buffer
		b := runIn(t, n, m, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		for range 3600 {
			b.Wake()
			time.Sleep(time.Second)
		}
		synctest.Wait()
		m.mu.Lock()
		if lines := strings.Count(log.String(), "the disk is full"); m.asked > 130 || lines != m.asked {
			t.Errorf("asked %d times in an hour, logged %d", m.asked, lines)
		}
		failures := 3
		m.dueErr = nil
		m.settleErr = func() error {
			if failures--; failures >= 0 {
				return ill
			}
			return nil
		}
		m.mu.Unlock()
		b.post("r.example.com")
		time.Sleep(time.Minute)
		if got := b.settled(); len(got) != 1 || got[0].State != state.Delivered || calls.Load() != 1 {
			t.Errorf("settled %+v after %d calls, want one delivered by one", got, calls.Load())
		}
		b.stop()
	})
}

// TestSettleWithoutEnd: an outbox that never settles does not keep Run from
// ending.
func TestSettleWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, m := new(internet), newMemory()
		n.serve("r.example.com", status(http.StatusOK))
		m.settleErr = func() error { return errors.New("the disk is full") }
		b := runIn(t, n, m, nil)
		b.post("r.example.com")
		time.Sleep(time.Minute)
		stopped := time.Now()
		b.stop()
		if took := time.Since(stopped); took != 15*time.Second {
			t.Errorf("Run ended after %v, want the grace of 15s", took)
		}
	})
}

// TestPoll: unannounced deliveries are found.
func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, m := new(internet), newMemory()
		n.serve("r.example.com", status(http.StatusOK))
		b := runIn(t, n, m, nil)
		time.Sleep(time.Hour + time.Second)
		m.add("r.example.com:80", "http://r.example.com/", nil)
		time.Sleep(2 * time.Second) // the next look may be at the end of the first
		if got := b.settled(); len(got) != 1 {
			t.Errorf("%d settled, want 1", len(got))
		}
		if asked := m.calls(); asked > 3600+5 {
			t.Errorf("asked %d times in an idle hour", asked)
		}
		b.stop()
	})
}

func TestWithoutSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := new(internet)
		n.serve("r.example.com", func(http.ResponseWriter, *http.Request) { t.Error("sent without a signature") })
		b := runIn(t, n, newMemory(), func(o *Options) { o.Secrets = func(int64) []Secret { return nil } })
		b.post("r.example.com")
		time.Sleep(time.Second)
		if got := b.settled(); len(got) != 1 || got[0].State != state.Pending || got[0].Failure != FailureNoSecret {
			t.Errorf("got %+v", got)
		}
		b.stop()
	})
}

// TestBrokenConnections: none brings the sender down, and nothing that a
// receiver says is in its log, whenever it says it.
func TestBrokenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var printed bytes.Buffer
		log.SetOutput(io.Discard) // as a program with a Sender does
		defer log.SetOutput(os.Stderr)
		n := new(internet)
		var servers sync.WaitGroup
		listen := func(name, before, answer string) {
			l := n.listen(name)
			servers.Go(func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = io.WriteString(conn, before)
					if request, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
						_, _ = io.Copy(io.Discard, request.Body)
						_, _ = io.WriteString(conn, answer)
					}
					_ = conn.Close()
				}
			})
		}
		const said = "private"
		listen("rude.example.com", "", "")
		listen("eager.example.com", "220 "+said+" ESMTP\r\n", "")
		listen("early.example.com", "HTTP/1.1 200 "+said+"\r\nContent-Length: 0\r\n\r\n", "")
		listen("garbage.example.com", "", said+"\r\n\r\n")
		listen("cut.example.com", "", "HTTP/1.1 200 OK\r\nX: "+said)
		listen("upgrade.example.com", "", "HTTP/1.1 101 "+said+"\r\nConnection: upgrade\r\nUpgrade: "+said+"\r\n\r\n")
		listen("number.example.com", "", "HTTP/1.1 999 "+said+"\r\nContent-Length: 0\r\n\r\n")
		listen("more.example.com", "", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"+said)
		listen("less.example.com", "", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"+said)
		b := runIn(t, n, newMemory(), func(o *Options) {
			o.Schedule = []time.Duration{0}
			o.Log = slog.New(slog.NewTextHandler(&printed, nil))
		})
		want := map[int64]string{
			b.post("rude.example.com"):    FailureConnection,
			b.post("eager.example.com"):   "?", // how it fails depends on who is first
			b.post("early.example.com"):   "?", // and so does whether it does
			b.post("garbage.example.com"): FailureProtocol,
			b.post("cut.example.com"):     FailureConnection,
			b.post("upgrade.example.com"): FailureProtocol,
			b.post("number.example.com"):  "status_9xx",
			b.post("more.example.com"):    "",
			b.post("less.example.com"):    "",
		}
		time.Sleep(time.Minute)
		b.stop()
		n.shut()
		servers.Wait()
		got := b.settled()
		for _, r := range got {
			if w := want[r.ID]; w != r.Failure && w != "?" {
				t.Errorf("delivery %d: %q, want %q", r.ID, r.Failure, w)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d settled, want %d", len(got), len(want))
		}
		if strings.Contains(printed.String(), said) {
			t.Errorf("printed: %s", printed.String())
		}
	})
}

var _ net.Listener = (*listener)(nil)
