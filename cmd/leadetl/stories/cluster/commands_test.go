//go:build unix

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// saysSoon waits until a process has said something.
func saysSoon(t *testing.T, p *clitest.Process, what string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !strings.Contains(p.Said.String(), what); time.Sleep(50 * time.Millisecond) {
		if p.Ended() || time.Now().After(end) {
			t.Fatalf("it does not say %q:\n%s", what, clitest.Tail(p.Said.String()))
		}
	}
}

// requireNoSettings: each client has removed the settings of its run, however that
// ended. Those of the detached run are for the next run to remove, ten minutes later.
func (c *cluster) requireNoSettings() {
	c.Helper()
	left, err := filepath.Glob(c.Object("state/cluster/*/settings-*"))
	if err != nil || len(left) != 1 { // of the detached run
		c.Errorf("%q are left, %v; want those of the detached run", left, err)
	}
}

// TestClusterCommands: the same command attaches to a run, another is refused,
// Ctrl-C cancels, a budget stops, and missing workers are named.
func TestClusterCommands(t *testing.T) {
	const rows = 600
	o := badservice.DefaultOptions()
	o.Matched, o.Latency = 1, 10*time.Millisecond
	service, url := clitest.StartService(t, o)
	c := newIdleCluster(t, "--resolver", url)
	c.Put("in/list.csv", clitest.AddressList(rows))
	on := func(flags ...string) *clitest.Process {
		args := c.on("s3://"+clitest.S3Bucket+"/in/", "s3://"+clitest.S3Bucket+"/out/", append(flags, "--set", "rows_per_part=100", "--resolver", url)...)
		args[1] = "ip_to_company"
		return clitest.StartProgram(t, args...)
	}
	ends := func(what string, p *clitest.Process, want int, says string) {
		t.Helper()
		if code := p.Code(); code != want || !strings.Contains(p.Said.String()+p.Printed.String(), says) {
			t.Fatalf("%s: exit code %d, want %d and %q:\n%s%s\n%s", what, code, want, says, clitest.Tail(p.Said.String()), p.Printed.String(), c.said())
		}
	}

	first := on("--rate", "20/s")
	saysSoon(t, first, "no worker of this version listens on leadetl-2; start one with: leadetl worker --on ADDRESS")
	for i := range c.workers {
		c.restart(i)
	}
	for len(service.BilledKeys()) == 0 {
		if first.Ended() {
			ends("the first", first, cli.ExitDone, "")
		}
		time.Sleep(20 * time.Millisecond)
	}
	ends("another job", on("--rate", "30/s"), cli.ExitUsage, "another run writes to this output")
	second := on("--rate", "20/s")
	saysSoon(t, second, "the run is going on already")
	_ = first.Process.Signal(syscall.SIGINT)
	ends("interrupted", first, cli.ExitInterrupted, "run the same command to resume")
	ends("attached to it", second, cli.ExitInterrupted, "")
	if billed := len(service.BilledKeys()); billed >= rows {
		t.Errorf("%d keys are billed: the run was not interrupted", billed)
	}

	ends("detached", on("--max-credits", "500", "--detach"), cli.ExitDone, "submitted leadetl/")
	budget := on("--max-credits", "500")
	ends("out of budget", budget, cli.ExitBudget, "")
	if billed := len(service.BilledKeys()); billed >= rows {
		t.Errorf("%d keys are billed, in spite of the budget", billed)
	}
	collector := clitest.StartCollector(t)
	last := on("--set", "metrics_file="+c.Path("run.prom"))
	ends("the last", last, cli.ExitDone, "matched")
	if metrics, spans := collector.Taken(); metrics.Last("leadetl_run_rows_total", "matched") != rows || metrics.Last("leadetl_run_credits_total", "") < 1 || len(spans) != 1 || spans[0].Attributes[0].Value.GetIntValue() != cli.ExitDone {
		t.Errorf("sent %v, %v", metrics, spans)
	}
	metrics, err := os.ReadFile(c.Path("run.prom"))
	if err != nil || !strings.Contains(string(metrics), `leadetl_run_rows_total{file="run.prom",outcome="matched"} 600`) {
		t.Errorf("metrics %s, %v", metrics, err)
	}
	for key, times := range service.BilledKeys() {
		if times != 1 {
			t.Errorf("a key is billed %d times: %v", times, clitest.CallsOf(service, key))
		}
	}
	if billed := len(service.BilledKeys()); billed != rows {
		t.Errorf("%d of %d keys are billed", billed, rows)
	}
	ends("again", on(), cli.ExitDone, "nothing to do")
	c.requireNoSettings()
	for i, w := range c.workers {
		_ = w.Process.Signal(syscall.SIGTERM)
		ends("a worker", w, cli.ExitDone, "hands over")
		c.workers[i] = w
	}
}
