package objectstate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// Several processes of one run may ask at the same time. Each does in a lane: a
// small state below the scope, with a log and manifests of its own. Lanes share
// no question, and what the scope has of their questions does not change while
// they are open.
//
// A manifest of the scope opens lanes, and a later one joins them: it has all that
// they have, and names them no more. Between these two, nothing is appended to the
// log of the scope, because every session that takes that log over joins the lanes
// first. To join a lane, a process closes its log with a fence after which no process
// appends. So a process that slept cannot go on in a lane that has been joined.

// openLanes is what a manifest says about open lanes.
type openLanes struct {
	ID    int64  `json:"id"` // number of the manifest that has opened them
	Count int    `json:"count"`
	Run   string `json:"run"`
}

// Lane names one of the lanes that a session has opened.
type Lane struct {
	ID     int64  `json:"id"`
	Number int    `json:"number"`
	Run    string `json:"-"`
}

const lanesFolder = "lanes/"

func (s *State) laneFolder(of answers.Scope, id int64) objects.Location {
	return s.folder(of).Below(fmt.Sprintf(lanesFolder+"%010d/", id))
}

// lane returns the state of a lane.
func (s *State) lane(of answers.Scope, id int64, number int) *State {
	lane := *s
	lane.at = s.laneFolder(of, id).Below(fmt.Sprintf("%02d/", number))
	lane.writer, lane.laneOf = uuid.NewString(), s
	return &lane
}

// OpenLanes opens lanes for processes of a run. It is the last use of the session
// but for Close, which leaves the lease to these processes.
func (x *Session) OpenLanes(ctx context.Context, run string, count int) (id int64, err error) {
	x.running.Wait()
	if x.log.ended != nil {
		return 0, x.log.ended
	}
	if x.log.next > x.manifest.LogFrom {
		if err := x.seal(ctx); err != nil {
			return 0, err
		}
	}
	x.log.ended = errLanesOpen // Close must not write either
	x.Answers.ReplicateTo(func(answers.Group) error { return errLanesOpen }, intentsHandedOver)
	next := x.manifest.next(x.state.writer)
	next.Lanes = &openLanes{ID: next.Number, Count: count, Run: run}
	if err := x.state.publish(ctx, x.of, next); err != nil {
		return 0, err
	}
	x.manifest, x.leaves = next, true
	return next.Number, nil
}

var errLanesOpen = errors.New("lanes are open: the log of the scope takes no changes")

// has reports whether a lane is open.
func (m *manifest) has(l Lane) bool {
	return m.Lanes != nil && m.Lanes.ID == l.ID && m.Lanes.Run == l.Run && l.Number >= 0 && l.Number < m.Lanes.Count
}

// WriteLane opens a session of a lane, which asks about some questions that no other
// lane asks about. Beside what the lane has, it has what the scope has of them. It
// takes over from another process in the lane at once. If the lanes are not open any
// more, the error is objects.ErrLockLost.
func (s *State) WriteLane(ctx context.Context, of answers.Scope, l Lane, some Hashes, dir string) (_ *Session, err error) {
	x := &Session{state: s.lane(of, l.ID, l.Number), of: of, some: some, handsOver: true}
	defer x.closeOn(ctx, &err)
	if x.lease, err = s.claimFrom(ctx, s.store.Share, "run "+l.Run, of.Service); err != nil {
		return nil, err
	}
	return x, x.takeOverLane(ctx, l, dir)
}

// takeOverLane is takeOver for a lane, if it is open.
func (x *Session) takeOverLane(ctx context.Context, l Lane, dir string) (err error) {
	scope := x.state.laneOf
	if x.base, err = scope.latest(ctx, x.of); err != nil {
		return err
	}
	if !x.base.has(l) {
		return errJoined(x.state)
	}
	err = x.takeOver(ctx, dir)
	if err != nil { // the lane may have been joined and removed meanwhile
		if now, other := scope.latest(ctx, x.of); other == nil && !now.has(l) {
			err = errJoined(x.state)
		}
	}
	return err
}

func errJoined(lane *State) error {
	return fmt.Errorf("%s: the lane is closed: %w", lane, objects.ErrLockLost)
}

// Inherited are the open calls to questions of a lane from before it was opened,
// as they were then. They are among the open calls of its Answers, or answered there.
func (x *Session) Inherited() []answers.OpenCall { return x.inherited }

// inherit finds the open calls that the scope has to a lane's questions.
func (x *Session) inherit(ctx context.Context) error {
	x.inherited = nil
	if x.base == nil {
		return nil
	}
	all, err := x.state.laneOf.readCalls(ctx, x.of, x.base)
	if err != nil || len(all) == 0 {
		return err
	}
	open := make(map[answers.Hash]answers.OpenCall, len(all))
	for _, c := range all {
		open[c.Hash] = c
	}
	for h, err := range x.some {
		if err != nil {
			return err
		}
		if c, found := open[h]; found {
			x.inherited = append(x.inherited, c)
		}
	}
	return nil
}

// refuseClosed ends a takeover of a lane that was closed. The fence of the takeover
// is behind the one that has closed the log, or behind the manifest after it.
func (x *Session) refuseClosed(segments []segment) error {
	closed := x.manifest.Closed || slices.ContainsFunc(segments, func(g segment) bool { return g.Closes })
	if closed && !x.closing {
		return errJoined(x.state)
	}
	return nil
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
	next.Lanes, next.Spent = nil, maps.Clone(next.Spent)
	if next.Spent == nil {
		next.Spent = map[string]spent{}
	}
	var stored []items
	var calls []answers.OpenCall
	for n, m := range sealed {
		open, err := lanes[n].readCalls(ctx, x.of, m)
		if err != nil {
			return err
		}
		stored, calls = append(stored, lanes[n].sorted(ctx, x.of, m.Files, true)), append(calls, open...)
		for run, p := range m.Spent {
			before := next.Spent[run]
			next.Spent[run] = spent{before.Answers + p.Answers, before.Unpriced + p.Unpriced, before.Credits + p.Credits}
		}
	}
	if _, _, err := s.add(ctx, x.of, next, merge(stored), calls); err != nil {
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
	removing := pool.New().WithContext(ctx).WithMaxGoroutines(readAtOnce).WithFirstError().WithCancelOnError()
	under := s.folder(of).Below(lanesFolder)
	var listing error
	for info, err := range s.store.List(ctx, under) {
		if listing = err; err != nil {
			break
		}
		folder, name, _ := strings.Cut(strings.TrimPrefix(info.Key, under.Key), "/")
		if id, err := strconv.ParseInt(folder, 10, 64); err != nil || id > upTo {
			continue
		}
		removing.Go(func(ctx context.Context) error {
			if strings.Contains(name, "/log/") {
				return s.removeUnlessFence(ctx, info)
			}
			return s.store.Remove(ctx, info.Location)
		})
	}
	return errors.Join(listing, removing.Wait())
}

// lookAtLanes adds what open lanes have to the working copy of a session that
// writes nothing, and what runs have paid in them.
func (x *Session) lookAtLanes(ctx context.Context, paid map[string]answers.Spending) (err error) {
	dir, err := os.MkdirTemp(x.state.Scratch, "leadetl-answers-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for n := range x.manifest.Lanes.Count {
		if err := x.lookAtLane(ctx, n, fmt.Sprintf("%s/%d", dir, n), paid); err != nil {
			return err
		}
	}
	return nil
}

func (x *Session) lookAtLane(ctx context.Context, number int, dir string, paid map[string]answers.Spending) (err error) {
	lane, err := x.state.lane(x.of, x.manifest.Lanes.ID, number).Look(ctx, x.of, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lane.Close(ctx)) }()
	if err := lane.Answers.Load(ctx, nil); err != nil {
		return err
	}
	shot, err := lane.Answers.Snapshot(ctx, x.of, 0, func() {})
	if err != nil {
		return err
	}
	for run, p := range shot.Spent {
		sum := paid[run]
		paid[run] = answers.Spending{Answers: sum.Answers + p.Answers, Unpriced: sum.Unpriced + p.Unpriced, Credits: sum.Credits + p.Credits}
	}
	_, err = x.Answers.Take(ctx, x.of, shot.Items, shot.Calls)
	return err
}
