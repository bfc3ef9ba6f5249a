package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/objectstate"
)

// OpenObjectState returns a state on S3, unless it is in another format.
func OpenObjectState(ctx context.Context, uri string, flags *S3, std cli.Streams) (*objectstate.State, error) {
	store, err := flags.Open(ctx, std.Log())
	if err != nil {
		return nil, cli.UsageError(err)
	}
	state, err := objectstate.Open(store, uri)
	if err != nil {
		return nil, cli.UsageError(err)
	}
	return state, journal.OnS3(state).CheckFormat()
}

// StateOnS3 returns the state of --state on S3, unless it is in another format.
func StateOnS3(store *objects.Store, uri string) (*objectstate.State, error) {
	state, err := objectstate.Open(store, uri)
	if err != nil {
		return nil, cli.UsageError(fmt.Errorf("--state: %w", err))
	}
	return state, journal.OnS3(state).CheckFormat()
}

// State is the state of a run. A state on S3 has a working folder that is
// removed at the end.
type State struct {
	Folder  string
	Objects *objectstate.State // nil: the state is Folder
}

// Runs are the unfinished runs and finished datasets of the state.
func (s State) Runs() *journal.State {
	if s.Objects != nil {
		return journal.OnS3(s.Objects)
	}
	return journal.InFolder(disk.Dir(s.Folder))
}

// OpenState opens the state in a folder or on S3, unless it is in another format. It checks
// a folder as CheckRunState does.
func OpenState(ctx context.Context, uri string, store *objects.Store) (s State, closeState func() error, err error) {
	if !objects.Is(uri) {
		return State{Folder: uri}, func() error { return nil }, CheckRunState(uri)
	}
	if s.Objects, err = StateOnS3(store, uri); err != nil {
		return s, nil, err
	}
	s.Objects.Waits = true
	removeAbandoned()
	if s.Folder, err = os.MkdirTemp("", workPattern); err != nil {
		return s, nil, fmt.Errorf("a folder to work in: %w; TMPDIR names another place", err)
	}
	lock, err := filelock.Folder(s.Folder)
	if err != nil {
		return s, nil, errors.Join(err, os.RemoveAll(s.Folder))
	}
	s.Objects.Scratch = s.Folder
	return s, func() error { return errors.Join(os.RemoveAll(s.Folder), lock.Release()) }, nil
}

// workPattern is the name pattern of working folders of runs, readPattern that
// of commands that read answers.
const (
	workPattern = "leadetl-state-*"
	readPattern = "leadetl-answers-*"
)

// removeAbandoned removes the working folders of killed processes, because they
// hold personal data. It ignores folders that it cannot remove: they belong to
// others.
func removeAbandoned() {
	work, _ := filepath.Glob(filepath.Join(os.TempDir(), workPattern))
	read, _ := filepath.Glob(filepath.Join(os.TempDir(), readPattern))
	for _, folder := range append(work, read...) {
		info, err := os.Stat(folder)
		if err != nil || time.Since(info.ModTime()) < time.Minute { // its process may be about to lock it
			continue
		}
		if lock, err := filelock.Folder(folder); err == nil {
			_ = errors.Join(os.RemoveAll(folder), lock.Release())
		}
	}
}
