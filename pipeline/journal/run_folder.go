package journal

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/store"
)

const runsFolder = "runs/"

// RunFolder has the files of a run, whose steps several processes may take, under
// STATE/runs/<id>/. Names are relative to it. It is safe for concurrent use.
type RunFolder struct {
	state  *State
	id     string
	folder string // in the state, with a slash at the end
}

// RunFolder returns the folder of the run that makes the dataset at out. It touches nothing.
func (s *State) RunFolder(out string) (*RunFolder, error) {
	name, err := DatasetName(out)
	return s.runFolder(hashOf(name)), err
}

func (s *State) runFolder(id string) *RunFolder {
	return &RunFolder{state: s, id: id, folder: runsFolder + id + "/"}
}

// String is the path or URI of the folder.
func (f *RunFolder) String() string { return f.state.files.Path(f.folder) }

// ID returns the name of the folder.
func (f *RunFolder) ID() string { return f.id }

// Path is the path or URI of a file.
func (f *RunFolder) Path(name string) string { return f.state.files.Path(f.folder + name) }

// Claim keeps other processes from beginning, finishing or running the same
// dataset. It waits for one that may be dead. If one is alive, the error is
// filelock.ErrLocked.
func (f *RunFolder) Claim(ctx context.Context) (lease.Lease, error) {
	if err := f.state.mark(); err != nil {
		return nil, err
	}
	return f.state.claim(ctx, f.id)
}

// Put writes a file, as one record. Two processes may write the same content.
func (f *RunFolder) Put(ctx context.Context, name string, data []byte) error {
	if err := f.state.mark(); err != nil {
		return err
	}
	return store.PutSealed(ctx, f.state.files, f.folder+name, data)
}

// Get reads a file; fs.ErrNotExist without it, appendlog.ErrDamaged if it has changed.
func (f *RunFolder) Get(ctx context.Context, name string) ([]byte, error) {
	return store.ReadListed(ctx, f.state.files, f.folder+name)
}

// Has reports whether a file is there.
func (f *RunFolder) Has(ctx context.Context, name string) (bool, error) {
	o, err := f.state.files.Open(ctx, f.folder+name)
	if store.IsMissing(err) {
		return false, nil
	}
	if err == nil {
		err = o.Close()
	}
	return err == nil, err
}

// List returns the names of the files whose names begin with prefix, sorted, without those that are
// unfinished or set aside.
func (f *RunFolder) List(ctx context.Context, prefix string) (names []string, err error) {
	for info, err := range f.state.files.List(ctx, f.folder+prefix) {
		if err != nil {
			return nil, err
		}
		if !store.IsUnfinished(info.Name) && !strings.HasSuffix(info.Name, store.DamagedSuffix) {
			names = append(names, strings.TrimPrefix(info.Name, f.folder))
		}
	}
	return names, nil
}

// GetAll reads files, in the order of their names. All of them must exist.
func (f *RunFolder) GetAll(ctx context.Context, names []string) ([][]byte, error) {
	return f.read(ctx, names, func(ctx context.Context, name string, read func() error) error {
		beside := func() (bool, error) { // a run that has ended removes all its files
			names, err := f.List(ctx, path.Dir(name)+"/")
			return len(names) > 0, err
		}
		return store.AwaitSealed(ctx, f.state.files, f.folder+name, beside, read)
	})
}

// GetSome is GetAll of files that may not exist, whose content is nil then.
func (f *RunFolder) GetSome(ctx context.Context, names []string) ([][]byte, error) {
	return f.read(ctx, names, func(_ context.Context, _ string, read func() error) error {
		err := read()
		if store.IsMissing(err) && !errors.Is(err, appendlog.ErrDamaged) {
			err = nil
		}
		return err
	})
}

func (f *RunFolder) read(ctx context.Context, names []string, do func(ctx context.Context, name string, read func() error) error) ([][]byte, error) {
	contents := make([][]byte, len(names))
	err := store.Each(ctx, names, func(ctx context.Context, i int) error {
		return do(ctx, names[i], func() (err error) {
			contents[i], err = store.ReadSealed(ctx, f.state.files, f.folder+names[i])
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return contents, nil
}

// Remove removes the files whose names begin with prefix, and last the file
// named last.
func (f *RunFolder) Remove(ctx context.Context, prefix, last string) error {
	err := f.removeUnless(ctx, prefix, func(name string) bool { return name == last })
	if err != nil || last == "" {
		return err
	}
	return f.state.files.Remove(ctx, f.folder+last)
}

// Drop removes the files whose names begin with prefix, except those whose names begin
// with keep.
func (f *RunFolder) Drop(ctx context.Context, prefix, keep string) error {
	return f.removeUnless(ctx, prefix, func(name string) bool { return strings.HasPrefix(name, keep) })
}

func (f *RunFolder) removeUnless(ctx context.Context, prefix string, stays func(name string) bool) error {
	var names []string
	for info, err := range f.state.files.List(ctx, f.folder+prefix) {
		if err != nil {
			return err
		}
		if !stays(strings.TrimPrefix(info.Name, f.folder)) {
			names = append(names, info.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return f.state.files.Remove(ctx, names...)
}
