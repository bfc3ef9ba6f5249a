// Package place keeps the files of a dataset: in a local folder, or below a
// prefix of S3.
//
// A file of a dataset is published whole or not at all, in either kind of
// place, and one process holds a place at a time.
package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
)

// ErrCorrupt says that a file of the dataset is not what was recorded.
var ErrCorrupt = errors.New("not as it was recorded")

// Place is where the files of a dataset lie. Names are relative to it, with
// slashes. What a method has done when it returns is durable.
type Place interface {
	// URI is the place as its user knows it, the same however it is written.
	URI() string
	// Path is a file as its user knows it.
	Path(name string) string
	// Files lists the names of the dataset's own files, unfinished ones
	// included, and of everything else. An empty folder of a partition is listed
	// with a slash behind its name.
	Files() (own, foreign []string, err error)
	// Enclosing is the closest folder above the place that holds a dataset,
	// finished or not; "" when there is none.
	Enclosing() (string, error)
	// Inside is a finished dataset in a folder below the place; "" when there is
	// none. names says which files and folders of the place to look at.
	Inside(names []string) (string, error)
	// Walk lists every file at or below the place, in any order. A place that
	// does not exist is fs.ErrNotExist, where that can be told.
	Walk(ctx context.Context) ([]string, error)
	// Read reads a small file; fs.ErrNotExist when it does not exist.
	Read(name string) ([]byte, error)
	// Write makes or replaces a small file, whole or not at all.
	Write(name string, data []byte) error
	// Remove removes the files that exist, and folders that become empty.
	Remove(names ...string) error
	// Create starts a file that appears, whole, when it is committed.
	Create(name string) (Unfinished, error)
	// Check reports whether a file is still as it was recorded. A file of the
	// same size and modification time, on S3 of the same size and ETag, is
	// trusted; any other is read and its checksum compared. A file that differs,
	// is missing, or has no recorded checksum to compare is ErrCorrupt.
	Check(f File) error
	// Sum takes the checksums of files that have none.
	Sum(ctx context.Context, files []*File) error
	// Open opens a file for reading; fs.ErrNotExist when it does not exist.
	Open(name string) (*OpenFile, error)
	// Close gives the place back. What was made for it and not used is removed.
	Close() error
}

// Unfinished is a file being written.
type Unfinished interface {
	io.Writer
	// Commit publishes the file. The result has no name, rows or size, and no
	// checksum where that is not known yet.
	Commit() (File, error)
	// Abort throws the file away; after Commit it does nothing.
	Abort() error
}

// File is one file of a dataset. Name is relative to the dataset's folder.
type File struct {
	Name       string    `json:"name"`
	Rows       int64     `json:"rows"`
	Bytes      int64     `json:"bytes"`
	SHA256     string    `json:"sha256,omitempty"`     // lower-case hex; "" until Place.Sum took it
	ModifiedAt time.Time `json:"modified_at,omitzero"` // lets a rerun skip re-reading a file nobody touched
	// ETag is the store's own name for these bytes, on S3: there it does what
	// ModifiedAt does locally.
	ETag string `json:"etag,omitempty"`
}

// checkSize compares the size of a file with what was recorded.
func (f File) checkSize(size int64) error {
	if size != f.Bytes {
		return fmt.Errorf("%s has %d bytes, not %d: %w", f.Name, size, f.Bytes, ErrCorrupt)
	}
	return nil
}

// checkSum compares the checksum of a file with what was recorded.
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

// Options are what a place on S3 needs. The zero value does for local folders.
type Options struct {
	Objects *objects.Store // nil refuses s3:// URIs
	// StateDir keeps unfinished parts, and records who holds which dataset.
	StateDir string
	// Look says that nothing will be written: nothing is locked on S3.
	Look bool
}

// Open takes hold of a place, and makes a local folder if need be. A place held
// by another process is filelock.ErrLocked.
func Open(ctx context.Context, uri string, o Options) (Place, error) {
	if objects.Is(uri) {
		return openBucket(ctx, uri, o)
	}
	return openFolder(uri)
}

// OpenToRead opens a place without taking hold of it. A local folder that does
// not exist is found out by the first read.
func OpenToRead(ctx context.Context, uri string, o Options) (Place, error) {
	if objects.Is(uri) {
		o.Look = true
		return openBucket(ctx, uri, o)
	}
	if err := checkLocal(uri); err != nil {
		return nil, err
	}
	return &folder{dir: uri}, nil
}

func checkLocal(uri string) error {
	if strings.Contains(uri, "://") {
		return fmt.Errorf("%s: datasets are in local folders or on S3; name a folder or s3://bucket/prefix/", uri)
	}
	return nil
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
