// Package objectstate is a state on S3: its leases, and where its runs and answers are.
//
// # For operators
//
//	STATE/format.json              the number of the format of runs and nights
//	STATE/lease/<service>.json     who writes about a service now
//	STATE/missing/<object>         an object that a run ended on, as it was missing
//	STATE/nights/<job>             the finished datasets of a job, in their order
//	STATE/runs/<id>/               an unfinished run
//	STATE/answers/<service>/       answers of a service, in the form of a state folder (package answers)
//	STATE/answers/<service>/log/   changes that are in no manifest yet, an object for each group
//	STATE/answers/<service>/late/  changes that came too late for the log
//
// A writer creates an object with the next number of a log or of manifests, and a store lets only one create
// it. So readers need no lock, and see one moment.
//
// Answers, calls and the log hold personal data: the keys of the questions, and the answers as received.
package objectstate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// ErrDamaged means that an object is missing or does not match its manifest.
var ErrDamaged = fmt.Errorf("the state on S3 is %w", appendlog.ErrDamaged)

// State is a state on S3. It is safe for concurrent use.
type State struct {
	store *objects.Store
	at    objects.Location // ends in a slash
	// writer identifies this process in the marks of missing objects.
	writer string
	turn   Turn // whose leases are
	// Scratch is the folder for temporary files; empty means the system's.
	Scratch string
	// Waits says that a lease whose holder may be dead is waited for.
	Waits bool
	// pollEvery is how often to check a lease that another process holds.
	pollEvery time.Duration
	late      *atomic.Bool // an object was missing for too long
	impatient bool         // what is missing is not awaited, as when it is searched for
}

// Open returns the state at a URI, s3://bucket/prefix/. It reads nothing yet.
func Open(store *objects.Store, uri string) (*State, error) {
	at, err := objects.ParseFolder(uri)
	if err != nil {
		return nil, err
	}
	writer := uuid.NewString()
	return &State{store: store, at: at, writer: writer, turn: Turn{Holder: objects.Holder{Name: writer}}, pollEvery: 5 * time.Second, late: &atomic.Bool{}}, nil
}

// ForgetMissed removes the marks of what earlier runs have missed, if nothing was missing since Open.
func (s *State) ForgetMissed(ctx context.Context) error {
	if s.late.Load() {
		return nil
	}
	files := s.Files()
	var marks []string
	for info, err := range files.List(ctx, missingFolder) {
		if err != nil {
			return err
		}
		marks = append(marks, info.Name)
	}
	return files.Remove(ctx, marks...)
}

// Turn is one of several processes that are started one after another, and hold leases
// in turn.
type Turn struct {
	objects.Holder
	// Confirmed is when whoever starts them was last told that this one is alive. Nil
	// means always.
	Confirmed func() time.Time
}

// HeldBy has leases held by such a process. Without it, this process holds them alone.
// It comes before all else.
func (s *State) HeldBy(t Turn) { s.turn = t }

// leaveBefore is until when a call may leave whose intent is requested now: whoever
// sleeps longer, or is cut off for longer, may have been replaced.
func (t Turn) leaveBefore(now time.Time) time.Time {
	if t.Confirmed != nil {
		if confirmed := t.Confirmed(); confirmed.Before(now) {
			now = confirmed
		}
	}
	return now.Add(t.Sure())
}

// String returns the state's URI.
func (s *State) String() string { return s.at.String() }

// shortHash derives a folder name from a text.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// LeaveBefore is that of the Turn.
func (s *State) LeaveBefore(now time.Time) time.Time { return s.turn.leaveBefore(now) }

// AsFound is the state for who looks at what is there: nothing is awaited, and what is missing is damage.
func (s *State) AsFound() *State {
	look := *s
	look.impatient = true
	return &look
}

const answersFolder = "answers/"

// Of is the place of the answers of a service.
func (s *State) Of(service string) answers.Place { return s.place(shortHash(service)) }

// All lists the places of answers.
func (s *State) All(ctx context.Context) (all []answers.Place, err error) {
	entries, err := s.Files().Entries(ctx, answersFolder)
	for _, info := range entries {
		if info.IsFolder() {
			all = append(all, s.place(path.Base(info.Name)))
		}
	}
	return all, err
}

// place is the place of the answers of the service whose name has a hash.
func (s *State) place(hash string) answers.Place {
	return answers.Elsewhere(s.filesBelow(answersFolder+hash+"/"), s.Scratch, func(ctx context.Context) (lease.Lease, error) {
		claim := s.claim
		if s.Waits {
			claim = s.claimFrom
		}
		return claim(ctx, s.at.Below("lease/"+hash+".json"))
	})
}

// KeepsVersions reports whether the state is in a bucket that keeps the earlier
// versions of objects.
func (s *State) KeepsVersions(ctx context.Context) (bool, error) {
	return s.store.KeepsVersions(ctx, s.at)
}

// RemoveVersions deletes the earlier versions of the objects with answers.
func (s *State) RemoveVersions(ctx context.Context) error {
	return s.store.RemoveOldVersions(ctx, s.at.Below(answersFolder))
}

// claim takes a lease. If another process holds it, and is not one that this one follows, the error is
// filelock.ErrLocked.
func (s *State) claim(ctx context.Context, at objects.Location) (lease.Lease, error) {
	ctx = context.WithoutCancel(ctx) // a lease is renewed until it is released
	if err := s.removeGone(ctx, at); err != nil {
		return nil, err
	}
	taken, err := s.store.Lock(ctx, at, s.turn.Holder)
	if err != nil {
		return nil, err
	}
	if err := taken.RequireConditions(); err != nil {
		return nil, errors.Join(err, taken.Release())
	}
	return taken, nil
}

// removeGone removes a lease whose process ran on this host and is gone.
func (s *State) removeGone(ctx context.Context, at objects.Location) error {
	gone, err := s.store.HolderGone(ctx, at)
	if err != nil || gone == (objects.Holder{}) {
		return err
	}
	lock, err := s.store.Lock(ctx, at, gone)
	if errors.Is(err, filelock.ErrLocked) {
		return nil // another process was faster
	}
	if err != nil {
		return err
	}
	return lock.Release()
}

// claimFrom is claim that waits while the holder of the lease shows no
// sign of life, until the holder does or the lease has expired.
func (s *State) claimFrom(ctx context.Context, at objects.Location) (lease.Lease, error) {
	first := ""
	for {
		l, err := s.claim(ctx, at)
		if !errors.Is(err, filelock.ErrLocked) {
			return l, err
		}
		info, statErr := s.store.Stat(ctx, at)
		now := info.ETag + info.ModTime.String()
		switch {
		case statErr != nil && !errors.Is(statErr, fs.ErrNotExist):
			return nil, statErr
		case first != "" && now != first:
			return nil, err
		case first == "":
			s.store.Log().Info("the state is in use by a process that may be dead; waiting until it gives a sign of life, or its lease expires", "reason", err.Error())
		}
		first = now
		timer := time.NewTimer(s.pollEvery)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}

func (s *State) leaseOf(name string) objects.Location {
	return s.at.Below("lease/" + shortHash(name) + ".json")
}
