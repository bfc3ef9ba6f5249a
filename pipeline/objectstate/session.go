package objectstate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// Session is one open scope of a state. Answers is a working copy on the local
// disk. Each change to it is in the log on S3 before it counts.
type Session struct {
	Answers *WorkingCopy

	state  *State
	of     answers.Scope
	urgent func() bool // of Linger; may be nil
	lease  lease.All   // nil: nothing is written
	log    *logWriter  // nil: nothing is written

	sealing  sync.Mutex
	manifest *manifest
	position int64          // position of the last snapshot
	running  sync.WaitGroup // a seal in the background
	due      atomic.Bool    // a seal is running in the background
	failed   error          // error of a seal in the background
	halfMade bool           // Answers lacks open calls or spending: nothing may be made of it
}

// Look opens a session that writes nothing to S3, with a working copy in a new
// folder. It needs no lease, because it reads the state as of one moment. Stored
// answers are there after Copy.Load.
func (s *State) Look(ctx context.Context, of answers.Scope, dir string) (_ *Session, err error) {
	x := &Session{state: s, of: of}
	defer x.closeOn(ctx, &err)
	for {
		if x.manifest, err = s.latest(ctx, of); err != nil {
			return nil, err
		}
		var segments []segment
		if segments, err = s.readSegments(ctx, of, x.manifest.LogFrom); err == nil {
			err = x.begin(ctx, dir, segments)
		}
		if err == nil {
			return x, nil
		}
		// A writer may have moved the log into a manifest in the meantime.
		now, other := s.latest(ctx, of)
		if other != nil || now.Number == x.manifest.Number {
			return x, errors.Join(err, other)
		}
		if err := x.discard(dir); err != nil {
			return nil, err
		}
	}
}

// Write opens a session that takes over the log, with a working copy in a new
// folder. If another process writes answers of the service, the error is
// filelock.ErrLocked. Stored answers are there after Copy.Load.
func (s *State) Write(ctx context.Context, of answers.Scope, dir string) (_ *Session, err error) {
	x := &Session{state: s, of: of}
	defer x.closeOn(ctx, &err)
	if x.lease, err = s.claimFrom(ctx, of.Service); err != nil {
		return nil, err
	}
	err = x.takeOver(ctx, dir)
	return x, err
}

// takeOver takes over the log from its previous writer, and the segments that
// came too late for it. That writer may still publish a manifest with what it had
// in the log: then the working copy is built again.
func (x *Session) takeOver(ctx context.Context, dir string) error {
	for tries := 1; ; tries++ {
		var err error
		if x.log == nil || x.manifest.LogFrom >= x.log.next {
			err = x.fence(ctx)
		}
		if err == nil {
			err = x.settle(ctx, dir)
		}
		if err == nil {
			break
		}
		now, other := x.state.latest(ctx, x.of)
		if tries == takeOverTries || other != nil || x.manifest == nil || now.Number == x.manifest.Number && !errors.Is(err, errLogMoved) {
			return err
		}
		if err := x.discard(dir); err != nil {
			return err
		}
	}
	x.replicate()
	return nil
}

// replicate sends changes of the working copy to the log.
func (x *Session) replicate() {
	x.Answers.ReplicateTo(x.append, x.state.turn.leaveBefore)
	if x.urgent != nil {
		x.Answers.DelayWrites(lingers, x.urgent)
	}
}

// discard removes the working copy, before it is built again.
func (x *Session) discard(dir string) error {
	var err error
	if x.Answers != nil {
		err = x.Answers.Close()
		x.Answers = nil
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// takeOverTries bounds the working copies that takeOver builds, fenceTries the
// segments that another writer may create meanwhile.
const (
	takeOverTries = 5
	fenceTries    = 1000
)

// errLogMoved means that a fence is where a segment was before the log moved on: it
// ends nothing.
var errLogMoved = errors.New("another process has moved the log on; try again")

// fence ends the log of earlier writers. One that is active creates segments
// faster than fence, which must read each that it finds in its place. So fence
// looks for the end of the log before each try, and wins once it arrives while
// the writer prepares its next group.
func (x *Session) fence(ctx context.Context) error {
	m, err := x.state.latest(ctx, x.of)
	if err != nil {
		return err
	}
	x.manifest = m // if the segments have moved into a newer one, takeOver tries again
	segments, err := x.state.readSegments(ctx, x.of, m.LogFrom)
	if err != nil {
		return err
	}
	w := &logWriter{
		state: x.state, ctx: context.WithoutCancel(ctx), of: x.of, term: maxTerm(m, segments) + 1, next: m.LogFrom + int64(len(segments)),
	}
	for range fenceTries {
		if err = w.fence(); err == nil {
			x.log = w
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		last, err := x.state.lastSegment(ctx, x.of, w.next)
		if err != nil {
			return err
		}
		w.next = last + 1
	}
	return fmt.Errorf("%s: %w", x.state.folder(x.of), filelock.ErrLocked)
}

// settle builds the working copy from the manifest and all before the fence, and
// writes it to files.
func (x *Session) settle(ctx context.Context, dir string) (err error) {
	if x.manifest, err = x.state.latest(ctx, x.of); err != nil {
		return err
	}
	if x.manifest.LogFrom >= x.log.next {
		return errLogMoved
	}
	segments, err := x.state.segmentsBelow(ctx, x.of, x.manifest.LogFrom, x.log.next-1)
	if err != nil {
		return err
	}
	x.log.term = max(x.log.term, maxTerm(x.manifest, segments)+1)
	if err := x.begin(ctx, dir, segments); err != nil {
		return err
	}
	lateAt, err := x.state.listAll(ctx, x.state.folder(x.of).Below("late/"))
	if err != nil {
		return err
	}
	late, err := x.state.readLate(ctx, lateAt)
	if err != nil {
		return err
	}
	for _, g := range late {
		if err := x.Answers.ReplayLate(ctx, g.record); err != nil {
			return err
		}
	}
	if err := x.seal(ctx); err != nil { // from here on no earlier writer can publish a manifest
		return err
	}
	for _, at := range lateAt {
		if err := x.state.store.Remove(ctx, at.Location); err != nil {
			return err
		}
	}
	return nil
}

// begin makes the working copy with the open calls of a manifest, what runs have
// spent, and the changes in the segments after it.
func (x *Session) begin(ctx context.Context, dir string, segments []segment) (err error) {
	store, err := answers.Open(dir, answers.Options{Disk: disk.Volatile(dir), Generations: math.MaxInt})
	if err != nil {
		return err
	}
	x.Answers = &WorkingCopy{Store: store, session: x, dir: dir}
	m := x.manifest
	calls, err := x.state.readCalls(ctx, x.of, m)
	if err != nil {
		return err
	}
	if _, err := x.Answers.Take(ctx, x.of, func(func(answers.Item, error) bool) {}, calls); err != nil {
		return err
	}
	if err := x.Answers.SetSpent(ctx, x.of, m.Spent); err != nil {
		return err
	}
	shot, err := x.Answers.Snapshot(ctx, x.of, 0, func() {})
	if err != nil {
		return err
	}
	x.position = shot.Position
	for _, g := range segments {
		if err := x.Answers.Replay(ctx, g.record); err != nil {
			return fmt.Errorf("%s: %w", x.state.folder(x.of).Below(segmentName(g.at.Number)), err)
		}
	}
	return x.Answers.AbandonCalls(ctx)
}

// lingers is the time between two segments of the log while there is no hurry: with
// those of the lease and of files, at most 10 requests a second.
const lingers = 105 * time.Millisecond

// DelayWrites makes changes wait for others, so that fewer requests go to S3, except
// while urgent says that calls wait for places. Each call then takes some 50 ms longer on
// average. urgent is called often.
func (x *Session) DelayWrites(urgent func() bool) {
	if x.log == nil {
		return
	}
	x.urgent = urgent
	x.replicate()
}

// append sends a group of changes. Calls of append do not overlap.
func (x *Session) append(group []byte) error {
	if err := x.log.append(group); err != nil {
		return err
	}
	if (x.log.bytes >= x.state.sealBytes || x.log.next-x.log.sealed >= x.state.SealSegments) && x.due.CompareAndSwap(false, true) {
		x.running.Go(func() {
			defer x.due.Store(false)
			if err := x.seal(x.log.ctx); err != nil {
				x.sealing.Lock()
				x.failed = err
				x.sealing.Unlock()
			}
		})
	}
	return nil
}

// seal writes the changes of the log to files, and publishes a manifest that
// names them.
func (x *Session) seal(ctx context.Context) error {
	x.sealing.Lock()
	defer x.sealing.Unlock()
	if x.failed != nil {
		return x.failed
	}
	next := x.manifest.next(x.state.writer)
	shot, err := x.Answers.Snapshot(ctx, x.of, x.position, func() {
		next.LogFrom, next.Term = x.log.next, x.log.term
		x.log.sealed, x.log.bytes = x.log.next, 0
	})
	if err != nil {
		return err
	}
	next.Spent = shot.Spent
	files, err := x.state.writeGeneration(ctx, x.of, x.manifest.lastGeneration()+1, shot.Items)
	if err != nil {
		return err
	}
	next.Files = append(next.Files, files...)
	if next.Calls, err = x.state.writeCalls(ctx, x.of, next.Number, shot.Calls); err != nil {
		return err
	}
	if err := x.state.mergeGenerations(ctx, x.of, next, mergeFrom(next.generations(), x.state.MaxGenerations)); err != nil {
		return err
	}
	if err := x.state.publish(ctx, x.of, next); err != nil {
		return err
	}
	x.manifest, x.position = next, shot.Position
	return x.state.removeSegments(ctx, x.of, next.LogFrom)
}

func (x *Session) closeOn(ctx context.Context, err *error) {
	if *err != nil {
		*err = errors.Join(*err, x.release())
	}
}

// Close writes the rest of the log to files, and releases the lease. Changes
// that cannot be written stay in the log for the next session.
func (x *Session) Close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var err error
	if x.log != nil {
		x.running.Wait()
		if x.log.ended == nil && !x.halfMade {
			if err = x.seal(ctx); err == nil {
				err = x.state.forgetMissed(ctx)
			}
		}
	}
	return errors.Join(err, x.release())
}

func (x *Session) release() error {
	var errs []error
	if x.Answers != nil {
		errs = append(errs, x.Answers.Close())
	}
	return errors.Join(append(errs, x.lease.Release())...)
}
