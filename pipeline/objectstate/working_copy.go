package objectstate

import (
	"bufio"
	"context"
	"errors"
	"iter"
	"os"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// WorkingCopy is the working copy of a session. It has all open calls, but stored answers
// only after Load. A question that was not loaded would look as if nothing were
// stored, and would be bought again. So looking it up is an error.
type WorkingCopy struct {
	*answers.Store

	session *Session
	dir     string     // of the copy
	all     bool       // everything was loaded
	loaded  *loadedSet // the questions that were loaded; nil if none or all were
}

// ErrNotLoaded means that a question was looked up whose stored answer was not
// loaded. It cannot happen while the input stays the same.
var ErrNotLoaded = errors.New("the input has changed since its stored answers were loaded: it has another identifier now, which is not asked; run the same command again")

// SpentSince is that of all scopes of the state. What their runs pay from now on is not in it.
func (c *WorkingCopy) SpentSince(ctx context.Context, day string) ([]answers.DaySpending, error) {
	ours, err := c.Store.SpentSince(ctx, day)
	if err != nil {
		return nil, err
	}
	others, err := c.session.state.spentSince(ctx, day, c.session.of)
	return append(ours, others...), err
}

// OpenAnywhere lists the open calls of all scopes of the state.
func (c *WorkingCopy) OpenAnywhere(ctx context.Context) iter.Seq2[answers.OpenCall, error] {
	return func(yield func(answers.OpenCall, error) bool) {
		for call, err := range c.Store.OpenAnywhere(ctx) {
			if !yield(call, err) {
				return
			}
		}
		s := c.session.state
		scopes, err := s.Scopes(ctx)
		for _, of := range scopes {
			var calls []answers.OpenCall
			if of != c.session.of && err == nil {
				calls, err = s.OpenCalls(ctx, of)
			}
			for _, call := range calls {
				if !yield(call, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(answers.OpenCall{}, err)
		}
	}
}

// Unloaded is how many stored answers Load can choose from, at most. It is 0 after
// Load.
func (c *WorkingCopy) Unloaded() (answers int64) {
	if c.all || c.loaded != nil {
		return 0
	}
	c.session.sealing.Lock()
	defer c.session.sealing.Unlock()
	return rowsOf(c.session.manifest.Files)
}

// Load copies the stored answers to some questions, or all if some is nil. It is
// called once, before the first change, and may read some twice. Later calls do
// nothing if everything was loaded.
func (c *WorkingCopy) Load(ctx context.Context, some Hashes) error {
	if c.all {
		return nil
	}
	if c.loaded != nil {
		return errors.New("stored answers were loaded before")
	}
	x := c.session
	x.sealing.Lock()
	defer x.sealing.Unlock()
	for {
		err := c.load(ctx, some)
		if err == nil {
			return nil
		}
		// A session that holds no lease may read files that a writer has merged in the
		// meantime. All that was in them is in those of the newest manifest.
		now, other := x.state.latest(ctx, x.of)
		if x.log != nil || other != nil || now.Number == x.manifest.Number {
			return err
		}
		x.manifest = now
	}
}

func (c *WorkingCopy) load(ctx context.Context, some Hashes) (err error) {
	x := c.session
	stored := x.state.sorted(ctx, x.of, x.manifest.Files, true)
	var asked *loadedSet
	if some != nil {
		if asked, err = newLoadedSet(c.dir); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, asked.close())
			}
		}()
		stored = x.state.lookupSorted(ctx, x.of, x.manifest, asked.record(some))
	}
	if err := c.Fill(ctx, x.of, stored); err != nil {
		return err
	}
	changed := false
	shot, err := c.Snapshot(ctx, x.of, 0, func() { changed = x.log != nil && x.log.next != x.log.sealed })
	switch {
	case err != nil:
		return err
	case changed: // they would never be written to files
		return errors.New("stored answers are loaded after the first change")
	}
	if asked != nil {
		if err := asked.w.Flush(); err != nil {
			return err
		}
	}
	x.position, c.all, c.loaded = shot.Position, some == nil, asked
	return nil
}

// Renew writes what was bought to files, and begins a new working copy, into which other
// stored answers are loaded. Nothing uses the copy meanwhile.
func (c *WorkingCopy) Renew(ctx context.Context) error {
	x := c.session
	if x.log != nil {
		x.running.Wait()
		if x.log.ended != nil {
			return x.log.ended
		}
		if err := x.seal(context.WithoutCancel(ctx)); err != nil {
			x.failed = err // its manifest may be there: with another one of its number, this process would seem replaced
			return err
		}
	}
	if err := x.discard(c.dir); err != nil {
		return err
	}
	if x.log == nil {
		fresh, err := x.state.Look(ctx, x.of, c.dir)
		if err != nil {
			return err
		}
		x.manifest, x.position, x.Answers = fresh.manifest, fresh.position, fresh.Answers
	} else if err := x.begin(ctx, c.dir, nil); err != nil {
		x.halfMade = true // a seal would publish that runs have spent nothing
		return err
	}
	*c = *x.Answers
	c.session, x.Answers = x, c
	if x.log != nil {
		x.replicate()
	}
	return nil
}

// Lookup is Store.Lookup. The error is ErrNotLoaded if one of the questions was not
// loaded.
func (c *WorkingCopy) Lookup(ctx context.Context, scope answers.Scope, keys []string, f answers.Freshness, bodies bool, into []answers.Found) ([]answers.Found, error) {
	found, err := c.Store.Lookup(ctx, scope, keys, f, bodies, into)
	if err != nil {
		return nil, err
	}
	hash := scope.Hasher()
	return found, c.check(found[len(into):], func(i int) answers.Hash { return hash([]byte(keys[i])) })
}

// LookupHashes is Store.LookupHashes, with the same error as Lookup.
func (c *WorkingCopy) LookupHashes(ctx context.Context, hashes []answers.Hash, f answers.Freshness, into []answers.Found) ([]answers.Found, error) {
	found, err := c.Store.LookupHashes(ctx, hashes, f, into)
	if err != nil {
		return nil, err
	}
	return found, c.check(found[len(into):], func(i int) answers.Hash { return hashes[i] })
}

// check refuses questions without a fresh answer that were not loaded. The log may
// have brought an answer to a question that was not loaded, and S3 a newer one.
func (c *WorkingCopy) check(found []answers.Found, hash func(i int) answers.Hash) error {
	if c.all {
		return nil
	}
	for i, f := range found {
		if f.Stored && f.Fresh {
			continue
		}
		if known, err := c.loaded.has(hash(i)); err != nil {
			return err
		} else if !known {
			return ErrNotLoaded
		}
	}
	return nil
}

// Close closes the copy.
func (c *WorkingCopy) Close() error { return errors.Join(c.Store.Close(), c.loaded.close()) }

// loadedSet is a file of hashes in ascending order. It takes no memory, however many
// they are. A question that is to be bought is searched in it once: with 10 million,
// that takes some 10 µs.
type loadedSet struct {
	file  *os.File
	w     *bufio.Writer
	count int64
}

func newLoadedSet(dir string) (*loadedSet, error) {
	f, err := atomicfile.Nameless(dir)
	if err != nil {
		return nil, err
	}
	return &loadedSet{file: f, w: bufio.NewWriterSize(f, 1<<18)}, nil
}

// record passes on hashes, and writes them to the file.
func (a *loadedSet) record(some Hashes) Hashes {
	return func(yield func(answers.Hash, error) bool) {
		for h, err := range some {
			if err == nil {
				_, err = a.w.Write(h[:])
				a.count++
			}
			if !yield(h, err) {
				return
			}
		}
	}
}

// has reports whether a hash is in the file.
func (a *loadedSet) has(h answers.Hash) (bool, error) {
	if a == nil {
		return false, nil
	}
	var at answers.Hash
	for low, high := int64(0), a.count; low < high; {
		middle := (low + high) / 2
		if _, err := a.file.ReadAt(at[:], middle*int64(len(at))); err != nil {
			return false, err
		}
		switch order := at.Compare(h); {
		case order == 0:
			return true, nil
		case order < 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return false, nil
}

func (a *loadedSet) close() error {
	if a == nil {
		return nil
	}
	return a.file.Close()
}
