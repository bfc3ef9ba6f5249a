//go:build unix

package cluster

import (
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/internal/testkit/temporaltest"
)

// way is the way of one worker to the Temporal server. Once it is lost, it swallows all
// that is sent.
type way struct {
	listener net.Listener
	lost     atomic.Bool
}

func newWay(t *testing.T, to string) *way {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{listener: l}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			worker, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				worker.Close()
				continue
			}
			go w.pass(worker, server)
			go w.pass(server, worker)
		}
	}()
	return w
}

func (w *way) pass(from, to net.Conn) {
	defer to.Close()
	block := make([]byte, 1<<15)
	for {
		n, err := from.Read(block)
		if err != nil {
			return
		}
		if w.lost.Load() {
			continue
		}
		if _, err := to.Write(block[:n]); err != nil {
			return
		}
	}
}

func (w *way) url() string {
	return "temporal://" + w.listener.Addr().String() + "/" + temporaltest.Namespace
}

// TestClusterTakeover kills, cuts off, puts to sleep and stops the worker that calls.
// Another one calls soon, although the lease has not expired. A worker that is cut off
// from the Temporal server alone reaches the service and S3 all the time; it stops before
// another one begins. One that slept wakes up beside its successor, and is locked out. Each
// key is billed once, and at most --concurrency calls are unknown. The server may hand the
// run once more to a worker that it cannot reach.
func TestClusterTakeover(t *testing.T) {
	const concurrency, rows = 8, 900
	for _, c := range []struct {
		name      string
		does      func(*clitest.Process, *way)
		lostAfter time.Duration
		within    time.Duration // until another worker calls
		goesOn    time.Duration // calling, at most
	}{
		{"killed", func(p *clitest.Process, _ *way) { p.Kill() }, 30 * time.Second, 35 * time.Second, time.Second},
		{"cut off", func(_ *clitest.Process, w *way) { w.lost.Store(true) }, 20 * time.Second, 55 * time.Second, 12 * time.Second},
		{"asleep", func(p *clitest.Process, _ *way) {
			_ = p.Process.Signal(syscall.SIGSTOP)
			time.AfterFunc(12*time.Second, func() { _ = p.Process.Signal(syscall.SIGCONT) })
		}, 5 * time.Second, 30 * time.Second, time.Minute},
		{"asked to end", func(p *clitest.Process, _ *way) { _ = p.Process.Signal(syscall.SIGTERM) }, 30 * time.Second, 10 * time.Second, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := badservice.DefaultOptions()
			o.Matched, o.Latency = 1, 50*time.Millisecond
			service, url := clitest.StartService(t, o)
			x := newIdleCluster(t, "--resolver", url)
			x.Put("in/list.csv", clitest.AddressList(rows))
			to := newWay(t, x.server.Address)
			flags := append([]string{"--s3-endpoint", x.Proxy.URL, "--s3-path-style"}, x.flags...)
			first := clitest.StartProgram(t, append([]string{"worker", "--on", to.url()}, flags...)...)
			saysSoon(t, first, "the worker is ready")
			args := x.on("s3://"+clitest.S3Bucket+"/in/", "s3://"+clitest.S3Bucket+"/out/", "--set", "rows_per_part=500", "--quiet", "--resolver", url, "--rate", "60/s",
				"--concurrency", fmt.Sprint(concurrency), "--fail-on", "never", "--max-calls", fmt.Sprint(rows), "--set", "lost_after="+c.lostAfter.String())
			args[1] = "ip_to_company"
			run := clitest.StartProgram(t, args...)
			clitest.Until(t, "calls are under way", func() bool { return service.Seen() > 100 || run.Ended() })
			second := clitest.StartProgram(t, append([]string{"worker", "--on", x.server.URL()}, flags...)...)
			saysSoon(t, second, "the worker is ready")

			c.does(first, to)
			at, last := time.Now(), time.Now()
			var before, again time.Duration // when the last call left, and the next one; 0 if there was no pause
			for seen := service.Seen(); again == 0 && !run.Ended() && time.Since(at) < c.within+5*time.Second; time.Sleep(20 * time.Millisecond) {
				now := service.Seen()
				if now > seen && time.Since(last) > time.Second {
					before, again = last.Sub(at), time.Since(at)
				}
				if now > seen {
					seen, last = now, time.Now()
				}
			}
			t.Logf("the last call left %v after it, the next %v after it", before.Round(time.Millisecond), again.Round(time.Millisecond))
			if again > c.within || again == 0 && time.Since(last) > c.within || before > c.goesOn {
				t.Errorf("calls leave until %v after it, and from %v on; want %v and %v at most", before, again, c.goesOn, c.within)
			}
			if code := run.Code(); code != cli.ExitDone {
				t.Fatalf("exit code %d:\n%s\n%s\n%s", code, clitest.Tail(run.Said.String()), clitest.Tail(first.Said.String()), clitest.Tail(second.Said.String()))
			}
			unknown := int(x.totals("out").Reasons["failed"]["unknown_call"])
			if unknown > concurrency {
				t.Errorf("%d calls are unknown", unknown)
			}
			for key, times := range service.BilledKeys() {
				if times != 1 {
					t.Errorf("a key is billed %d times: %v", times, clitest.CallsOf(service, key))
				}
			}
			if billed := len(service.BilledKeys()); billed > rows || billed < rows-unknown {
				t.Errorf("%d of %d keys are billed, %d unknown", billed, rows, unknown)
			}
			t.Logf("%d unknown", unknown)
		})
	}
}
