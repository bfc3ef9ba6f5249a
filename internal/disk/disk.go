// Package disk is what code that keeps something durable asks of a disk: files and folders that
// it can sync. Tests give it a disk that loses what was not synced.
package disk

import (
	"io"
	"io/fs"
)

// Folder is a folder on a disk. What was created, renamed or removed in it may be undone by a
// crash until Sync returns.
type Folder interface {
	// Make makes the folder for its owner alone, with those above it, unless it is there. It is
	// durable when Make returns.
	Make() error
	// Create makes an empty file. It replaces the content of an existing one.
	Create(name string, perm fs.FileMode) (File, error)
	// Open opens an existing file for writing.
	Open(name string) (File, error)
	// ReadFile returns a file's content; fs.ErrNotExist without it.
	ReadFile(name string) ([]byte, error)
	// Names lists what is in the folder, in order.
	Names() ([]string, error)
	// Rename gives a file another name, which it takes from an existing file.
	Rename(from, to string) error
	Remove(name string) error
	// RemoveAll removes the folder with what is in it.
	RemoveAll() error
	Sync() error
	// Path is the path of a file, for messages.
	Path(name string) string
}

// File is a file that is open for writing. Its Sync may skip metadata that is not needed to read
// the file.
type File interface {
	io.WriterAt
	io.Closer
	Sync() error
	Truncate(size int64) error
}
