// Package world lets the service live many lives on a simulated machine, with simulated
// callers and receivers of callbacks, and checks after each that nobody was charged twice or
// for nothing, no limit was passed, and no answer or callback lost.
package world

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/cryptotest"

	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/sqlite"
)

var suite = worldtest.Suite{Live: live, Again: again, Prepare: func() { template() }, Lived: lived, Planted: planted, Tested: tested, Module: "../../.."}

// again are seeds that found something, with what it was.
var again = []uint64{
	20261130000001289, // an index of unfinished searches has a finished one
	5000000612,        // a clock is set ahead and right again before the service looks, and a callback waits
}

// TestWorld tries seeds.
func TestWorld(t *testing.T) {
	suite.World(t, 16)
	t.Log(sights())
}

// TestReplay tries seeds twice.
func TestReplay(t *testing.T) { suite.Replay(t) }

// TestPlantedBugs plants bugs.
func TestPlantedBugs(t *testing.T) { suite.PlantedBugs(t) }

// live lets a world live.
func live(t *testing.T, w *worldtest.World, dir string, l worldtest.Limits) (wrong []string, lives int) {
	h := newHistory(t, w, dir, newPlan(w, l))
	defer h.unmount()
	h.live(context.Background())
	return h.wrong, h.lives
}

// newHistory is a world before its first life.
func newHistory(t *testing.T, w *worldtest.World, dir string, p plan) *history {
	cryptotest.SetGlobalRandom(t, w.Draw("random"))
	if err := os.WriteFile(filepath.Join(dir, sqlite.DatabaseName), template().database, 0o600); err != nil {
		t.Fatal(err)
	}
	h := &history{world: w, plan: p, disk: worldtest.NewDisk(w), dir: dir, given: map[string]*given{}}
	if err := h.mount(); err != nil {
		t.Fatal(err)
	}
	return h
}

// mount puts the folder of the state on the disk.
func (h *history) mount() (err error) {
	h.free, err = h.disk.Mount(h.dir)
	return err
}

func (h *history) unmount() { h.free() }

// template is what all worlds begin with: an empty database, and a pepper.
var template = sync.OnceValue(func() (made struct {
	database []byte
	pepper   credential.Pepper
}) {
	fail := func(err error) {
		if err != nil {
			panic(fmt.Sprint("the template of a world: ", err))
		}
	}
	dir, err := os.MkdirTemp(worldtest.Memory(), "leadetl-world-")
	fail(err)
	defer os.RemoveAll(dir)
	s, err := sqlite.Serve(dir)
	fail(err)
	fail(s.Close())
	made.database, err = os.ReadFile(filepath.Join(dir, sqlite.DatabaseName))
	fail(err)
	file := filepath.Join(dir, "pepper")
	fail(os.WriteFile(file, fmt.Appendf(nil, "%064x", 1), 0o600))
	made.pepper, err = credential.LoadPepper(context.Background(), file, false)
	fail(err)
	return made
})
