//go:build unix

package cluster

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/temporaltest"
)

// cluster is three workers, a Temporal server and S3.
type cluster struct {
	*clitest.S3Job
	server  *temporaltest.Server
	workers []*clitest.Process
	flags   []string // of every worker
}

const clusterWorkers = 3

func newCluster(t *testing.T, flags ...string) *cluster {
	t.Helper()
	c := newIdleCluster(t, flags...)
	for i := range c.workers {
		c.restart(i)
	}
	return c
}

// newIdleCluster is a cluster whose workers are not started yet.
func newIdleCluster(t *testing.T, flags ...string) *cluster {
	t.Helper()
	server := temporaltest.Start(t) // skips before anything else starts
	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(t.TempDir(), "none.toml"))
	return &cluster{S3Job: clitest.NewS3Job(t), server: server, workers: make([]*clitest.Process, clusterWorkers), flags: flags}
}

// restart starts a worker, in the place of one that is gone.
func (c *cluster) restart(i int) {
	c.Helper()
	args := append([]string{"worker", "--on", c.server.URL(), "--workers", "2", "--s3-endpoint", c.Proxy.URL, "--s3-path-style"}, c.flags...)
	c.workers[i] = clitest.StartProgram(c, args...)
}

// on returns the arguments of a run on the workers.
func (c *cluster) on(in, out string, flags ...string) []string {
	args := c.Args(in, out, append([]string{"--on", c.server.URL(), "--set", "lost_after=5s"}, flags...)...)
	for i, arg := range args {
		if arg == "--state" {
			args[i+1] = "s3://" + clitest.S3Bucket + "/state/"
		}
	}
	return args
}

// ends runs a command to its end. A client that begins while the server is away says
// so, and its user runs the same command again.
func (c *cluster) ends(args ...string) (*clitest.Process, int) {
	c.Helper()
	for {
		p := clitest.StartProgram(c, args...)
		if code := p.Code(); code != cli.ExitTryAgain || !strings.Contains(p.Said.String(), "the Temporal server is out of reach") {
			return p, code
		}
	}
}

// said is what the workers have said, for a test that fails.
func (c *cluster) said() string {
	var all strings.Builder
	for i, w := range c.workers {
		fmt.Fprintf(&all, "worker %d: %s\n", i, clitest.Tail(w.Said.String()))
	}
	return all.String()
}

// torment does something to workers and the server at random until stop is
// closed, and returns how many processes it killed. It leaves all alive.
func (c *cluster) torment(random *rand.Rand, pause time.Duration, stop <-chan struct{}) (kills int) {
	for {
		select {
		case <-stop:
			return kills
		case <-time.After(time.Duration(random.Int64N(int64(pause)))):
		}
		i := random.IntN(clusterWorkers)
		w := c.workers[i]
		if w.Ended() { // the server was away when it started
			c.restart(i)
			continue
		}
		if !strings.Contains(w.Said.String(), "the worker is ready") {
			continue // it may not handle signals yet
		}
		switch random.IntN(8) {
		case 0, 1, 2, 3:
			w.Kill()
			c.restart(i)
			kills++
		case 4: // asleep for longer than lost_after
			_ = w.Process.Signal(syscall.SIGSTOP)
			time.Sleep(7 * time.Second)
			_ = w.Process.Signal(syscall.SIGCONT)
		case 5, 6:
			_ = w.Process.Signal(syscall.SIGTERM)
			if code := w.Code(); code != cli.ExitDone {
				c.Errorf("a worker ended with %d:\n%s", code, clitest.Tail(w.Said.String()))
			}
			c.restart(i)
		case 7:
			c.server.Kill()
			c.server.Up(c)
			kills++
		}
	}
}

// TestClusterFree has three workers make a dataset, while they and the server
// are killed, stopped and asked to end. It is that of one process, byte for byte.
//
// LEADETL_KILLS is how many kills have to hit (default 4).
func TestClusterFree(t *testing.T) {
	c := newCluster(t)
	for i, rows := range []int{40_000, 50_000, 1, 30_000} {
		c.Put(fmt.Sprintf("in/%d.csv", i), clitest.EmailList(rows))
	}
	in, flags := "s3://"+clitest.S3Bucket+"/in/", []string{"--set", "rows_per_part=2000", "--quiet"}
	c.Run(cli.ExitDone, in, "s3://"+clitest.S3Bucket+"/alone/", flags...)
	want := clitest.Files(t, c.Object("alone"))
	kills, random := 0, rand.New(rand.NewPCG(clitest.S3KillSeed, 1))
	for round, wanted := 0, clitest.KillsWanted(t, 4); round == 0 || kills < wanted; round++ {
		out := fmt.Sprintf("round-%d", round)
		stop, done := make(chan struct{}), make(chan int)
		if round > 0 { // the first is left alone
			go func() { done <- c.torment(random, time.Second, stop) }()
		}
		began := time.Now()
		p, code := c.ends(c.on(in, "s3://"+clitest.S3Bucket+"/"+out+"/", flags...)...)
		if round > 0 {
			close(stop)
			kills += <-done
		}
		if code != cli.ExitDone {
			t.Fatalf("%s: exit code %d:\n%s\n%s", out, code, clitest.Tail(p.Said.String()), c.said())
		}
		t.Logf("%s: %v, %d kills so far", out, time.Since(began).Round(time.Millisecond), kills)
		clitest.RequireFiles(t, out, c.published(out), want)
		if err := os.RemoveAll(c.Object(out)); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := filepath.Glob(c.Object("state/runs/*/*")); len(left) > 0 {
		t.Errorf("left in the state: %q", left)
	}
}

// published waits until the workers have given up the lock of a dataset, and
// returns its files.
func (c *cluster) published(out string) map[string]string {
	c.Helper()
	got := clitest.Files(c, c.Object(out))
	delete(got, "_lock") // workers hold it for a while
	return got
}
