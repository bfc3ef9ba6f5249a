package objectstate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/objects"
)

// Progress stores the journal of an unfinished dataset in numbered objects,
// journal/<n>. The journal starts at the last object that begins one,
// and includes all later objects. Small files of the run are in beside/.
type Progress struct {
	folder *RunFolder
	ctx    context.Context // never cancelled
	lease  lease.All       // nil: nothing is written
	next   int64           // number of the next object
}

// Progress opens the progress of the dataset at out. Without look, no other
// process can write to it until Release; if another process works on the
// dataset, the error is filelock.ErrLocked.
func (s *State) Progress(ctx context.Context, out string, look bool) (*Progress, error) {
	p := &Progress{folder: s.RunFolder(out), ctx: context.WithoutCancel(ctx)}
	if look {
		return p, nil
	}
	var err error
	p.lease, err = p.folder.Claim(ctx)
	return p, err
}

// Release lets other processes work on the dataset.
func (p *Progress) Release() error {
	return p.lease.Release()
}

// Close does nothing.
func (p *Progress) Close() error { return nil }

// String names the journal for messages.
func (p *Progress) String() string { return p.folder.String() }

func objectName(number int64) string { return fmt.Sprintf("journal/%010d", number) }

func (p *Progress) object(number int64) objects.Location { return p.folder.At(objectName(number)) }

// A content of an object begins a journal, or goes on with it.
const (
	begins = 'b'
	goesOn = 'g'
)

// Read returns the lines of the journal, or fs.ErrNotExist without one. Objects without one that
// begins are what a process wrote after the journal was removed, and those with gaps and without a
// header what a killed process has not removed yet.
func (p *Progress) Read() (lines []byte, err error) {
	first, listed, err := p.span()
	if err != nil {
		return nil, err
	}
	if listed < p.next-first { // a listing lacks some, or they are removed
		if removed, err := p.isRemoved(); removed || err != nil {
			return nil, cmp.Or(err, fs.ErrNotExist)
		}
	}
	var names []string
	for number := first; number < p.next; number++ {
		names = append(names, objectName(number))
	}
	contents, err := p.folder.GetAll(p.ctx, names)
	if err != nil {
		return nil, err
	}
	begun := false
	for _, content := range contents {
		if content[0] == begins {
			lines, begun = content[1:], true
		} else {
			lines = append(lines, content[1:]...)
		}
	}
	if !begun {
		return nil, fs.ErrNotExist
	}
	return lines, nil
}

// span finds the number of the first object, and sets the one behind the last. A list may lack any of
// them: listed is how many it has.
func (p *Progress) span() (first, listed int64, err error) {
	infos, err := p.folder.state.listAll(p.ctx, p.folder.At("journal/"))
	if err == nil && len(infos) > 0 {
		first, err = numberOf(infos[0])
		last, other := numberOf(infos[len(infos)-1])
		p.next, err = last+1, errors.Join(err, other)
	}
	for ; err == nil; p.next++ {
		if _, err = p.folder.state.store.Stat(p.ctx, p.object(p.next)); errors.Is(err, fs.ErrNotExist) {
			return first, int64(len(infos)), nil
		}
	}
	return first, 0, err
}

// isRemoved reports whether the removal of the journal has begun, which begins with its header. It
// removes the rest, unless it only looks.
func (p *Progress) isRemoved() (bool, error) {
	_, err := p.folder.state.store.Stat(p.ctx, p.folder.At(headerName))
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	case p.lease == nil:
		return true, nil
	}
	return true, p.folder.Remove(p.ctx, "journal/", "")
}

func numberOf(info objects.Info) (int64, error) {
	number, err := strconv.ParseInt(path.Base(info.Key), 10, 64)
	if err != nil {
		err = fmt.Errorf("%w: %s is no object of a journal", ErrDamaged, info.Location)
	}
	return number, err
}

// Begin replaces the journal.
func (p *Progress) Begin(lines []byte) error {
	const tries = 5 // an earlier process of the run may still be active
	for range tries {
		err := p.create(begins, lines)
		if !errors.Is(err, objects.ErrLockLost) {
			return err
		}
		if p.next == 0 { // Read has seen none
			return p.folder.state.created(p.object(0), fs.ErrExist)
		}
		if err := p.lease.Renew(p.ctx); err != nil {
			return err
		}
		p.next++
	}
	return fmt.Errorf("%s: %w", p.folder, objects.ErrLockLost)
}

// Append adds lines to the journal. If another process has begun a new journal,
// it returns objects.ErrLockLost.
func (p *Progress) Append(lines []byte) error { return p.create(goesOn, lines) }

func (p *Progress) create(kind byte, lines []byte) error {
	at := p.object(p.next)
	sealed, err := p.folder.state.seal(at, append([]byte{kind}, lines...))
	if err != nil {
		return err
	}
	err = p.folder.state.store.Create(p.ctx, at, objects.ContentOf(sealed, "application/octet-stream"))
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w", at, objects.ErrLockLost)
	}
	if err == nil {
		p.next++
	}
	return err
}

// Put stores a small file beside the journal.
func (p *Progress) Put(name string, data []byte) error {
	return p.folder.Put(p.ctx, "beside/"+name, data)
}

// Get returns a file that Put stored, or fs.ErrNotExist without one.
func (p *Progress) Get(name string) ([]byte, error) { return p.folder.Get(p.ctx, "beside/"+name) }

// Drop removes the files that Put stored with names that begin with prefix,
// except those that begin with keep.
func (p *Progress) Drop(prefix, keep string) error {
	return p.folder.Drop(p.ctx, "beside/"+prefix, "beside/"+keep)
}

// Remove removes everything, after the dataset was finished or discarded: the header first, whose
// absence tells what is left of a journal from a damaged one.
func (p *Progress) Remove() error {
	if err := p.folder.state.store.Remove(p.ctx, p.folder.At(headerName)); err != nil {
		return err
	}
	return p.folder.Remove(p.ctx, "", "")
}
