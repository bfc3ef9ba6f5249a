package objectstate

import (
	"context"
	"path"
	"strings"

	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/objects"
)

// RunFolder has the objects of a run whose steps several processes take, under
// STATE/runs/<id>/. Names are relative to it. It is safe for concurrent use.
type RunFolder struct {
	state *State
	at    objects.Location
	id    string
}

// RunFolder returns the folder of the run that makes the dataset at out. It has
// the same id as the folder of Progress.
func (s *State) RunFolder(out string) *RunFolder {
	if at, err := objects.ParseFolder(out); err == nil { // one spelling
		out = at.String()
	}
	id := shortHash(out)
	return &RunFolder{state: s, at: s.at.Below("runs/" + id + "/"), id: id}
}

// String returns the folder's URI.
func (f *RunFolder) String() string { return f.at.String() }

// ID returns the name of the folder.
func (f *RunFolder) ID() string { return f.id }

// At returns the location of an object.
func (f *RunFolder) At(name string) objects.Location { return f.at.Below(name) }

// Store returns the store that has the folder.
func (f *RunFolder) Store() *objects.Store { return f.state.store }

// Claim keeps other processes from beginning, finishing or running the same
// dataset. It waits for one that may be dead. If one is alive, the error is
// filelock.ErrLocked.
func (f *RunFolder) Claim(ctx context.Context) (lease.All, error) {
	if err := f.state.mark(ctx).Begin(); err != nil {
		return nil, err
	}
	return f.state.claimFrom(ctx, "run "+f.id)
}

// Put writes an object, as one record. Two processes may write the same content.
func (f *RunFolder) Put(ctx context.Context, name string, data []byte) error {
	return f.state.put(ctx, f.At(name), data)
}

// Get reads an object; fs.ErrNotExist without it, ErrDamaged if it has changed.
func (f *RunFolder) Get(ctx context.Context, name string) ([]byte, error) {
	sealed, err := f.state.getListed(ctx, f.At(name))
	if err != nil {
		return nil, err
	}
	return f.state.unseal(f.At(name), sealed)
}

// List returns the names of the objects whose names begin with prefix, sorted.
func (f *RunFolder) List(ctx context.Context, prefix string) (names []string, err error) {
	infos, err := f.state.listAll(ctx, f.At(prefix))
	for _, info := range infos {
		names = append(names, strings.TrimPrefix(info.Key, f.at.Key))
	}
	return names, err
}

// GetAll reads objects, in the order of their names. All of them must exist.
func (f *RunFolder) GetAll(ctx context.Context, names []string) ([][]byte, error) {
	return f.read(ctx, names, func(ctx context.Context, at objects.Location, read func() error) error {
		beside := func() (bool, error) { // a run that has ended removes all its objects
			names, err := f.List(ctx, path.Dir(strings.TrimPrefix(at.Key, f.at.Key))+"/")
			return len(names) > 0, err
		}
		return f.state.await(ctx, beside, func() (objects.Location, error) { return at, read() })
	})
}

// GetSome is GetAll of objects that may not exist, whose content is nil then.
func (f *RunFolder) GetSome(ctx context.Context, names []string) ([][]byte, error) {
	return f.read(ctx, names, unlessMissing)
}

func (f *RunFolder) read(ctx context.Context, names []string, do func(ctx context.Context, at objects.Location, read func() error) error) ([][]byte, error) {
	var infos []objects.Info
	for _, name := range names {
		infos = append(infos, objects.Info{Location: f.At(name)})
	}
	contents, err := f.state.readObjects(ctx, infos, do)
	if err != nil {
		return nil, err
	}
	for i, sealed := range contents {
		if sealed == nil {
			continue
		}
		if contents[i], err = f.state.unseal(infos[i].Location, sealed); err != nil {
			return nil, err
		}
	}
	return contents, nil
}

// Remove removes the objects whose names begin with prefix, and last the object
// named last.
func (f *RunFolder) Remove(ctx context.Context, prefix, last string) error {
	err := f.state.eachBelow(ctx, f.At(prefix), func(ctx context.Context, info objects.Info) error {
		if last != "" && info.Location == f.At(last) {
			return nil
		}
		return f.state.store.Remove(ctx, info.Location)
	})
	if err != nil || last == "" {
		return err
	}
	return f.state.store.Remove(ctx, f.At(last))
}

// Drop removes the objects whose names begin with prefix, except those whose names begin
// with keep.
func (f *RunFolder) Drop(ctx context.Context, prefix, keep string) error {
	return f.state.eachBelow(ctx, f.At(prefix), func(ctx context.Context, info objects.Info) error {
		if strings.HasPrefix(info.Key, f.At(keep).Key) {
			return nil
		}
		return f.state.store.Remove(ctx, info.Location)
	})
}
