// Package place has the files of a dataset in a store: which names are those of its files, what lies
// around it, and who holds it.
package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/hashlanes"
	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/longlock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/internal/store/bucket"
	"github.com/leadetl/leadetl/internal/store/folder"
)

// ErrCorrupt says that a file of the dataset differs from its record.
var ErrCorrupt = store.ErrChanged

// LateError says that the store does not show a file of the dataset that was written, for too
// long: it comes late, or is lost.
type LateError struct {
	Name string
	Path string // for users
}

func (e *LateError) Error() string { return fmt.Sprintf("%s is missing: %s", e.Path, store.ErrLate) }

// Is makes it both kinds of errors that it may be.
func (e *LateError) Is(target error) bool { return target == store.ErrLate || target == ErrCorrupt }

// Place has the files of a dataset. Names are relative to it, with slashes. Changes are
// durable when a method returns. Workers call Create, Check, Sum and Open at the same time,
// for different files; the goroutine that begins and finishes the dataset calls the others.
// Close ends it, when every Unfinished has been committed or aborted.
type Place struct {
	ctx   context.Context // never cancelled: writes finish, or the store gives up
	uri   string
	files store.Store
	held  lease.Lease // nil for a reader

	// A list of a bucket is kept until a change or Refresh, because only this run writes there, unless it is
	// shared. So one request checks a thousand parts.
	keeps   bool
	mu      longlock.Lock
	own     map[string]store.Info // nil while it is unknown
	foreign []string
}

// Unfinished is a file being written.
type Unfinished = store.Unfinished

// OpenFile is a file of a dataset, open for reading.
type OpenFile = store.Object

// File is one file of a dataset. Name is relative to the dataset's folder.
type File struct {
	Name       string    `json:"name"`
	Rows       int64     `json:"rows"`
	Bytes      int64     `json:"bytes"`
	SHA256     string    `json:"sha256,omitempty"`     // lower-case hex; "" before Place.Sum
	ModifiedAt time.Time `json:"modified_at,omitzero"` // a rerun need not read an unchanged file again
	// ETag is the name of these bytes at the store, on S3. It does there what
	// ModifiedAt does locally.
	ETag string `json:"etag,omitempty"`
}

// FileOf is a file with rows.
func FileOf(f store.File, rows int64) File {
	return File{Name: f.Name, Rows: rows, Bytes: f.Bytes, SHA256: f.SHA256, ModifiedAt: f.ModifiedAt, ETag: f.ETag}
}

// CheckOpen compares an open file with its record, as Place.Check does.
func (f File) CheckOpen(o *OpenFile) error { return f.stored().CheckObject(o) }

func (f File) stored() store.File {
	return store.File{Name: f.Name, Bytes: f.Bytes, SHA256: f.SHA256, ModifiedAt: f.ModifiedAt, ETag: f.ETag}
}

// Options say where places are. The zero value is enough for local folders.
type Options struct {
	// Disk returns the folder at a path. Nil is disk.At.
	Disk func(path string) disk.Folder
	// SumLater leaves the checksums of parts in a folder to Place.Sum also where that is not faster.
	SumLater bool
	Objects  *objects.Store // nil refuses s3:// URIs
	// State is the folder of the state. It has unfinished parts for S3, and records who holds
	// which dataset there.
	State disk.Folder
	// Holder is who holds the dataset on S3. Without a name it is what State records.
	Holder objects.Holder
	// Look says that nothing will be written, so nothing is locked on S3.
	Look bool
	// Share says that other processes of the same Holder write to the dataset too,
	// on S3.
	Share bool
}

// sumLater leaves the checksums of parts to Sum. Tests set it.
var sumLater = hashlanes.FasterTogether()

// OpenToRead opens a place without locking it. A missing local folder is an error of the
// first read.
func OpenToRead(ctx context.Context, uri string, o Options) (*Place, error) {
	p := &Place{ctx: context.WithoutCancel(ctx), uri: uri, keeps: objects.Is(uri), mu: longlock.New()}
	switch {
	case objects.Is(uri):
		b, err := bucket.Open(o.Objects, uri, bucket.Options{State: o.State, Ours: isOurs})
		if err != nil {
			return nil, err
		}
		p.uri, p.files = b.String(), b
	case strings.Contains(uri, "://"):
		return nil, fmt.Errorf("%s: datasets are in local folders or on S3; name a folder or s3://bucket/prefix/", uri)
	default:
		at := o.Disk
		if at == nil {
			at = disk.At
		}
		f := folder.Public(at(uri))
		f.Large, f.SumLater = true, sumLater || o.SumLater
		p.files = f
	}
	return p, nil
}

// isOurs reports whether an unfinished upload is to a file of the dataset.
func isOurs(name string) bool {
	return isDatasetFile(strings.TrimSuffix(path.Dir(name), "."), path.Base(name))
}

// Open locks a place, and makes a local folder if it is missing. A place that another
// process holds is filelock.ErrLocked. On S3 it writes nothing where others have files.
func Open(ctx context.Context, uri string, o Options) (*Place, error) {
	p, err := OpenToRead(ctx, uri, o)
	if err != nil {
		return nil, err
	}
	if objects.Is(uri) {
		if _, foreign, err := p.Files(); err != nil || len(foreign) > 0 || o.Look {
			return p, err
		}
	}
	if p.held, err = p.files.Lease(p.ctx, "", store.Holder{Holder: o.Holder, Shared: o.Share}); err != nil {
		return nil, err
	}
	p.Refresh() // the previous holder may have written
	return p, nil
}

// Close releases the place, and removes what was made for it and not used.
func (p *Place) Close() error {
	if p.held == nil {
		return nil
	}
	return p.held.Release()
}

// URI returns the place for users, in one spelling.
func (p *Place) URI() string { return p.uri }

// Path returns the path or URI of a file for users.
func (p *Place) Path(name string) string { return p.files.Path(name) }

// Refresh makes the next call list the files again, which others may have
// written.
func (p *Place) Refresh() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own = nil
}

// Files lists the names of the files of the dataset, with unfinished ones, and
// of everything else. The name of an empty partition folder ends in a slash.
func (p *Place) Files() (own, foreign []string, err error) {
	infos, foreign, err := p.listing()
	return slices.Sorted(maps.Keys(infos)), foreign, err
}

func (p *Place) listing() (own map[string]store.Info, foreign []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own != nil {
		return p.own, p.foreign, nil
	}
	own, foreign, err = p.list()
	if p.keeps && err == nil {
		p.own, p.foreign = own, foreign
	}
	return own, foreign, err
}

// listsAtOnce bounds how many folders are listed at a time.
const listsAtOnce = 16

func (p *Place) list() (own map[string]store.Info, foreign []string, err error) {
	top, err := p.files.Entries(p.ctx, "")
	if err != nil && !store.IsMissing(err) {
		return nil, nil, err
	}
	own = map[string]store.Info{}
	var below []store.Info
	for _, e := range top {
		name := strings.TrimSuffix(e.Name, "/")
		if e.IsFolder() && (slices.Contains(HiddenFolders, name) || partitionFolder.MatchString(name)) {
			below = append(below, e)
		} else {
			foreign = sortOut(own, foreign, "", e)
		}
	}
	lists := pool.New().WithErrors().WithFirstError().WithMaxGoroutines(listsAtOnce)
	var sorting sync.Mutex
	for _, folder := range below {
		name := strings.TrimSuffix(folder.Name, "/")
		list := func() error {
			entries, err := p.files.Entries(p.ctx, name)
			if store.IsMissing(err) {
				err = nil
			}
			sorting.Lock()
			defer sorting.Unlock()
			if len(entries) == 0 && !slices.Contains(HiddenFolders, name) {
				own[folder.Name] = folder
			}
			for _, e := range entries {
				foreign = sortOut(own, foreign, name, e)
			}
			return err
		}
		if p.keeps {
			lists.Go(list)
		} else if err := list(); err != nil { // a disk answers at once
			return nil, nil, err
		}
	}
	err = lists.Wait()
	slices.Sort(foreign)
	return own, foreign, err
}

// sortOut adds a file of the dataset to own, and the name of another one or of a folder to foreign.
func sortOut(own map[string]store.Info, foreign []string, folder string, e store.Info) []string {
	switch {
	case !e.IsFolder() && !e.Special && isDatasetFile(folder, path.Base(e.Name)):
		own[e.Name] = e
	case e.Name != bucket.LockName:
		foreign = append(foreign, strings.TrimSuffix(e.Name, "/"))
	}
	return foreign
}

// Walk lists every file at or below the place. The error is fs.ErrNotExist if the place is known not to
// exist.
func (p *Place) Walk(ctx context.Context) (names []string, err error) {
	for info, err := range p.files.List(ctx, "") {
		if err != nil {
			return nil, err
		}
		if info.Name != bucket.LockName {
			names = append(names, info.Name)
		}
	}
	return names, nil
}

// Partitions are the folders NAME=VALUE directly in a folder of the place, in order.
func (p *Place) Partitions(ctx context.Context, folder string) (names []string, err error) {
	entries, err := p.files.Entries(ctx, folder)
	if store.IsMissing(err) {
		err = nil
	}
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name, "/"); e.IsFolder() && partitionFolder.MatchString(path.Base(name)) {
			names = append(names, name)
		}
	}
	return names, err
}

// Read reads a small file; fs.ErrNotExist without it. On S3 the manifest of a finished dataset
// is awaited, and then a *LateError.
func (p *Place) Read(name string) (data []byte, err error) {
	err = p.await(name, func() (bool, error) { return p.mustHave(name) }, func() error {
		data, err = p.files.Read(p.ctx, name)
		return err
	})
	return data, err
}

// mustHave reports whether a small file exists for sure: the manifest of a finished dataset does.
func (p *Place) mustHave(name string) (bool, error) {
	if name != ManifestName {
		return false, nil
	}
	_, err := p.files.Read(p.ctx, SuccessName)
	if store.IsMissing(err) {
		return false, nil
	}
	return err == nil, err
}

// Write writes or replaces a small file, whole or not at all.
func (p *Place) Write(name string, data []byte) error {
	defer p.Refresh()
	return p.late(name, p.files.Put(p.ctx, name, data))
}

// Remove removes the files that exist, and folders that become empty.
func (p *Place) Remove(names ...string) error {
	defer p.Refresh()
	return p.files.Remove(p.ctx, names...)
}

// Create starts a file that appears when it is committed.
func (p *Place) Create(name string) (Unfinished, error) {
	u, err := p.files.Begin(p.ctx, name)
	if err != nil {
		return nil, err
	}
	return &unfinished{u, p, name}, nil
}

// unfinished is an unfinished file of a place.
type unfinished struct {
	Unfinished
	place *Place
	name  string
}

// Commit is that of Unfinished.
func (u *unfinished) Commit() (store.File, error) {
	defer u.place.Refresh()
	f, err := u.Unfinished.Commit()
	return f, u.place.late(u.name, err)
}

// Check compares a file with its record. A file that differs or is missing is ErrCorrupt. On S3 a missing
// file is awaited, and then a *LateError. It asks for one that is not listed, because a list may be late.
func (p *Place) Check(f File) error {
	var listed store.Info
	if p.keeps {
		own, _, err := p.listing()
		if err != nil {
			return err
		}
		listed = own[f.Name]
	}
	return missing(f.Name, p.await(f.Name, store.Always, func() error { return p.files.Check(p.ctx, f.stored(), listed) }))
}

// missing makes ErrCorrupt of fs.ErrNotExist.
func missing(name string, err error) error {
	if store.IsMissing(err) {
		err = fmt.Errorf("%s is missing: %w", name, ErrCorrupt)
	}
	return err
}

// Open opens a file that a manifest or a listing names; fs.ErrNotExist without it. On S3 it is
// awaited, and then a *LateError.
func (p *Place) Open(name string) (file *OpenFile, err error) {
	err = p.await(name, store.Always, func() error {
		file, err = p.files.Open(p.ctx, name)
		return err
	})
	return file, err
}

// await repeats a read of a file that must exist, while it is needed.
func (p *Place) await(name string, needed func() (bool, error), read func() error) error {
	return p.late(name, p.files.Await(p.ctx, name, needed, read))
}

func (p *Place) late(name string, err error) error {
	if errors.Is(err, store.ErrLate) {
		err = &LateError{name, p.Path(name)}
	}
	return err
}

// SumLanes is how many files Sum reads side by side at most.
const SumLanes = 8

// Sum takes the checksums of files without one. A file that was removed or changed since it was committed
// is ErrCorrupt: nobody knows what was in it.
//
// It reads several files side by side. On a CPU with vector instructions and without SHA
// instructions, that takes a third of the time or less (package hashlanes). Other CPUs
// need it only for files that were recorded without a checksum, by another CPU.
func (p *Place) Sum(ctx context.Context, files []*File) error {
	files = slices.DeleteFunc(slices.Clone(files), func(f *File) bool { return f.SHA256 != "" })
	for some := range slices.Chunk(files, 2*SumLanes) { // parts and as many rejects
		if err := p.sumTogether(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func (p *Place) sumTogether(ctx context.Context, files []*File) error {
	readers := make([]io.Reader, len(files))
	for i, f := range files {
		file, err := p.Open(f.Name)
		if err != nil {
			return missing(f.Name, err)
		}
		defer file.Close()
		readers[i] = file.Reader()
	}
	sums, err := hashlanes.SHA256Streams(ctx, readers)
	if err != nil {
		return fmt.Errorf("checksums of %s: %w", p.uri, err)
	}
	for i, f := range files {
		if err := p.Check(*f); err != nil {
			return err
		}
		f.SHA256 = fmt.Sprintf("%x", sums[i])
	}
	return nil
}
