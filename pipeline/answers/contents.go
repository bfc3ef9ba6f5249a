package answers

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"

	"github.com/leadetl/leadetl/internal/appendlog"
)

// Contents is what a store held at one moment.
type Contents struct {
	// InUse means that a process had the store open: calls may be under way.
	InUse bool

	files *fileSet
	parts []*Contents        // of several places, whose files are in files
	days  []DaySpending      // without those of later
	runs  []runTotal         // without those of later
	calls map[Hash]*OpenCall // with those of later
	later *generation        // what no file has
}

// Contents writes all changes to files, and returns the content of the
// store. The store may be used at the same time.
func (s *recent) Contents() (*Contents, error) {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	if err := s.flushLocked(); err != nil {
		return nil, err
	}
	set, err := s.acquire()
	if err != nil {
		return nil, err
	}
	s.memtable.mu.RLock()
	defer s.memtable.mu.RUnlock()
	c := &Contents{InUse: true, files: set, days: slices.Clone(s.newest().Days), calls: maps.Clone(s.memtable.calls), later: newGeneration(0)}
	if s.options.Look {
		c.later = s.memtable.current.clone()
	}
	return c, nil
}

// maxLooks is how often OpenContents tries again if changes move into files
// while it reads.
const maxLooks = 20

// OpenContents reads the answers in places while another process may have them
// open. It changes nothing, so it works with a full disk or a read-only folder. It
// returns what was in each at one moment during the call.
func OpenContents(ctx context.Context, places ...Place) (*Contents, error) {
	return openContents(ctx, places, nil)
}

// openContents is OpenContents, but for places that are open here.
func openContents(ctx context.Context, places []Place, open map[string]*Stored) (_ *Contents, err error) {
	all := &Contents{files: &fileSet{}, calls: map[Hash]*OpenCall{}, later: newGeneration(0)}
	for _, p := range places {
		var c *Contents
		if stored := open[p.String()]; stored != nil {
			c, err = stored.Contents()
		} else {
			c, err = lookInto(ctx, p)
		}
		if errors.Is(err, ErrNone) && len(places) > 1 { // its first writer was killed before the first manifest, and so before any change
			continue
		}
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		if len(places) == 1 {
			return c, nil
		}
		all.add(c)
	}
	return all, nil
}

// add adds what another place has. No question is in two.
func (c *Contents) add(more *Contents) {
	c.InUse = c.InUse || more.InUse
	c.parts = append(c.parts, more)
	c.files.files = append(c.files.files, more.files.files...)
	for _, d := range more.days {
		c.days = addDay(c.days, d)
	}
	maps.Copy(c.calls, more.calls)
	c.later.add(more.later)
}

// lookInto reads what is in a place.
func lookInto(ctx context.Context, p Place) (c *Contents, err error) {
	for range maxLooks {
		var seen int64
		c, seen, err = readContents(ctx, p)
		if err == nil || !errors.Is(err, appendlog.ErrDamaged) || ctx.Err() != nil {
			return c, err
		}
		// A process that is at work may have moved changes into files, or the log may have grown while it was
		// read.
		if changed, other := p.mayHaveChanged(ctx, seen); other != nil || !changed {
			break
		}
	}
	return nil, err
}

// mayHaveChanged reports whether another process may have changed what was read since a manifest was the
// newest one.
func (p Place) mayHaveChanged(ctx context.Context, seen int64) (bool, error) {
	if !p.isShared() {
		return p.isInUse()
	}
	now, err := newest(ctx, p)
	return err == nil && now.Number > seen, err
}

func readContents(ctx context.Context, p Place) (_ *Contents, seen int64, err error) {
	m, err := newest(ctx, p)
	if err != nil {
		return nil, 0, err
	}
	c := &Contents{days: m.Days, runs: m.Runs, calls: map[Hash]*OpenCall{}, later: newGeneration(0)}
	if c.files, err = openFiles(ctx, p, m, nil); err != nil {
		return nil, m.Number, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if c.later, err = readGeneration(ctx, p.newLog(Options{}), m.Log); err != nil {
		return nil, m.Number, damaged(err)
	}
	stored, err := c.files.readCalls()
	if err != nil {
		return nil, m.Number, damaged(err)
	}
	for _, call := range stored {
		c.calls[call.Hash] = call
	}
	for h, call := range c.later.calls {
		if c.calls[h] = call; call == nil {
			delete(c.calls, h)
		}
	}
	c.InUse, err = p.isInUse()
	return c, m.Number, err
}

// Calls returns all open calls, ordered by their hashes. A call that was under
// way when its process died is unknown.
func (c *Contents) Calls(context.Context) (open []OpenCall, err error) {
	if len(c.parts) == 0 {
		open, err = c.ownCalls()
	}
	for _, part := range c.parts {
		if err == nil {
			var more []OpenCall
			more, err = part.ownCalls()
			open = append(open, more...)
		}
	}
	slices.SortFunc(open, byHash)
	return open, err
}

// ownCalls are the calls of one place.
func (c *Contents) ownCalls() (open []OpenCall, err error) {
	for h, call := range c.calls {
		one := *call
		body, later := c.later.bodies[h]
		if !later {
			if body, err = c.files.bodyOf(h); err != nil {
				return nil, damaged(err)
			}
		}
		one.Body = body
		if !c.InUse {
			one = *one.abandoned()
		}
		open = append(open, one)
	}
	return open, nil
}

// Sorted lists the answers of one scope, with bodies, ordered by their hashes.
func (c *Contents) Sorted(ctx context.Context, of Scope) iter.Seq2[Item, error] {
	return c.List(ctx, Filter{Service: of.Service, Operation: of.Operation, Bodies: true})
}

// Kept is an answer as a file or the log has it.
type Kept struct {
	Item
	File string // empty for the log
}

// All lists every answer with its body, also those that another file or the log replaces.
func (c *Contents) All(ctx context.Context) iter.Seq2[Kept, error] {
	return func(yield func(Kept, error) bool) {
		for _, file := range c.files.files {
			for i, err := range each(ctx, []*dataFile{file}, true) {
				if !yield(Kept{i, file.Name}, err) || err != nil {
					return
				}
			}
		}
		for _, i := range c.later.sorted() {
			if !yield(Kept{*i, ""}, nil) {
				return
			}
		}
	}
}

// DataFile is a file of answers or calls.
type DataFile struct {
	Name        string
	Rows, Bytes int64
	Checksum    uint32 // CRC-32C of what is recorded of its pages
}

// Files lists the files that count.
func (c *Contents) Files() (all []DataFile) {
	for f := range c.files.each() {
		all = append(all, DataFile{f.Name, f.fileRecord.Rows, f.Bytes, f.fileRecord.Checksum})
	}
	return all
}

// OpenCalls lists the open calls of one scope, ordered by their hashes.
func (c *Contents) OpenCalls(ctx context.Context, of Scope) ([]OpenCall, error) {
	calls, err := c.Calls(ctx)
	return slices.DeleteFunc(calls, func(call OpenCall) bool { return call.Scope != of }), err
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
func (c *Contents) Close() error {
	if len(c.parts) == 0 {
		return c.files.release()
	}
	var errs []error
	for _, part := range c.parts {
		errs = append(errs, part.Close())
	}
	return errors.Join(errs...)
}
