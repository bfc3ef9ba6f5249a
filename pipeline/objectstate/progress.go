package objectstate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/objects"
)

// Progress stores the journal of an unfinished dataset in numbered objects,
// journal/<n>.jsonl. The journal starts at the last object with a begin mark,
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

func (p *Progress) object(number int64) objects.Location {
	return p.folder.At(fmt.Sprintf("journal/%010d.jsonl", number))
}

// beginMark is the first line of an object that begins a journal.
const beginMark = "{\"journal\":1}\n"

// Read returns the lines of the journal, or fs.ErrNotExist without one.
func (p *Progress) Read() ([]byte, error) {
	all, err := p.folder.state.listAll(p.ctx, p.folder.At("journal/"))
	if err != nil {
		return nil, err
	}
	var infos []objects.Info
	for _, info := range all {
		number, err := strconv.ParseInt(strings.TrimSuffix(path.Base(info.Key), ".jsonl"), 10, 64)
		if err != nil {
			continue
		}
		p.next = number + 1
		infos = append(infos, info)
	}
	contents, err := p.folder.state.readObjects(p.ctx, infos)
	if err != nil {
		return nil, err
	}
	var lines []byte
	begun := false
	for _, data := range contents {
		if rest, begins := bytes.CutPrefix(data, []byte(beginMark)); begins {
			lines, begun = rest, true
		} else {
			lines = append(lines, data...)
		}
	}
	if !begun {
		return nil, fs.ErrNotExist
	}
	return lines, nil
}

// Begin replaces the journal.
func (p *Progress) Begin(lines []byte) error {
	const tries = 5 // an earlier process of the run may still be active
	content := append([]byte(beginMark), lines...)
	for range tries {
		err := p.create(content)
		if !errors.Is(err, objects.ErrLockLost) {
			return err
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
func (p *Progress) Append(lines []byte) error { return p.create(lines) }

func (p *Progress) create(data []byte) error {
	at := p.object(p.next)
	err := p.folder.state.store.Create(p.ctx, at, objects.ContentOf(data, "application/x-ndjson"))
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

// Remove removes everything, after the dataset was finished or discarded.
func (p *Progress) Remove() error { return p.folder.Remove(p.ctx, "", "") }
