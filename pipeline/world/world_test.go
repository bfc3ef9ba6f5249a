// Package world lets the code that pays live many lives on a simulated machine, with a
// simulated service, and checks after each that no call was paid twice, no budget passed and
// no answer lost.
package world

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/worldtest"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// whole is a plan as it is.
var whole = limits{keys: 1 << 20, crashes: 1 << 20}

// result is what came of a world.
type result struct {
	wrong []string
	lives int
	trace uint64
}

// run lets the world of a seed live, in a folder of its own.
func run(t *testing.T, seed uint64, l limits, log io.Writer) (r result) {
	t.Helper()
	dir, err := os.MkdirTemp(memory(), "leadetl-world-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	template()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector changes the turns of goroutines
	defer func() {
		if broken := recover(); broken != nil { // such as goroutines that never return
			panic(fmt.Sprintf("seed %d: %v", seed, broken))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		w := worldtest.New(seed, log)
		p := newPlan(w, l)
		if p.migrated {
			if err := os.WriteFile(filepath.Join(dir, databaseName), template(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		h := &history{
			world: w, plan: p, disk: worldtest.NewDisk(w), dir: dir, service: newService(w, p), told: map[int]bool{}, uses: map[string]int{}, changing: make(chan struct{}, 32),
			scope: answers.Scope{Service: "https://service.example", Operation: p.operation},
		}
		h.disk.Failing, h.disk.Slow = p.diskFails, p.diskSlow
		defer w.GuardSQLite(dir, p.commitFails)()
		h.live(context.Background())
		r = result{h.wrong, h.lives, w.Trace()}
	})
	return r
}

const databaseName = "answers.sqlite"

// template is the database of an empty store.
var template = sync.OnceValue(func() []byte {
	dir, err := os.MkdirTemp(memory(), "leadetl-world-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	s, err := answers.Open(dir, answers.Options{})
	if err == nil {
		err = s.Close()
	}
	text, read := os.ReadFile(filepath.Join(dir, databaseName))
	if err != nil || read != nil {
		panic(fmt.Sprint(err, read))
	}
	return text
})

// memory is a folder in memory, if there is one: SQLite syncs each commit.
func memory() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

// Environment variables of TestWorld.
const (
	// seedsVariable is how many seeds are tried, in a process for each core.
	seedsVariable = "LEADETL_WORLD_SEEDS"
	// seedVariable is one seed whose trace is written.
	seedVariable = "LEADETL_WORLD_SEED"
)

// TestWorld tries seeds.
func TestWorld(t *testing.T) {
	if one := os.Getenv(seedVariable); one != "" {
		seed, err := strconv.ParseUint(one, 10, 64)
		must(t, err)
		report(t, seed, run(t, seed, whole, os.Stdout))
		return
	}
	p, found := ownPart(t)
	if n := os.Getenv(seedsVariable); n != "" && !found {
		seeds, err := strconv.Atoi(n)
		must(t, err)
		onAllCores(t, seeds)
		return
	} else if !found {
		p = part{first: 1, step: 1, seeds: 100}
	}
	began := time.Now()
	lives := p.each(t, func(seed uint64) int {
		r := run(t, seed, whole, nil)
		report(t, seed, r)
		return r.lives
	})
	t.Logf("%d seeds from %d, %d lives in %s", p.seeds, p.first, lives, time.Since(began).Round(time.Millisecond))
}

// report tells what broke in the world of a seed, and what is the least that breaks it.
func report(t *testing.T, seed uint64, r result) {
	t.Helper()
	if len(r.wrong) == 0 {
		return
	}
	least := whole
	for keys := 1; keys <= 12; keys++ {
		for crashes := range 6 {
			if l := (limits{keys, crashes}); least == whole && len(run(t, seed, l, nil).wrong) > 0 {
				least = l
			}
		}
	}
	t.Errorf("seed %d, of which %d keys and %d crashes are enough; see its trace with %s=%d", seed, least.keys, least.crashes, seedVariable, seed)
	for _, wrong := range r.wrong {
		t.Errorf("seed %d: %s", seed, wrong)
	}
}
