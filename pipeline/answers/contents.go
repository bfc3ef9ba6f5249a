package answers

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
)

// Contents is what a store held at one moment.
type Contents struct {
	// InUse means that a process had the store open: calls may be under way.
	InUse bool

	files *fileSet
	days  []DaySpending      // without those of later
	calls map[Hash]*OpenCall // with those of later
	later *generation        // what no file has
}

// Contents writes all changes to files, and returns the content of the
// store. The store may be used at the same time.
func (s *Store) Contents() (*Contents, error) {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	if err := s.flushLocked(); err != nil {
		return nil, err
	}
	set, err := s.acquire()
	if err != nil {
		return nil, err
	}
	s.mem.mu.RLock()
	defer s.mem.mu.RUnlock()
	return &Contents{InUse: true, files: set, days: slices.Clone(s.newest().Days), calls: maps.Clone(s.mem.calls), later: newGeneration(0)}, nil
}

// maxLooks is how often OpenContents tries again if changes move into files
// while it reads.
const maxLooks = 20

// OpenContents reads the answers in dir while another process may have them
// open. It changes nothing, so it works with a full disk or a read-only folder. It
// returns what was on disk at one moment during the call. Of options only Disk counts.
func OpenContents(ctx context.Context, dir string, o Options) (c *Contents, err error) {
	in := o.folder(dir)
	for range maxLooks {
		c, err = readContents(in)
		if err == nil || !errors.Is(err, appendlog.ErrDamaged) || ctx.Err() != nil {
			return c, err
		}
		// A process that is at work may have moved changes into files, or the log may have grown while it was
		// read.
		if inUse, other := isInUse(in); other != nil || !inUse {
			break
		}
	}
	return nil, err
}

// isInUse reports whether a process holds a folder.
func isInUse(in disk.Folder) (bool, error) {
	if dir, real := in.(disk.Dir); real {
		return filelock.InUse(string(dir))
	}
	lock, err := in.Lock()
	if errors.Is(err, filelock.ErrLocked) {
		return true, nil
	}
	if err == nil {
		err = lock.Release()
	}
	return false, err
}

func readContents(in disk.Folder) (_ *Contents, err error) {
	m, err := newest(in)
	if err != nil {
		return nil, err
	}
	c := &Contents{days: m.Days, calls: map[Hash]*OpenCall{}, later: newGeneration(0)}
	if c.files, err = openFiles(in, m, nil); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	logs, _, err := readLogs(in, m.Log)
	if err != nil {
		return nil, damaged(err)
	}
	for _, g := range logs {
		c.later.add(g)
	}
	stored, err := c.files.readCalls()
	if err != nil {
		return nil, damaged(err)
	}
	for _, call := range stored {
		c.calls[call.Hash] = call
	}
	for h, call := range c.later.calls {
		if c.calls[h] = call; call == nil {
			delete(c.calls, h)
		}
	}
	c.InUse, err = isInUse(in)
	return c, err
}

// Calls returns all open calls, ordered by their hashes. A call that was under
// way when its process died is unknown.
func (c *Contents) Calls(context.Context) (open []OpenCall, err error) {
	for h, call := range c.calls {
		one := *call
		body, later := c.later.bodies[h]
		if !later {
			if body, err = c.files.bodyOf(h); err != nil {
				return nil, damaged(err)
			}
		}
		one.Body = body
		if one.State == UnderWay && !c.InUse {
			one.State = Unknown
		}
		open = append(open, one)
	}
	slices.SortFunc(open, byHash)
	return open, nil
}

// Scopes lists the scopes of all answers and calls, in order.
func (c *Contents) Scopes(context.Context) (all []Scope, err error) {
	found := map[Scope]bool{}
	for _, f := range c.files.files {
		for _, t := range f.Scopes {
			found[t.Scope] = true
		}
	}
	for _, i := range c.later.answers {
		found[i.Scope] = true
	}
	for _, call := range c.calls {
		found[call.Scope] = true
	}
	for _, d := range c.days {
		found[d.Scope] = true
	}
	return slices.SortedFunc(maps.Keys(found), Scope.Compare), nil
}

// Unknown lists the calls that may have been billed and have no answer, ordered
// by their hashes.
func (c *Contents) Unknown(ctx context.Context) iter.Seq2[OpenCall, error] {
	return c.callsIn(ctx, Unknown)
}

// Parked lists the calls whose answers come later, ordered by their hashes.
func (c *Contents) Parked(ctx context.Context) iter.Seq2[OpenCall, error] {
	return c.callsIn(ctx, Parked)
}

func (c *Contents) callsIn(ctx context.Context, state State) iter.Seq2[OpenCall, error] {
	return func(yield func(OpenCall, error) bool) {
		open, err := c.Calls(ctx)
		if err != nil {
			yield(OpenCall{}, err)
			return
		}
		for _, call := range open {
			if call.State == state && !yield(call, nil) {
				return
			}
		}
	}
}

// Close closes the files.
func (c *Contents) Close() error { return c.files.release() }
