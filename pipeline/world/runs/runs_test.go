// Package runs lets whole runs live many lives on a simulated machine, from the first request to
// _SUCCESS, and compares what they publish with what an undisturbed run publishes.
package runs

import (
	"errors"
	"testing"

	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
)

var suite = worldtest.Suite{Live: live, Again: again, Prepare: prepare, Planted: planted, Reach: reach, Module: "../../.."}

// again are seeds that found something, with what it was.
var again = []uint64{
	20672,             // the removal of the journal fails after _SUCCESS, and the report loses the changes
	20820,             // the same, and the report of a finished dataset says that its run failed
	20261130000000115, // a damaged part is read only by the run that asks again
	20261130000000449, // a part of an unfinished run is damaged before its checksum is taken
	20261130000000722, // a comparison reads a part with a flipped bit
	20261130000000834, // a part of an unfinished run becomes an older one before its checksum is taken
}

// TestWorld tries seeds.
func TestWorld(t *testing.T) { suite.World(t, len(scenes)) }

// TestReplay tries seeds twice.
func TestReplay(t *testing.T) { suite.Replay(t) }

// TestReached counts what seeds reach.
func TestReached(t *testing.T) { suite.Reached(t) }

// TestPlantedBugs plants bugs.
func TestPlantedBugs(t *testing.T) { suite.PlantedBugs(t) }

// live lets a world live. Seeds that follow one another have one scene each.
func live(t *testing.T, w *worldtest.World, dir string, l worldtest.Limits) (wrong []string, lives int) {
	s3test.Setenv(t)
	t.Setenv("AWS_CA_BUNDLE", "")
	defer w.GuardNames()()
	p := newPlan(w, l, scenes[w.Seed()%uint64(len(scenes))])
	h, err := newHistory(w, p, dir, dir)
	if err = errors.Join(err, p.writeLists(w, dir)); err != nil {
		return []string{err.Error()}, 0
	}
	h.live(t.Context())
	return h.disturbed.wrong, h.disturbed.lives
}
