// Package objectstate keeps a state on S3: the answers that runs have bought.
//
// The one thing to know before using it: no object is ever changed. What counts
// is what the newest manifest of a scope names, and a new manifest is created
// under the next number, which a store gives to one writer only. So readers need
// no lock, and see one moment.
//
// # For operators
//
//	STATE/lease/<service>.json          who writes about a service now
//	STATE/answers/<scope>/scope.json    the service and operation
//	STATE/answers/<scope>/v/<n>.json    manifest n; the highest number counts
//	STATE/answers/<scope>/f/*.parquet   answers, sorted by the hash of their question
//	STATE/answers/<scope>/c/*.jsonl     all calls without an answer
//
// All but the manifests and leases hold personal data: the keys that were asked
// about, and the answers as they were received.
package objectstate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// ErrDamaged says that an object is missing or is not what a manifest says.
var ErrDamaged = errors.New("the state on S3 is damaged")

// State is a state on S3. It is safe for many goroutines.
type State struct {
	store *objects.Store
	at    objects.Location // ends in a slash
	// writer names this process in what it creates, so that no other creates the
	// same object.
	writer string
	// Scratch is the folder for temporary files; empty is the system's.
	Scratch string
	// rowsPerFile and rowsPerGroup are the sizes at which files of answers and
	// their row groups end; tests lower them.
	rowsPerFile, groupBytes int
	// The log is put into files when it has sealSegments or sealBytes, so that the
	// next process has little to read.
	sealSegments, sealBytes int64
	// pollEvery is how often a lease is looked at that another process has.
	pollEvery time.Duration
}

// Open is the state at a URI, s3://bucket/prefix/. Nothing is read yet.
func Open(store *objects.Store, uri string) (*State, error) {
	at, err := objects.ParseFolder(uri)
	if err != nil {
		return nil, err
	}
	return &State{
		store: store, at: at, writer: uuid.NewString(), rowsPerFile: 1 << 20, groupBytes: 8 << 20,
		sealSegments: 5000, sealBytes: 64 << 20, pollEvery: 5 * time.Second,
	}, nil
}

// String is the state's URI.
func (s *State) String() string { return s.at.String() }

// shortHash names a folder after what it is about.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

func (s *State) folder(of answers.Scope) objects.Location {
	return s.at.Below("answers/" + shortHash(of.Service+"\x00"+string(of.Operation)) + "/")
}

// scopeFile is scope.json.
type scopeFile struct {
	Service   string `json:"service"`
	Operation string `json:"operation"`
}

// Scopes lists the scopes with answers or open calls, by service and operation.
func (s *State) Scopes(ctx context.Context) (scopes []answers.Scope, err error) {
	under := s.at.Below("answers/")
	_, folders, err := s.store.ListFolder(ctx, under)
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		at := under.Below(folder + "scope.json")
		var f scopeFile
		if err := s.readJSON(ctx, at, &f); err != nil {
			return nil, err
		}
		of := answers.Scope{Service: f.Service, Operation: operation(f.Operation)}
		if s.folder(of) != under.Below(folder) {
			return nil, fmt.Errorf("%w: %s is about another folder", ErrDamaged, at)
		}
		scopes = append(scopes, of)
	}
	slices.SortFunc(scopes, func(a, b answers.Scope) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Operation, b.Operation))
	})
	return scopes, nil
}

// Lease keeps other writers about some services away.
type Lease struct{ locks []*objects.Lock }

// Claim takes the leases of services. A service that another process writes
// about is filelock.ErrLocked.
func (s *State) Claim(ctx context.Context, services ...string) (_ *Lease, err error) {
	ctx = context.WithoutCancel(ctx) // a lease is renewed until it is released
	l := &Lease{}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Release(ctx))
		}
	}()
	slices.Sort(services) // two that want the same do not each get one
	for _, service := range slices.Compact(services) {
		at := s.leaseOf(service)
		gone, err := s.store.HolderGone(ctx, at)
		if err != nil {
			return nil, err
		}
		lock, err := s.store.Lock(ctx, at, cmp.Or(gone, s.writer))
		if err != nil {
			return nil, err
		}
		l.locks = append(l.locks, lock)
		if err := lock.RequireConditions(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// claimFrom is Claim for a run, which waits while the process that has the lease
// gives no sign of life: until it does, or the lease has expired.
func (s *State) claimFrom(ctx context.Context, name string) (*Lease, error) {
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

// Check makes sure that the lease is still ours.
func (l *Lease) Check(ctx context.Context) error {
	for _, lock := range l.locks {
		if err := lock.Check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Release gives the lease back.
func (l *Lease) Release(ctx context.Context) error {
	var errs []error
	for _, lock := range l.locks {
		errs = append(errs, lock.Release(ctx))
	}
	return errors.Join(errs...)
}

func (s *State) readJSON(ctx context.Context, at objects.Location, into any) error {
	data, _, err := s.store.ReadFile(ctx, at)
	if err != nil {
		return s.missing(at, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %s cannot be read: %w", ErrDamaged, at, err)
	}
	return nil
}

// missing is an error of reading an object that has to be there.
func (s *State) missing(at objects.Location, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s is missing", ErrDamaged, at)
	}
	return err
}
