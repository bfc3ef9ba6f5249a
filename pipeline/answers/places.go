package answers

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/internal/store/folder"
)

// Place is where answers are kept: in a folder of this machine, or elsewhere.
type Place struct {
	store.Store
	// disk is the folder of the Store on a disk, where the log is a file that grows, and only who holds the
	// lease writes. Else it is nil: the log has a file for each group, and another process may believe that
	// it holds the lease.
	disk disk.Folder
	// scratch is a folder of the file system for temporary files; "" is that of the system.
	scratch string
	writer  string // in the names of files, so that two processes never write the same one
	lease   func(ctx context.Context) (lease.Lease, error)
}

// InFolder is a folder at a path.
func InFolder(dir string) Place { return On(disk.Dir(dir)) }

// On is a folder on a disk.
func On(in disk.Folder) Place {
	files := folder.Private(in)
	files.SumLater = true // a manifest has another checksum of each file
	p := Place{Store: files, disk: in, lease: func(ctx context.Context) (lease.Lease, error) { return files.Lease(ctx, "", store.Holder{}) }}
	if dir, real := in.(disk.Dir); real {
		p.scratch = string(dir)
	}
	return p
}

// Elsewhere is any other store. Who opens it takes the lease; temporary files are in the folder scratch.
func Elsewhere(files store.Store, scratch string, lease func(ctx context.Context) (lease.Lease, error)) Place {
	return Place{Store: files, scratch: scratch, writer: uuid.NewString()[:8], lease: lease}
}

// isShared reports whether others may read and write at the same time.
func (p Place) isShared() bool { return p.disk == nil }

// keptUnnamed is how long a file that does not count any more is kept in a shared place: who began to read
// earlier may need it.
const keptUnnamed = 24 * time.Hour

// isInUse reports whether a process has the folder open. Of a shared place that is not known.
func (p Place) isInUse() (bool, error) {
	if p.isShared() {
		return false, nil
	}
	if dir, real := p.disk.(disk.Dir); real {
		return filelock.InUse(string(dir))
	}
	lock, err := p.disk.Lock()
	if errors.Is(err, filelock.ErrLocked) {
		return true, nil
	}
	if err == nil {
		err = lock.Release()
	}
	return false, err
}

// newLog is the log of the place.
func (p Place) newLog(o Options) changeLog {
	if p.isShared() {
		return &segmentLog{in: p, bytes: o.LogBytes, segments: o.Segments, log: store.NewLog(p, logFolder)}
	}
	return &fileLog{in: p.disk, files: p.Store, bytes: o.LogBytes, allowed: map[string]runTotal{}}
}

// Places say where a state keeps its answers: a folder keeps all in one place, S3 those of each service in its own.
type Places interface {
	// Of is the place of the answers of a service.
	Of(service string) Place
	// All lists the places in which answers were begun.
	All(ctx context.Context) ([]Place, error)
}

// Alone are the Places of a state that has one.
type Alone struct{ Place }

// Of is that of Places.
func (a Alone) Of(string) Place { return a.Place }

// All is that of Places.
func (a Alone) All(ctx context.Context) ([]Place, error) {
	if !Exist(ctx, a.Place) {
		return nil, nil
	}
	return []Place{a.Place}, nil
}

// Stores are the answers of a state. Each place is opened when it is first needed, and stays open until Close. One
// goroutine uses it at a time.
type Stores struct {
	places  Places
	options Options
	open    map[string]*Stored // by place
}

var _ Keeper = (*Stores)(nil)

// NewStores opens nothing yet.
func NewStores(places Places, o Options) *Stores {
	return &Stores{places: places, options: o, open: map[string]*Stored{}}
}

// Stored is an open place of a state.
type Stored struct {
	*Store
	of *Stores
}

// Of returns the store with the answers of a service.
func (s *Stores) Of(ctx context.Context, service string) (*Stored, error) {
	return s.at(ctx, s.places.Of(service))
}

func (s *Stores) at(ctx context.Context, p Place) (*Stored, error) {
	if open := s.open[p.String()]; open != nil {
		return open, nil
	}
	opened, err := Open(ctx, p, s.options)
	if err != nil {
		return nil, err
	}
	stored := &Stored{opened, s}
	s.open[p.String()] = stored
	return stored, nil
}

// All opens all places in which answers were begun.
func (s *Stores) All(ctx context.Context) (all []*Stored, err error) {
	places, err := s.places.All(ctx)
	for _, p := range places {
		stored, err := s.at(ctx, p)
		if err != nil {
			return nil, err
		}
		all = append(all, stored)
	}
	return all, err
}

// Contents are those of all places. What is not open here may be in use by another process.
func (s *Stores) Contents(ctx context.Context) (*Contents, error) {
	places, err := s.places.All(ctx)
	if err != nil {
		return nil, err
	}
	return openContents(ctx, places, s.open)
}

// Scopes are those of all places.
func (s *Stores) Scopes(ctx context.Context) ([]Scope, error) {
	c, err := s.Contents(ctx)
	if err != nil {
		return nil, err
	}
	scopes, err := c.Scopes(ctx)
	return scopes, errors.Join(err, c.Close())
}

// Sorted is that of Store.
func (s *Stores) Sorted(ctx context.Context, of Scope) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		stored, err := s.Of(ctx, of.Service)
		if err != nil {
			yield(Item{}, err)
			return
		}
		stored.Sorted(ctx, of)(yield)
	}
}

// OpenCalls is that of Store.
func (s *Stores) OpenCalls(ctx context.Context, of Scope) ([]OpenCall, error) {
	stored, err := s.Of(ctx, of.Service)
	if err != nil {
		return nil, err
	}
	return stored.OpenCalls(ctx, of)
}

// Take is that of Store.
func (s *Stores) Take(ctx context.Context, of Scope, items iter.Seq2[Item, error], calls []OpenCall) (Taken, error) {
	stored, err := s.Of(ctx, of.Service)
	if err != nil {
		return Taken{}, err
	}
	return stored.Take(ctx, of, items, calls)
}

// Close closes all stores.
func (s *Stores) Close() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.open)) {
		errs = append(errs, s.open[name].Close())
	}
	clear(s.open)
	return errors.Join(errs...)
}

// Scopes are those of the whole state.
func (s *Stored) Scopes(ctx context.Context) ([]Scope, error) { return s.of.Scopes(ctx) }

// SpentSince is that of the whole state. What other processes pay from now on is not in it.
func (s *Stored) SpentSince(ctx context.Context, day string) ([]DaySpending, error) {
	if others, err := s.others(ctx); err != nil || others == nil {
		return s.Store.SpentSince(ctx, day)
	}
	c, err := s.of.Contents(ctx)
	if err != nil {
		return nil, err
	}
	days, err := c.SpentSince(ctx, day)
	return days, errors.Join(err, c.Close())
}

// OpenAnywhere lists the open calls of the whole state.
func (s *Stored) OpenAnywhere(ctx context.Context) iter.Seq2[OpenCall, error] {
	return func(yield func(OpenCall, error) bool) {
		for c, err := range s.Store.OpenAnywhere(ctx) {
			if !yield(c, err) {
				return
			}
		}
		others, err := s.others(ctx)
		if err != nil {
			yield(OpenCall{}, err)
			return
		}
		c, err := openContents(ctx, others, s.of.open)
		if errors.Is(err, ErrNone) {
			return
		}
		if err != nil {
			yield(OpenCall{}, err)
			return
		}
		defer c.Close() // closing what was read cannot lose anything
		for _, calls := range []iter.Seq2[OpenCall, error]{c.Unknown(ctx), c.Parked(ctx)} {
			for call, err := range calls {
				if !yield(call, err) {
					return
				}
			}
		}
	}
}

// others are the other places of the state.
func (s *Stored) others(ctx context.Context) ([]Place, error) {
	all, err := s.of.places.All(ctx)
	return slices.DeleteFunc(all, func(p Place) bool { return p.String() == s.in.String() }), err
}
