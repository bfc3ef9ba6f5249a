// Package disk is what code that keeps something durable asks of a disk: files and folders that
// it can sync. Tests give it a disk that loses what was not synced.
package disk

import (
	"errors"
	"io"
	"io/fs"

	"github.com/leadetl/leadetl/internal/lease"
)

// Folder is a folder on a disk. What was created, renamed or removed in it may be undone by a
// crash until Sync returns. Names have slashes, and may be those of files in folders below; the
// name of the folder itself is ".".
type Folder interface {
	// In is a folder below this one. It need not exist.
	In(name string) Folder
	// Above is the folder that has this one, which exists. It is nil for the root of the disk.
	Above() (Folder, error)
	// Make makes the folder, with those above it, unless it is there. It is durable when Make
	// returns. On error Make removes what it made.
	Make(perm fs.FileMode) (Made, error)
	// Lock locks the folder without waiting; filelock.ErrLocked if another process has locked it.
	Lock() (lease.Lease, error)
	// Create makes an empty file, for writing and reading. It replaces the content of an
	// existing one.
	Create(name string, perm fs.FileMode) (File, error)
	// Open opens an existing file for reading.
	Open(name string) (File, error)
	// ReadFile returns a file's content; fs.ErrNotExist without it.
	ReadFile(name string) ([]byte, error)
	// ReadDir lists what is in a folder, in the order of the names.
	ReadDir(name string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	// Rename gives a file another name, which it takes from an existing file.
	Rename(from, to string) error
	// Remove removes a file or an empty folder.
	Remove(name string) error
	// RemoveAll removes the folder with what is in it.
	RemoveAll() error
	Sync() error
	// Path is the path of a file, for messages.
	Path(name string) string
}

// File is an open file. Its Sync may skip metadata that is not needed to read the file.
type File interface {
	fs.File
	io.ReaderAt
	io.WriterAt
	Sync() error
	Truncate(size int64) error
}

// Names lists what is in a folder, in order.
func Names(in Folder) (names []string, err error) {
	entries, err := in.ReadDir(".")
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// Made are the folders that one Make has made, the innermost first.
type Made []Folder

// RemoveEmpty removes the folders, up to the first that is not empty.
func (m Made) RemoveEmpty() {
	for _, folder := range m {
		if err := folder.Remove("."); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}
