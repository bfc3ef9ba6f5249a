package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path/filepath"
	"time"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/longlock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/internal/store/folder"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/objectstate"
)

// State has the unfinished runs of a state, and its lists of finished datasets:
//
//	STATE/format.json           the number of the format of all that follows
//	STATE/nights/<job>          the finished datasets of a job, in their order
//	STATE/runs/<id>/journal/    the journal of an unfinished dataset
//	STATE/runs/<id>/beside/     small files of that run
//
// It is safe for concurrent use.
type State struct {
	files store.Store
	mark  func() error // makes sure once that the state is marked with its format
	// claim keeps other processes from a run.
	claim func(ctx context.Context, id string) (lease.Lease, error)
	// turn waits for other processes that change the nights.
	turn func(ctx context.Context) (lease.Lease, error)
}

// InFolder is the State in a folder.
func InFolder(root disk.Folder) *State { return In(folder.Private(root)) }

// In is the State in a store of one machine. Who has locked a dataset is alone with its run.
func In(files store.Store) *State {
	s := newState(files)
	s.claim = func(context.Context, string) (lease.Lease, error) { return lease.All(nil), nil }
	s.turn = s.lockNights
	return s
}

// OnS3 is the State on S3. Of two processes that change nights at the same moment the later one wins.
func OnS3(of *objectstate.State) *State {
	s := newState(of.Files())
	s.claim = func(ctx context.Context, id string) (lease.Lease, error) { return of.ClaimRun(ctx, id) }
	s.turn = func(context.Context) (lease.Lease, error) { return lease.All(nil), nil }
	return s
}

func newState(files store.Store) *State {
	return &State{files: files, mark: longlock.Once(func() error { return markOf(files).Begin() })}
}

// CheckFormat refuses a state with another format than that of this program.
func (s *State) CheckFormat() error { return markOf(s.files).Check() }

// markOf is the mark of a state.
func markOf(files store.Store) format.Mark {
	ctx, m := context.Background(), answers.StateMark(files.String())
	m.Get = func() ([]byte, error) { return files.Read(ctx, format.MarkName) }
	m.Put = func(text []byte) error { return files.Put(ctx, format.MarkName, text) }
	m.Holds = func() (bool, error) {
		for _, name := range answers.MarkedFolders {
			entries, err := files.Entries(ctx, name)
			if len(entries) > 0 || err != nil && !store.IsMissing(err) {
				return len(entries) > 0, err
			}
		}
		return false, nil
	}
	return m
}

// lockNights waits for some seconds.
func (s *State) lockNights(ctx context.Context) (held lease.Lease, err error) {
	for range 500 {
		if held, err = s.files.Lease(ctx, nightsFolder, store.Holder{}); !errors.Is(err, filelock.ErrLocked) {
			return held, err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, err
}

// DatasetName is what tells a dataset from others: the URI of one on S3 in one spelling, else
// the absolute path.
func DatasetName(out string) (string, error) {
	if at, err := objects.ParseFolder(out); err == nil || objects.Is(out) {
		return at.String(), err
	}
	return filepath.Abs(out)
}

// hashOf derives a file name from a text.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
