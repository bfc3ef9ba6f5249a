// Package world lets the code that pays live many lives on a simulated machine, with a
// simulated service, and checks after each that no call was paid twice, no budget passed and
// no answer lost.
package world

import (
	"context"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/internal/testkit/worldtest"
	"github.com/leadetl/leadetl/pipeline/answers"
)

var suite = worldtest.Suite{Live: live, Again: again, Planted: planted, Tested: tested, Mutated: mutated, Reach: reach, Module: "../.."}

// again are seeds that found something, with what it was.
var again = []uint64{
	95,                // a killed process has renamed a manifest without a sync, and the next one removes the log that it replaces
	356,               // damage takes what one resolver has paid, and records of another follow
	506,               // a page is sent again, and the others wait for its place at the service
	656,               // all resolvers refuse a key, and reference data does not have it: that is a miss
	1330,              // a machine that was replaced hears that a call failed, and then its answer
	3793,              // the removal of a file of open calls arrives when the same calls are open again
	4577,              // the user interrupts the last life, before an unknown call is sent again
	10710,             // a machine that slept while it opened the state takes the log over from its successor
	27701,             // the credits of one resolver end, and a later one is judged by other keys
	881000000076,      // a power cut brings back the first terms of a journal that is removed, and not the last one
	881000001046,      // what a killed process has removed of a journal comes back beside the next one
	900000000163,      // the budget of a verifier ends, and an email passes that it would refuse
	881000003233,      // damage takes stored answers of rows that are recorded
	777000001357,      // an email is not verified, for the answer was lost, and a resolver is judged by keys behind its row
	20261130000000117, // an open call of a resolver that a row does not come to is known, because an earlier one had no answer
	20261130000000199, // a resolver that refused a key is asked again behind a recorded row, and that call is lost
	20261130000002533, // so is a verifier that refused an email
}

// TestWorld tries seeds.
func TestWorld(t *testing.T) { suite.World(t, 30) }

// TestReplay tries seeds twice.
func TestReplay(t *testing.T) { suite.Replay(t) }

// TestReached counts what seeds reach.
func TestReached(t *testing.T) { suite.Reached(t) }

// TestPlantedBugs plants bugs.
func TestPlantedBugs(t *testing.T) { suite.PlantedBugs(t) }

// TestMutants tries small changes of the code that pays.
func TestMutants(t *testing.T) { suite.Mutants(t) }

// live lets a world live, and then machines of it that keep a journal, and share a lease and a queue.
func live(t *testing.T, w *worldtest.World, dir string, l worldtest.Limits) (wrong []string, lives int) {
	wrong, lives = livePaying(t, w, dir, l)
	also, more := liveRecording(w.Another(firstRecorder), l)
	wrong, lives = append(wrong, also...), lives+more
	if w.Below(4, "lease") == 0 {
		s3test.Setenv(t)
		t.Setenv("AWS_CA_BUNDLE", "")
		defer w.GuardNames()()
		also, more = liveLeasing(w, min(2+w.Below(2, "machines with a lease"), 1+l.Crashes))
		wrong, lives = append(wrong, also...), lives+more
	}
	return append(wrong, liveWithdrawing(w, min(12, l.Keys))...), lives
}

func livePaying(t *testing.T, w *worldtest.World, dir string, l worldtest.Limits) (wrong []string, lives int) {
	p := newPlan(w, l, "")
	if p.several {
		return liveInOrder(w, dir, p, l)
	}
	h := &history{
		world: w, plan: p, disk: worldtest.NewDisk(w), dir: dir, service: newService(w, p, ""), uses: map[string]int{}, known: &knowledge{told: map[int]bool{}, late: map[int]time.Time{}},
		scope: answers.Scope{Service: "https://service.example", Operation: p.operation},
	}
	if p.batch > 0 {
		h.scope.Operation = question
	}
	if p.onS3 {
		s3test.Setenv(t)
		t.Setenv("AWS_CA_BUNDLE", "")
		defer w.GuardNames()()
		h.liveOnS3(context.Background())
	} else {
		h.disk.Failing, h.disk.Slow = p.diskFails, p.diskSlow
		h.live(context.Background())
	}
	return h.known.wrong, h.lives
}
