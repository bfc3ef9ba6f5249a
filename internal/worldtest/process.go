package worldtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// part is the seeds that a process tries, one after the other.
type part struct {
	first, step uint64
	seeds       int
	// at is a file that has the present seed and the lives before, for a process that panics.
	at string
}

// partVariable is the environment variable with the part of a process.
const partVariable = "LEADETL_WORLD_PART"

// ownPart is the part of this process; none if it is no part of another one.
func ownPart(t *testing.T) (p part, found bool) {
	text := os.Getenv(partVariable)
	if text == "" {
		return part{}, false
	}
	_, err := fmt.Sscan(text, &p.first, &p.step, &p.seeds, &p.at)
	must(t, err, keepTurns())
	return p, true
}

// run runs a test on the part in a process of its own, and returns what it says.
func (p part) run(t *testing.T, test string) string {
	out, err := p.try(t, 30*time.Minute+time.Duration(p.seeds)*time.Second, os.Args[0], test)
	if err != nil {
		t.Error(err)
	}
	return out
}

// try is run in a test binary, whose failure is returned: with one processor and without
// asynchronous preemption, goroutines take turns in an order that the seed decides.
func (p part) try(t *testing.T, limit time.Duration, binary, test string) (out string, err error) {
	p.at = filepath.Join(t.TempDir(), fmt.Sprint("seed", p.first))
	folders, err := os.MkdirTemp(Memory(), "leadetl-worlds-")
	must(t, err)
	defer os.RemoveAll(folders) // also those of a world that broke
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	c := limited(ctx, binary, "-test.run=^"+test+"$", "-test.v", "-test.timeout=0")
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", "TMPDIR="+folders, fmt.Sprintf("%s=%d %d %d %s", partVariable, p.first, p.step, p.seeds, p.at))
	text, err := c.CombinedOutput()
	if err != nil {
		seed, _ := os.ReadFile(p.at)
		err = fmt.Errorf("%w at seed %s", err, seed)
	}
	return string(text), err
}

// limited is a command that may have 6 GiB: a bug may allocate without end.
func limited(ctx context.Context, binary string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "sh", append([]string{"-c", `ulimit -v 6291456 2> /dev/null; exec "$0" "$@"`, binary}, args...)...)
}

// each calls try for each seed of the part, until the test has failed for some. The worlds' lives
// are counted.
func (p part) each(t *testing.T, mostFail int, try func(seed uint64) (lives int, failed bool)) (lives int) {
	for i := range uint64(p.seeds) {
		seed := p.first + i*p.step
		if p.at != "" {
			must(t, os.WriteFile(p.at, fmt.Appendf(nil, "%d, after %d lives", seed, lives), 0o600))
		}
		more, failed := try(seed)
		lives += more
		if failed {
			mostFail--
		}
		if mostFail == 0 {
			break
		}
	}
	return lives
}

// onAllCores tries seeds in a process for each core.
func onAllCores(t *testing.T, seeds int) {
	cores := runtime.NumCPU()
	var processes sync.WaitGroup
	for core := range cores {
		processes.Go(func() {
			t.Log(part{first: uint64(core + 1), step: uint64(cores), seeds: seeds / cores}.run(t, "TestWorld"))
		})
	}
	processes.Wait()
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
