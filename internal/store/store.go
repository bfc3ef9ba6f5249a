// Package store keeps files in a local folder or below a prefix of a bucket. It says what a store is;
// the folders in it are the kinds of storage.
//
// The one thing to know before using it: a file that has a name is whole, and what a method has
// written or removed is durable when it returns. A process that holds the lease of a store is the
// only one that changes it. Create alone keeps two processes apart that both believe to hold it.
package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"path"
	"time"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/objects"
)

// Store has files. Names are relative to it, with slashes. A folder is there while it has a file, so
// nobody makes or removes one. Methods may be called from several goroutines, for different files.
type Store interface {
	// String is the store for users: a path or a URI.
	String() string
	// Path is the path or URI of a file for users.
	Path(name string) string
	// Create writes a file that is not there; fs.ErrExist if it is, unless it has the same content.
	Create(ctx context.Context, name string, data []byte) error
	// Put writes or replaces a file, whole or not at all.
	Put(ctx context.Context, name string, data []byte) error
	// Begin starts a file that may be large. It appears, or replaces another one, when it is
	// committed.
	Begin(ctx context.Context, name string) (Unfinished, error)
	// Read reads a small file; fs.ErrNotExist without it.
	Read(ctx context.Context, name string) ([]byte, error)
	// Open opens a file for reading; fs.ErrNotExist without it. Only its bytes are read, whatever
	// takes its name meanwhile.
	Open(ctx context.Context, name string) (*Object, error)
	// Check compares a file with its record: its size, and its time or ETag. Where these are not
	// enough it compares the checksum. A file that differs is ErrChanged; fs.ErrNotExist without it.
	// listed is what a list says of the file, which saves a request; zero without one.
	Check(ctx context.Context, f File, listed Info) error
	// List yields the files whose names begin with prefix, in the order of their names, also
	// unfinished ones (IsUnfinished). In a folder on a disk, the error is fs.ErrNotExist if the
	// store itself is not there.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]
	// Entries lists what is directly in a folder, in order; "" is the store itself. Folders have a
	// slash at the end of their names.
	Entries(ctx context.Context, folder string) ([]Info, error)
	// Remove removes the files that exist.
	Remove(ctx context.Context, names ...string) error
	// Lease takes the lease of a folder without waiting, for one process at a time; "" is the store
	// itself. The error is filelock.ErrLocked if another process has it.
	Lease(ctx context.Context, folder string, holder Holder) (lease.Lease, error)
	// Await repeats a read of a file that must exist while it is missing: a bucket may show it late.
	// Before it waits, it asks whether the file is still needed; if not, the error is that of the
	// read. After its patience the error is ErrLate.
	Await(ctx context.Context, name string, needed func() (bool, error), read func() error) error
}

// Errors of stores.
var (
	// ErrChanged says that a file differs from its record.
	ErrChanged = errors.New("not as it was recorded")
	// ErrLate says that a file that must exist was missing for too long.
	ErrLate = objects.ErrLate
	// ErrFenced says that another process has taken over.
	ErrFenced = objects.ErrLockLost
)

// Holder is who holds a lease on S3. A lease on a disk is held by its process alone.
type Holder struct {
	objects.Holder
	// Shared says that other processes of the same name hold it too.
	Shared bool
}

// Info is what a list says of a file.
type Info struct {
	Name    string // of a folder with a slash at the end
	Size    int64
	ModTime time.Time
	ETag    string // names these bytes, in a bucket
	Special bool   // a link or a pipe
}

// IsFolder reports whether it is a folder.
func (i Info) IsFolder() bool { return i.Name != "" && i.Name[len(i.Name)-1] == '/' }

// IsUnfinished reports whether this is the name of a file that was not committed. The next attempt to
// write the file replaces it.
func IsUnfinished(name string) bool { return atomicfile.IsTemp(path.Base(name)) }

// Unfinished is a file being written, by one goroutine at a time: Write many times, Flush
// once, then Commit. Abort may come at any time instead.
type Unfinished interface {
	// Write collects what it is given, so it may be little at a time.
	io.Writer
	// Flush writes the rest of the file and frees its buffers.
	Flush() error
	// Commit publishes the file after Flush. The result may have no checksum yet.
	Commit() (File, error)
	// Abort drops the file; after Commit it does nothing.
	Abort() error
}

// Object is a file, open for reading. ReadAt may be called from several goroutines at once.
type Object struct {
	io.ReaderAt // of a folder on a disk a disk.File
	io.Closer
	Info
	// Stream reads the file from its beginning, in one goroutine; nil reads with ReadAt.
	Stream func() io.ReadCloser
	// Ranges reads exactly what it is asked for, and keeps nothing of it; nil is ReadAt.
	Ranges io.ReaderAt
}

// Exactly reads exactly what it is asked for: each read is a request, where a store has requests.
func (o *Object) Exactly() io.ReaderAt {
	if o.Ranges != nil {
		return o.Ranges
	}
	return o
}

// Reader reads the file from its beginning.
func (o *Object) Reader() io.ReadCloser {
	if o.Stream != nil {
		return o.Stream()
	}
	return io.NopCloser(io.NewSectionReader(o, 0, o.Size))
}

// Always is the answer for a file that no other process makes needless.
func Always() (bool, error) { return true, nil }

// IsMissing reports whether an error says that a file is not there.
func IsMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
