//go:build linux

package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
)

// TestServeDrainDelay stops a service under load. Callers who follow /readyz lose
// no call, on connections they keep and on new ones, and calls that come within
// the delay all the same are answered.
func TestServeDrainDelay(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	key := p.customer("Example Rockets", "1000000")
	s := p.serve(append(unlimited, "--drain-delay", "5s")...)
	sending, leave := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for number := range 8 {
		callers.Go(func() {
			c := newCaller(t, s.public, key)
			var headers []string
			if number%2 == 0 {
				headers = []string{"Connection", "close"}
			}
			for sending.Err() == nil {
				if a, err := c.try(t.Context(), http.MethodPost, "/lead/enrichment", askAda, headers...); err != nil || a.status != http.StatusOK {
					t.Errorf("%d %s, %v", a.status, a.raw, err)
				}
			}
		})
	}
	probe := newCaller(t, s.public, key)
	ready := func() bool { return probe.do("GET", "/readyz", "").status == http.StatusOK }
	if !ready() {
		t.Error("not ready under load")
	}
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	until(t, "the service is not ready", func() bool { return !ready() })
	for range 20 { // whoever has not noticed is answered
		if a := probe.post("/lead/enrichment", askAda); a.status != http.StatusOK {
			t.Errorf("within the delay: %d %s", a.status, a.raw)
		}
	}
	if a, err := probe.http.Get(s.public + "/healthz"); err != nil || !a.Close {
		t.Errorf("an answer within the delay keeps its connection: %v", err)
	} else {
		a.Body.Close()
	}
	leave()
	callers.Wait()
	if code := s.code(); code != cli.ExitDone {
		t.Errorf("exit code %d, want %d\n%s", code, cli.ExitDone, s.said)
	}
	if took := time.Since(stopped); took < 5*time.Second {
		t.Errorf("it ended after %s", took)
	}
}

// TestServeReadyFollowsTheDisk: while nothing can be written the service is alive
// and not ready, calls that cost are refused, and it is ready again by itself.
func TestServeReadyFollowsTheDisk(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.excused = "disk I/O error"
	key := p.customer("Example Rockets", "1000")
	s := p.serve(unlimited...)
	c := newCaller(t, s.public, key)
	status := func(path string) int { return c.do("GET", path, "").status }
	if got := status("/readyz"); got != http.StatusOK {
		t.Fatalf("at first: %d", got)
	}
	limit := func(bytes uint64) {
		if err := unix.Prlimit(s.process.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil); err != nil {
			t.Fatal(err)
		}
	}
	limit(0)
	until(t, "the service is not ready", func() bool { return status("/readyz") == http.StatusServiceUnavailable })
	if a := c.do("GET", "/readyz", ""); a.code() != "unavailable" || !strings.Contains(string(a.raw), "The state cannot be read and written.") {
		t.Errorf("%d %s", a.status, a.raw)
	}
	if got := status("/healthz"); got != http.StatusOK {
		t.Errorf("/healthz: %d", got)
	}
	if a := c.post("/lead/enrichment", askAda); a.status != http.StatusServiceUnavailable {
		t.Errorf("a call that costs: %d %s", a.status, a.raw)
	}
	limit(unix.RLIM_INFINITY)
	until(t, "the service is ready again", func() bool { return status("/readyz") == http.StatusOK })
	if a := c.post("/lead/enrichment", askAda); a.status != http.StatusOK {
		t.Errorf("a call that costs: %d %s", a.status, a.raw)
	}
}

// TestServeMetricsListen: the address of metrics answers what monitoring asks
// for, and nothing else.
func TestServeMetricsListen(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := p.serve("--metrics-listen", "127.0.0.1:0", "--internal-listen", "none")
	url, _ := s.said.line("serving")["metrics"].(string)
	c := newOperator(t, url)
	for path, want := range map[string]int{
		"/metrics": 200, "/healthz": 200, "/readyz": 200, "/internal/organizations": 404, "/lead/enrichment": 404, "/docs": 404, "/": 404,
	} {
		if a := c.do("GET", path, ""); a.status != want {
			t.Errorf("%s: %d, want %d", path, a.status, want)
		}
	}
	if text := string(c.do("GET", "/metrics", "").raw); !strings.Contains(text, "\nleadetl_build_info{") {
		t.Errorf("metrics: %s", text)
	}
	if s.stop(syscall.SIGTERM) != cli.ExitDone {
		t.Errorf("%s", s.said)
	}
}
