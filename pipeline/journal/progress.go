package journal

import (
	"bytes"
	"context"
	"errors"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/store"
)

// Progress is the Storage of a dataset that one process makes: its journal is a log in journal/, and its small
// files are in beside/.
type Progress struct {
	folder *RunFolder
	ctx    context.Context // never cancelled
	held   lease.Lease     // nil: nothing is written
	log    *store.Log
}

var _ Storage = (*Progress)(nil)

// Progress opens the progress of the dataset at out. Without look, no other
// process can write to it until Release; if another process works on the
// dataset, the error is filelock.ErrLocked.
func (s *State) Progress(ctx context.Context, out string, look bool) (*Progress, error) {
	folder, err := s.RunFolder(out)
	if err != nil {
		return nil, err
	}
	p := folder.progress(ctx)
	if !look {
		p.held, err = s.claim(ctx, folder.id)
	}
	return p, err
}

func (f *RunFolder) progress(ctx context.Context) *Progress {
	return &Progress{folder: f, ctx: context.WithoutCancel(ctx), log: store.NewLog(f.state.files, f.folder+"journal")}
}

// Release lets other processes work on the dataset.
func (p *Progress) Release() error {
	if p.held == nil {
		return nil
	}
	return p.held.Release()
}

// Close is Storage's: nothing is open.
func (p *Progress) Close() error { return nil }

// String is the path or URI of what the run keeps.
func (p *Progress) String() string { return p.folder.String() }

// Read is Storage's. Files with gaps and without a header are what a killed process has not removed yet.
func (p *Progress) Read() ([]byte, error) {
	groups, err := p.log.Read(p.ctx, p.isRemoved)
	if store.IsMissing(err) && !errors.Is(err, appendlog.ErrDamaged) && p.held != nil {
		gone, failed := p.isRemoved()
		if gone {
			failed = p.log.RemoveRest(p.ctx)
		}
		if failed != nil {
			return nil, failed
		}
	}
	return bytes.Join(groups, nil), err
}

const headerFile = besideFolder + headerName

// isRemoved reports whether the removal of the journal has begun, which begins with its header.
func (p *Progress) isRemoved() (bool, error) {
	is, err := p.folder.Has(p.ctx, headerFile)
	return !is && err == nil, err
}

// Begin is Storage's.
func (p *Progress) Begin(lines []byte) error {
	if err := p.folder.state.mark(); err != nil {
		return err
	}
	return p.log.Begin(p.ctx, lines, p.renew)
}

func (p *Progress) renew() error {
	if p.held == nil {
		return nil
	}
	return p.held.Renew(p.ctx)
}

// Append is Storage's. If another process has begun a new journal, it returns store.ErrFenced.
func (p *Progress) Append(lines []byte) error { return p.log.Append(p.ctx, lines) }

const besideFolder = "beside/"

// Put is Storage's.
func (p *Progress) Put(name string, data []byte) error {
	return p.folder.Put(p.ctx, besideFolder+name, data)
}

// Get is Storage's.
func (p *Progress) Get(name string) ([]byte, error) { return p.folder.Get(p.ctx, besideFolder+name) }

// Drop is Storage's.
func (p *Progress) Drop(prefix, keep string) error {
	return p.folder.Drop(p.ctx, besideFolder+prefix, besideFolder+keep)
}

// Remove removes everything, after the dataset was finished or discarded: the header first, whose
// absence tells what is left of a journal from a damaged one.
func (p *Progress) Remove() error {
	if err := p.folder.state.files.Remove(p.ctx, p.folder.folder+headerFile); err != nil {
		return err
	}
	if err := p.log.Remove(p.ctx); err != nil {
		return err
	}
	return p.folder.Remove(p.ctx, "", "")
}
