package objectstate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// An earlier version had several processes of one run ask at the same time, each in a
// lane: a small state below the scope, with a log and manifests of its own. Lanes
// share no question.
//
// Where a manifest says that lanes are open, the next session that takes over the log
// of the scope joins them first: the manifest after it has all that they have. To join
// a lane, a process closes its log with a fence after which no process appends. So a
// process that slept cannot go on in a lane that has been joined.

// openLanes is what a manifest says about open lanes.
type openLanes struct {
	ID    int64  `json:"id"` // number of the manifest that has opened them
	Count int    `json:"count"`
	Run   string `json:"run"`
}

const lanesFolder = "lanes/"

func (s *State) laneFolder(of answers.Scope, id int64) objects.Location {
	return s.folder(of).Below(fmt.Sprintf(lanesFolder+"%010d/", id))
}

// lane returns the state of a lane.
func (s *State) lane(of answers.Scope, id int64, number int) *State {
	lane := *s
	lane.at = s.laneFolder(of, id).Below(fmt.Sprintf("%02d/", number))
	lane.writer = uuid.NewString()
	return &lane
}

// joinLanes closes the open lanes, and publishes a manifest with what they have.
func (x *Session) joinLanes(ctx context.Context) error {
	s, open := x.state, x.manifest.Lanes
	lanes, sealed := make([]*State, open.Count), make([]*manifest, open.Count)
	closing := pool.New().WithContext(ctx).WithMaxGoroutines(lanesAtOnce).WithFirstError().WithCancelOnError()
	for n := range lanes {
		lanes[n] = s.lane(x.of, open.ID, n)
		closing.Go(func(ctx context.Context) (err error) {
			sealed[n], err = lanes[n].sealLog(ctx, x.of, true)
			return err
		})
	}
	if err := closing.Wait(); err != nil {
		return err
	}
	next := x.manifest.next(s.writer)
	next.Lanes = nil
	var stored []items
	var calls []answers.OpenCall
	for n, m := range sealed {
		open, err := lanes[n].readCalls(ctx, x.of, m)
		if err != nil {
			return err
		}
		stored, calls = append(stored, lanes[n].sorted(ctx, x.of, m.Files, true)), append(calls, open...)
		next.Spent = next.Spent.Plus(m.Spent)
	}
	if _, _, err := s.addToManifest(ctx, x.of, next, merge(stored), calls); err != nil {
		return err
	}
	if err := s.publish(ctx, x.of, next); err != nil {
		return err
	}
	x.manifest = next
	return s.removeLanes(ctx, x.of, open.ID)
}

// lanesAtOnce is how many lanes are closed at a time.
const lanesAtOnce = 4

// removeLanes removes all that lanes up to an id have, except their fences. Later
// ones may be open.
func (s *State) removeLanes(ctx context.Context, of answers.Scope, upTo int64) error {
	under := s.folder(of).Below(lanesFolder)
	return s.eachBelow(ctx, under, func(ctx context.Context, info objects.Info) error {
		folder, name, _ := strings.Cut(strings.TrimPrefix(info.Key, under.Key), "/")
		if id, err := strconv.ParseInt(folder, 10, 64); err != nil || id > upTo {
			return nil
		}
		if strings.Contains(name, "/log/") {
			return s.removeUnlessFence(ctx, info)
		}
		return s.store.Remove(ctx, info.Location)
	})
}

// lookAtLanes adds what open lanes have to the working copy of a session that
// writes nothing, and returns what was paid in them.
func (x *Session) lookAtLanes(ctx context.Context) (paid answers.Spent, err error) {
	dir, err := os.MkdirTemp(x.state.Scratch, "leadetl-answers-*")
	if err != nil {
		return paid, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for n := range x.manifest.Lanes.Count {
		more, err := x.lookAtLane(ctx, n, fmt.Sprintf("%s/%d", dir, n))
		if err != nil {
			return paid, err
		}
		paid = paid.Plus(more)
	}
	return paid, nil
}

func (x *Session) lookAtLane(ctx context.Context, number int, dir string) (paid answers.Spent, err error) {
	lane, err := x.state.lane(x.of, x.manifest.Lanes.ID, number).Look(ctx, x.of, dir)
	if err != nil {
		return paid, err
	}
	defer func() { err = errors.Join(err, lane.Close(ctx)) }()
	if err := lane.Answers.Load(ctx, nil); err != nil {
		return paid, err
	}
	shot, err := lane.Answers.Snapshot(ctx, x.of, 0, func() {})
	if err != nil {
		return paid, err
	}
	_, err = x.Answers.Take(ctx, x.of, shot.Items, shot.Calls)
	return shot.Spent, err
}
