// Package place keeps the files of a dataset in a local folder, or below a prefix of S3.
//
// In both, a file is published whole or not at all, and one process at a time holds the
// place.
package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/objects"
)

// ErrCorrupt says that a file of the dataset differs from its record.
var ErrCorrupt = errors.New("not as it was recorded")

// LateError says that the store does not show a file of the dataset that was written, for too
// long: it comes late, or is lost.
type LateError struct {
	Name string
	Path string // for users
}

func (e *LateError) Error() string { return fmt.Sprintf("%s is missing: %s", e.Path, objects.ErrLate) }

// Is makes it both kinds of errors that it may be.
func (e *LateError) Is(target error) bool { return target == objects.ErrLate || target == ErrCorrupt }

// Place has the files of a dataset. Names are relative to it, with slashes. Changes are
// durable when a method returns. Workers call Create, Check, Sum and Open at the same time,
// for different files; the goroutine that begins and finishes the dataset calls the others.
// Close ends it, when every Unfinished has been committed or aborted.
type Place interface {
	// URI returns the place for users, in one spelling.
	URI() string
	// Path returns the path or URI of a file for users.
	Path(name string) string
	// Files lists the names of the files of the dataset, with unfinished ones, and
	// of everything else. The name of an empty partition folder ends in a slash.
	Files() (own, foreign []string, err error)
	// Enclosing returns the closest folder above the place with a dataset, finished
	// or not; "" without one.
	Enclosing() (string, error)
	// Inside returns a finished dataset in a folder below the place; "" without
	// one. names are the files and folders to look at.
	Inside(names []string) (string, error)
	// Walk lists every file at or below the place, in any order. The error is
	// fs.ErrNotExist if the place is known not to exist.
	Walk(ctx context.Context) ([]string, error)
	// Read reads a small file; fs.ErrNotExist without it. On S3 the manifest of a finished dataset
	// is awaited, and then a *LateError.
	Read(name string) ([]byte, error)
	// Write writes or replaces a small file, whole or not at all.
	Write(name string, data []byte) error
	// Remove removes the files that exist, and folders that become empty.
	Remove(names ...string) error
	// Create starts a file that appears when it is committed.
	Create(name string) (Unfinished, error)
	// Check compares a file with its record. It trusts a file with the same size and
	// modification time, on S3 with the same size and ETag; of any other file it
	// compares the checksum. A file that differs, is missing, or has no recorded
	// checksum is ErrCorrupt. On S3 a missing file is awaited, and then a *LateError.
	Check(f File) error
	// Sum takes the checksums of files without one. A file that was removed or changed
	// since it was committed is ErrCorrupt: nobody knows what was in it.
	Sum(ctx context.Context, files []*File) error
	// Open opens a file that a manifest or a listing names; fs.ErrNotExist without it. On S3 it is
	// awaited, and then a *LateError.
	Open(name string) (*OpenFile, error)
	// Close releases the place, and removes what was made for it and not used.
	Close() error
}

// Unfinished is a file being written, by one goroutine at a time: Write many times, Flush
// once, then Commit. Abort may come at any time instead.
type Unfinished interface {
	// Write collects what it is given, so it may be little at a time.
	io.Writer
	// Flush writes the rest of the file and frees its buffers.
	Flush() error
	// Commit publishes the file after Flush. The result has no name, rows or size, and may have
	// no checksum yet.
	Commit() (File, error)
	// Abort drops the file; after Commit it does nothing.
	Abort() error
}

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

// checkSize compares the size of a file with its record.
func (f File) checkSize(size int64) error {
	if size != f.Bytes {
		return fmt.Errorf("%s has %d bytes, not %d: %w", f.Name, size, f.Bytes, ErrCorrupt)
	}
	return nil
}

// isUnchanged compares a file that has no checksum yet with its record.
func (f File) isUnchanged(file fs.File) error {
	info, err := file.Stat()
	if err == nil {
		err = f.checkSize(info.Size())
	}
	if err == nil && !modified(info).Equal(f.ModifiedAt) {
		err = fmt.Errorf("%s was changed before its checksum was taken: %w", f.Name, ErrCorrupt)
	}
	return err
}

// checkSum compares the checksum of a file with its record.
func (f File) checkSum(content io.Reader) error {
	sum, err := sha256Of(content)
	if err == nil && sum != f.SHA256 {
		return fmt.Errorf("%s has another checksum: %w", f.Name, ErrCorrupt)
	}
	return err
}

func (f File) missing() error { return fmt.Errorf("%s is missing: %w", f.Name, ErrCorrupt) }

// OpenFile is a file of a dataset, open for reading. ReadAt may be called from
// several goroutines at once.
type OpenFile struct {
	io.ReaderAt
	io.Closer
	Size int64 // bytes
}

// Options say where places are. The zero value is enough for local folders.
type Options struct {
	// Disk returns the folder at a path. Nil is disk.At.
	Disk    func(path string) disk.Folder
	Objects *objects.Store // nil refuses s3:// URIs
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

// Open locks a place, and makes a local folder if it is missing. A place that another
// process holds is filelock.ErrLocked.
func Open(ctx context.Context, uri string, o Options) (Place, error) {
	if objects.Is(uri) {
		return openBucket(ctx, uri, o)
	}
	return openFolder(uri, o)
}

// OpenToRead opens a place without locking it. A missing local folder is an error of the
// first read.
func OpenToRead(ctx context.Context, uri string, o Options) (Place, error) {
	if objects.Is(uri) {
		o.Look = true
		return openBucket(ctx, uri, o)
	}
	return readFolder(uri, o)
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
