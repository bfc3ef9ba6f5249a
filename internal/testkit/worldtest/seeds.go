package worldtest

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Limits make a world smaller, to find what a failure needs.
type Limits struct{ Keys, Crashes int }

// whole is a world as it is.
var whole = Limits{Keys: 1 << 20, Crashes: 1 << 20}

// Suite is what the worlds of a package are, and the bugs that they have to find. Small changes of
// Mutated may also be found by the tests of their package.
type Suite struct {
	// Live lets a world live, in a bubble of synctest and with an empty folder of its own. It
	// returns what broke a promise, and the number of lives.
	Live func(t *testing.T, w *World, dir string, l Limits) (wrong []string, lives int)
	// Again are seeds that broke a promise, or seemed to, before the code or the world was mended:
	// they are tried whenever no seeds are asked for.
	Again []uint64
	// Prepare is called before each world, outside of its bubble. It may be nil.
	Prepare func()
	// Lived is called after World has tried the seeds that it tries if nobody asks for others. It may
	// be nil.
	Lived   func(t *testing.T)
	Planted Bugs
	// Tested are bugs that the worlds do not see, or seldom, and the tests of a folder of the module do.
	Tested  map[string]Bugs
	Mutated Mutated
	Reach   Reach
	// Module is the root of the module, as seen from the package.
	Module string
}

// result is what came of a world.
type result struct {
	wrong []string
	lives int
}

// run lets the world of a seed live.
func (s Suite) run(t *testing.T, seed uint64, l Limits, log io.Writer) (r result) {
	t.Helper()
	dir, err := os.MkdirTemp(Memory(), "leadetl-world-")
	must(t, err)
	defer os.RemoveAll(dir)
	if s.Prepare != nil {
		s.Prepare()
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector changes the turns of goroutines
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(maxGarbage))
	defer func() {
		if broken := recover(); broken != nil { // such as goroutines that never return
			panic(fmt.Sprintf("seed %d: %v", seed, broken))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		w := New(seed, log)
		r.wrong, r.lives = s.Live(t, w, dir, l)
	})
	return r
}

// maxGarbage is how many bytes of a world are left uncollected: a process may have 6 GiB.
const maxGarbage = 2 << 30

// Memory is a folder in memory, if there is one: SQLite syncs each commit. Else it is "", as in
// a process for a part: its parent gives it a folder, and removes it.
func Memory() string {
	if os.Getenv(partVariable) != "" {
		return ""
	}
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

// World tries seeds, some unless the environment asks for a night, or for one seed. It is called by
// TestWorld.
func (s Suite) World(t *testing.T, some int) {
	p, found := ownPart(t)
	one, night := os.Getenv(seedVariable), os.Getenv(seedsVariable)
	mostFail, trace := 1, io.Writer(nil)
	switch {
	case !found && one != "":
		seed, err := strconv.ParseUint(one, 10, 64)
		must(t, err)
		t.Log(part{first: seed, step: 1, seeds: 1}.run(t, "TestWorld"))
		return
	case one != "":
		trace = os.Stdout
	case !found && night != "":
		onAllCores(t)
		return
	case night != "":
		mostFail = 10 // a night of seeds does not end with the first
	case !found:
		p = part{first: 1, step: 1, seeds: some}
	}
	began := time.Now()
	c := p.each(t, mostFail, func(seed uint64) (lives int, failed bool) {
		r := s.run(t, seed, whole, trace)
		s.report(t, seed, r)
		return r.lives, len(r.wrong) > 0
	})
	if !found {
		for _, seed := range s.Again {
			s.report(t, seed, s.run(t, seed, whole, nil))
		}
		if s.Lived != nil {
			s.Lived(t)
		}
	}
	t.Logf("from seed %d: %s in %s", p.first, c, time.Since(began).Round(time.Millisecond))
}

// report tells what broke in the world of a seed, and what is the least that breaks it.
func (s Suite) report(t *testing.T, seed uint64, r result) {
	t.Helper()
	if len(r.wrong) == 0 {
		return
	}
	least := whole
	for keys := 1; keys <= 12; keys++ {
		for crashes := range 6 {
			if l := (Limits{keys, crashes}); least == whole && len(s.run(t, seed, l, nil).wrong) > 0 {
				least = l
			}
		}
	}
	t.Errorf("seed %d, of which %d keys and %d crashes are enough; see its trace with\n%s", seed, least.Keys, least.Crashes, repeating("TestWorld", seedVariable, fmt.Sprint(seed)))
	for _, wrong := range r.wrong {
		t.Errorf("seed %d: %s", seed, wrong)
	}
}

// maxTries is how often Replay tries a seed, until a trace comes again.
const maxTries = 5

// Replay shows that a seed that is tried twice has the same trace. Where keepTurns can do nothing
// the system may take the processor away in the midst of a turn, which changes the next ones: one
// seed in thirty, and one more, may need further tries. It is called by TestReplay.
func (s Suite) Replay(t *testing.T) {
	p, found := ownPart(t)
	if !found {
		seeds := 100
		if testing.Short() {
			seeds = 4
		}
		if out := (part{first: 1, step: 1, seeds: seeds}).run(t, "TestReplay"); t.Failed() {
			t.Log(out)
		}
		return
	}
	var others []string
	p.each(t, 1, func(seed uint64) (lives int, failed bool) {
		var traces []string
		for len(traces) < maxTries {
			var trace strings.Builder
			lives = s.run(t, seed, whole, &trace).lives
			if slices.Contains(traces, trace.String()) {
				break
			}
			traces = append(traces, trace.String())
		}
		if len(traces) > 1 {
			a, b := fork(traces[0], traces[1])
			others = append(others, fmt.Sprintf("seed %d has %d traces: %q became %q", seed, len(traces), a, b))
		}
		if len(traces) == maxTries || len(others) > 1+p.seeds/30 {
			t.Error(strings.Join(others, "\n"))
		}
		return lives, t.Failed()
	})
}

// fork returns the first lines in which two traces differ.
func fork(one, other string) (a, b string) {
	for one != other && a == b {
		a, one, _ = strings.Cut(one, "\n")
		b, other, _ = strings.Cut(other, "\n")
	}
	return a, b
}
