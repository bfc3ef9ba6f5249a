package worldtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// part is the seeds that a process tries, one after the other.
type part struct {
	first, step uint64
	seeds       int
	until       int64 // the millisecond of its end, which comes between two seeds; 0 for none
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
	_, err := fmt.Sscan(text, &p.first, &p.step, &p.seeds, &p.until, &p.at)
	must(t, err, keepTurns())
	return p, true
}

// run runs a test on the part in a process of its own, and returns what it says.
func (p part) run(t *testing.T, test string) string {
	limit := 30*time.Minute + time.Duration(p.seeds)*time.Second
	if p.until > 0 {
		limit = 30*time.Minute + time.Until(time.UnixMilli(p.until))
	}
	p.at = filepath.Join(t.TempDir(), "seed")
	out, err := p.try(t, limit, os.Args[0], test)
	if err != nil {
		var seed uint64
		text, _ := os.ReadFile(p.at)
		_, _ = fmt.Sscanf(string(text), "%d,", &seed)
		t.Errorf("%v; see its trace with\n%s", err, repeating("TestWorld", seedVariable, fmt.Sprint(seed)))
	}
	return out
}

// try is run in a test binary, whose failure is returned: with one processor and without
// asynchronous preemption, goroutines take turns in an order that the seed decides.
func (p part) try(t *testing.T, limit time.Duration, binary, test string, more ...string) (out string, err error) {
	if p.at == "" {
		p.at = filepath.Join(t.TempDir(), "seed")
	}
	folders, err := os.MkdirTemp(Memory(), "leadetl-worlds-")
	must(t, err)
	defer os.RemoveAll(folders) // also those of a world that broke
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	c := limited(ctx, binary, append([]string{"-test.run=^" + test + "$", "-test.v", "-test.timeout=0"}, more...)...)
	// The race detector sleeps at exit, which keepTurns would make an hour.
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0", "TMPDIR="+folders, fmt.Sprintf("%s=%d %d %d %d %s", partVariable, p.first, p.step, p.seeds, p.until, p.at))
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

// each calls try for each seed of the part, until the test has failed for some, or its time is over.
func (p part) each(t *testing.T, mostFail int, try func(seed uint64) (lives int, failed bool)) (c tally) {
	for i := range uint64(p.seeds) {
		if i > 0 && p.until > 0 && time.Now().UnixMilli() >= p.until || c.findings == mostFail {
			break
		}
		seed := p.first + i*p.step
		if p.at != "" {
			must(t, os.WriteFile(p.at, fmt.Appendf(nil, "%d, after %d lives", seed, c.lives), 0o600))
		}
		lives, failed := try(seed)
		c.seeds, c.lives = c.seeds+1, c.lives+lives
		if failed {
			c.findings++
		}
	}
	return c
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
