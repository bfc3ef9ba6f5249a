package worldtest

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Environment variables of World. make world sets those of a night.
const (
	// seedsVariable is how many seeds a night tries at most, in a process for each core.
	seedsVariable = "LEADETL_WORLD_SEEDS"
	// secondsVariable is how long it lasts; "" or 0 until all seeds are tried.
	secondsVariable = "LEADETL_WORLD_SECONDS"
	// baseVariable is a number, such as of the day, that gives it seeds of its own; "" is 0.
	baseVariable = "LEADETL_WORLD_BASE"
	// seedVariable is one seed whose trace is written.
	seedVariable = "LEADETL_WORLD_SEED"
)

// seedsOfBase is how many seeds a base has. They follow base*seedsOfBase.
const seedsOfBase = 1_000_000_000

// tally is what has been tried.
type tally struct{ seeds, lives, findings int }

// String is read again by tallyIn.
func (c tally) String() string {
	return fmt.Sprintf("%d seeds, %d lives, %d findings", c.seeds, c.lives, c.findings)
}

var counted = regexp.MustCompile(`(\d+) seeds, (\d+) lives, (\d+) findings`)

// tallyIn is the tally that a process has printed; none if it broke.
func tallyIn(out string) (c tally) {
	if said := counted.FindString(out); said != "" {
		_, _ = fmt.Sscanf(said, "%d seeds, %d lives, %d findings", &c.seeds, &c.lives, &c.findings)
	}
	return c
}

// number is the value of an environment variable; 0 if it is not set.
func number(t *testing.T, variable string, most uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > most {
		t.Fatalf("%s is %q, and must be a number up to %d", variable, text, most)
	}
	return n
}

// onAllCores tries the seeds of a night in a process for each core, and says how many lives were
// lived.
func onAllCores(t *testing.T) {
	base, seeds := number(t, baseVariable, math.MaxUint32), number(t, seedsVariable, seedsOfBase-1)
	began, until := time.Now(), int64(0)
	if limit := number(t, secondsVariable, math.MaxInt32); limit > 0 {
		until = began.UnixMilli() + 1000*int64(limit)
	}
	t.Logf("the base of the seeds is %d: BASE=%d repeats them", base, base)
	cores := uint64(runtime.NumCPU())
	var processes sync.WaitGroup
	var mu sync.Mutex
	var all tally
	for core := range cores {
		p := part{first: base*seedsOfBase + core + 1, step: cores, seeds: int((seeds + cores - 1 - core) / cores), until: until}
		processes.Go(func() {
			out := p.run(t, "TestWorld")
			t.Log(out)
			mu.Lock()
			defer mu.Unlock()
			c := tallyIn(out)
			all.seeds, all.lives, all.findings = all.seeds+c.seeds, all.lives+c.lives, all.findings+c.findings
		})
	}
	processes.Wait()
	t.Logf("in all, of base %d: %s in %s", base, all, time.Since(began).Round(time.Second))
}

// repeating is the command that lets a world live again, in the root of the module: a test with a
// variable, such as of its seed.
func repeating(test, variable, value string) string {
	folder, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	root := folder
	for !isModule(root) {
		if root = filepath.Dir(root); root == filepath.Dir(root) {
			panic(folder + " is in no module")
		}
	}
	in, err := filepath.Rel(root, folder)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%s=%s go test -count=1 -v -run '%s$' ./%s", variable, value, test, filepath.ToSlash(in))
}

func isModule(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil
}
