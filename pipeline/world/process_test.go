package world

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// part is the seeds that a process tries, one after the other.
type part struct {
	first, step uint64
	seeds       int
	// at is a file that has the number of the present seed, for a process that panics.
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
	must(t, err)
	return p, true
}

// run runs a test on the part in a process of its own, and returns what it says: with one
// processor and without asynchronous preemption, goroutines take turns in an order that the
// seed decides.
func (p part) run(t *testing.T, test string) string {
	p.at = filepath.Join(t.TempDir(), fmt.Sprint("seed", p.first))
	c := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v", "-test.timeout=0")
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", fmt.Sprintf("%s=%d %d %d %s", partVariable, p.first, p.step, p.seeds, p.at))
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		text, _ := os.ReadFile(p.at)
		t.Errorf("%v, at seed %s", err, text)
	}
	return out.String()
}

// each calls try for each seed of the part, until the test fails.
func (p part) each(t *testing.T, try func(seed uint64)) {
	for i := range uint64(p.seeds) {
		seed := p.first + i*p.step
		if p.at != "" {
			must(t, os.WriteFile(p.at, fmt.Append(nil, seed), 0o600))
		}
		if try(seed); t.Failed() {
			return
		}
	}
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

// TestReplay: a seed that is tried twice gives the same interleaving.
func TestReplay(t *testing.T) {
	p, found := ownPart(t)
	if !found {
		if out := (part{first: 1, step: 1, seeds: 15}).run(t, "TestReplay"); t.Failed() {
			t.Log(out)
		}
		return
	}
	var others []string
	p.each(t, func(seed uint64) {
		if a, b := run(t, seed, whole, nil), run(t, seed, whole, nil); a.trace != b.trace {
			others = append(others, fmt.Sprint(seed))
		}
	})
	if len(others) > 0 {
		t.Errorf("of %d seeds %d have another trace when they are tried again: %s", p.seeds, len(others), strings.Join(others, ", "))
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
