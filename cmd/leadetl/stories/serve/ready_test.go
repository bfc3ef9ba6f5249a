//go:build linux

package serve

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
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// TestServeDrainDelay stops a service under load. Callers who follow /readyz lose
// no call, on connections they keep and on new ones, and calls that come within
// the delay all the same are answered.
func TestServeDrainDelay(t *testing.T) {
	t.Parallel()
	p := clitest.NewPlace(t)
	key := p.Customer("Example Rockets", "1000000")
	s := p.Serve(append(clitest.Unlimited, "--drain-delay", "5s")...)
	sending, leave := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for number := range 8 {
		callers.Go(func() {
			c := clitest.NewCaller(t, s.Public, key)
			var headers []string
			if number%2 == 0 {
				headers = []string{"Connection", "close"}
			}
			for sending.Err() == nil {
				if a, err := c.Try(t.Context(), http.MethodPost, "/lead/enrichment", clitest.AskAda, headers...); err != nil || a.Status != http.StatusOK {
					t.Errorf("%d %s, %v", a.Status, a.Raw, err)
				}
			}
		})
	}
	probe := clitest.NewCaller(t, s.Public, key)
	ready := func() bool { return probe.Do("GET", "/readyz", "").Status == http.StatusOK }
	if !ready() {
		t.Error("not ready under load")
	}
	if err := s.Process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	clitest.Until(t, "the service is not ready", func() bool { return !ready() })
	for range 20 { // whoever has not noticed is answered
		if a := probe.Post("/lead/enrichment", clitest.AskAda); a.Status != http.StatusOK {
			t.Errorf("within the delay: %d %s", a.Status, a.Raw)
		}
	}
	if a, err := probe.HTTP.Get(s.Public + "/healthz"); err != nil || !a.Close {
		t.Errorf("an answer within the delay keeps its connection: %v", err)
	} else {
		a.Body.Close()
	}
	leave()
	callers.Wait()
	if code := s.Code(); code != cli.ExitDone {
		t.Errorf("exit code %d, want %d\n%s", code, cli.ExitDone, s.Said)
	}
	if took := time.Since(stopped); took < 5*time.Second {
		t.Errorf("it ended after %s", took)
	}
}

// TestServeReadyFollowsTheDisk: while nothing can be written the service is alive
// and not ready, calls that cost are refused, and it is ready again by itself.
func TestServeReadyFollowsTheDisk(t *testing.T) {
	t.Parallel()
	p := clitest.NewPlace(t)
	p.Excused = "disk I/O error"
	key := p.Customer("Example Rockets", "1000")
	s := p.Serve(clitest.Unlimited...)
	c := clitest.NewCaller(t, s.Public, key)
	status := func(path string) int { return c.Do("GET", path, "").Status }
	if got := status("/readyz"); got != http.StatusOK {
		t.Fatalf("at first: %d", got)
	}
	limit := func(bytes uint64) {
		if err := unix.Prlimit(s.Process.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil); err != nil {
			t.Fatal(err)
		}
	}
	limit(0)
	clitest.Until(t, "the service is not ready", func() bool { return status("/readyz") == http.StatusServiceUnavailable })
	if a := c.Do("GET", "/readyz", ""); a.Code() != "unavailable" || !strings.Contains(string(a.Raw), "The state cannot be read and written.") {
		t.Errorf("%d %s", a.Status, a.Raw)
	}
	if got := status("/healthz"); got != http.StatusOK {
		t.Errorf("/healthz: %d", got)
	}
	if a := c.Post("/lead/enrichment", clitest.AskAda); a.Status != http.StatusServiceUnavailable {
		t.Errorf("a call that costs: %d %s", a.Status, a.Raw)
	}
	limit(unix.RLIM_INFINITY)
	clitest.Until(t, "the service is ready again", func() bool { return status("/readyz") == http.StatusOK })
	if a := c.Post("/lead/enrichment", clitest.AskAda); a.Status != http.StatusOK {
		t.Errorf("a call that costs: %d %s", a.Status, a.Raw)
	}
}

// TestServeMetricsListen: the address of metrics answers what monitoring asks
// for, and nothing else.
func TestServeMetricsListen(t *testing.T) {
	t.Parallel()
	p := clitest.NewPlace(t)
	s := p.Serve("--metrics-listen", "127.0.0.1:0", "--internal-listen", "none")
	url, _ := s.Said.Line("serving")["metrics"].(string)
	c := clitest.NewOperator(t, url)
	for path, want := range map[string]int{
		"/metrics": 200, "/healthz": 200, "/readyz": 200, "/internal/organizations": 404, "/lead/enrichment": 404, "/docs": 404, "/": 404,
	} {
		if a := c.Do("GET", path, ""); a.Status != want {
			t.Errorf("%s: %d, want %d", path, a.Status, want)
		}
	}
	if text := string(c.Do("GET", "/metrics", "").Raw); !strings.Contains(text, "\nleadetl_build_info{") {
		t.Errorf("metrics: %s", text)
	}
	if s.Stop(syscall.SIGTERM) != cli.ExitDone {
		t.Errorf("%s", s.Said)
	}
}
