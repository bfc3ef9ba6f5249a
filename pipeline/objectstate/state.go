// Package objectstate keeps a state on S3: the answers that runs have bought.
//
// Objects are never changed, except leases. The newest manifest of a scope names the objects
// that count. A writer publishes a new manifest under the next number, and a
// store lets only one writer create that number. So readers need no lock, and
// see one moment.
//
// # For operators
//
//	STATE/format.json                   the number of the format of runs and nights
//	STATE/lease/<service>.json          who writes about a service now
//	STATE/missing/<object>              an object that a run ended on, as it was missing
//	STATE/nights/<job>                  the finished datasets of a job, in their order
//	STATE/answers/<scope>/v/<n>.json    manifest n; the highest number counts. The
//	                                    service and operation are in it
//	STATE/answers/<scope>/f/*.parquet   answers, sorted by the hash of their question
//	STATE/answers/<scope>/c/*.jsonl     all calls without an answer
//	STATE/answers/<scope>/log/<n>.seg   changes that are in no manifest yet
//	STATE/answers/<scope>/late/*.seg    changes that came too late for the log
//
// All objects except manifests and leases hold personal data: the keys of the
// questions, and the answers as received.
package objectstate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/format"
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
	// writer identifies this process in the names of the objects it creates, so
	// that no other process uses the same names.
	writer string
	turn   Turn // whose leases are
	// Scratch is the folder for temporary files; empty means the system's.
	Scratch string
	// RowsPerFile and groupBytes are the sizes at which answer files and their
	// row groups end. Tests lower them.
	RowsPerFile, groupBytes int
	// MaxGenerations is how many generations of answer files there are before some are merged.
	MaxGenerations int
	// SealSegments and sealBytes are how many segments and bytes the log has when it is
	// written to files, so that the next process has little to read. Tests lower them.
	SealSegments, sealBytes int64
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
	return &State{
		store: store, at: at, writer: writer, turn: Turn{Holder: objects.Holder{Name: writer}}, RowsPerFile: 1 << 20, groupBytes: 8 << 20, MaxGenerations: maxGenerations,
		SealSegments: 5000, sealBytes: 64 << 20, pollEvery: 5 * time.Second, late: &atomic.Bool{},
	}, nil
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

// CheckFormat refuses a state whose runs and nights have another format than those of this
// program. Each scope has its own number.
func (s *State) CheckFormat(ctx context.Context) error { return s.mark(ctx).Check() }

func (s *State) mark(ctx context.Context) format.Mark {
	at, m := s.at.Below(format.MarkName), answers.StateMark(s.String())
	m.Get = func() ([]byte, error) {
		text, _, err := s.store.ReadFile(ctx, at)
		return text, err
	}
	m.Put = func(text []byte) error {
		_, err := s.store.Put(ctx, at, objects.ContentOf(text, "application/json"))
		return err
	}
	m.Holds = func() (bool, error) {
		_, folders, err := s.store.ListFolder(ctx, s.at)
		return slices.ContainsFunc(folders, func(name string) bool { return slices.Contains(answers.MarkedFolders, strings.TrimSuffix(name, "/")) }), err
	}
	return m
}

// String returns the state's URI.
func (s *State) String() string { return s.at.String() }

// shortHash derives a folder name from a text.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

func (s *State) folder(of answers.Scope) objects.Location {
	return s.at.Below("answers/" + shortHash(of.Service+"\x00"+string(of.Operation)) + "/")
}

// Scopes lists the scopes with answers or open calls, by service and operation.
func (s *State) Scopes(ctx context.Context) (scopes []answers.Scope, err error) {
	folders, err := s.scopeFolders(ctx)
	for _, folder := range folders {
		m, err := s.latestIn(ctx, folder)
		if err != nil {
			return nil, err
		}
		if m.Number == 0 {
			continue // its first writer was killed before the first manifest, and so before any change
		}
		scopes = append(scopes, m.Scope)
	}
	slices.SortFunc(scopes, answers.Scope.Compare)
	return scopes, err
}

// scopeFolders lists the folders of all scopes.
func (s *State) scopeFolders(ctx context.Context) (at []objects.Location, err error) {
	under := s.at.Below("answers/")
	_, folders, err := s.store.ListFolder(ctx, under)
	for _, name := range folders {
		at = append(at, under.Below(name))
	}
	return at, err
}

// Claim takes the leases of services. If another process holds one of them, and is not
// one that this one follows, the error is filelock.ErrLocked.
func (s *State) Claim(ctx context.Context, services ...string) (_ lease.All, err error) {
	ctx = context.WithoutCancel(ctx) // a lease is renewed until it is released
	var held lease.All
	defer func() {
		if err != nil {
			err = errors.Join(err, held.Release())
		}
	}()
	slices.Sort(services) // a fixed order, so that two claims cannot block each other
	for _, service := range slices.Compact(services) {
		at := s.leaseOf(service)
		if err := s.removeGone(ctx, at); err != nil {
			return nil, err
		}
		taken, err := s.store.Lock(ctx, at, s.turn.Holder)
		if err != nil {
			return nil, err
		}
		held = append(held, taken)
		if err := taken.RequireConditions(); err != nil {
			return nil, err
		}
	}
	return held, nil
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

// claimFrom is Claim for a run. It waits while the holder of the lease shows no
// sign of life, until the holder does or the lease has expired.
func (s *State) claimFrom(ctx context.Context, name string) (lease.All, error) {
	at, first := s.leaseOf(name), ""
	for {
		l, err := s.Claim(ctx, name)
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

// seal makes a record of the content of an object.
func (s *State) seal(at objects.Location, content []byte) ([]byte, error) {
	return appendlog.Seal(s.sealName(at), content)
}

// sealName is under which name the content of an object is sealed: a state may be copied.
func (s *State) sealName(at objects.Location) string { return strings.TrimPrefix(at.Key, s.at.Key) }

func (s *State) unseal(at objects.Location, sealed []byte) ([]byte, error) {
	content, err := appendlog.Unseal(s.sealName(at), sealed)
	if err != nil {
		err = fmt.Errorf("%s: %w", at, damaged(err))
	}
	return content, err
}

// put writes an object, as one record.
func (s *State) put(ctx context.Context, at objects.Location, content []byte) error {
	sealed, err := s.seal(at, content)
	if err == nil {
		_, err = s.store.Put(ctx, at, objects.ContentOf(sealed, "application/octet-stream"))
	}
	return err
}

// get reads what put has written; fs.ErrNotExist without it, ErrDamaged if it has changed.
func (s *State) get(ctx context.Context, at objects.Location) ([]byte, error) {
	sealed, _, err := s.store.ReadFile(ctx, at)
	if err != nil {
		return nil, damaged(err)
	}
	return s.unseal(at, sealed)
}

func (s *State) readJSON(ctx context.Context, at objects.Location, into any) error {
	data, err := s.get(ctx, at)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %s cannot be read: %w", ErrDamaged, at, err)
	}
	return nil
}

// damaged returns the error for an object that cannot be read, whether or not it has to
// exist.
func damaged(err error) error {
	if !errors.Is(err, ErrDamaged) && (errors.Is(err, objects.ErrChecksum) || errors.Is(err, appendlog.ErrDamaged)) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}
