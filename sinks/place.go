package sinks

import (
	"context"
	"io"
	"time"
)

// place is where the files of a dataset lie. Names are relative to it, with
// slashes. What a method has done when it returns is durable.
type place interface {
	// uri is the place as its user knows it, the same however it is written.
	uri() string
	// path is a file as its user knows it.
	path(name string) string
	// files lists the names of a dataset's own files, those under construction
	// included, and of everything else. An empty folder of a partition is listed
	// with a slash behind its name.
	files() (own, foreign []string, err error)
	// read reads a small file; fs.ErrNotExist when it is not there.
	read(name string) ([]byte, error)
	// write makes or replaces a small file, whole or not at all.
	write(name string, data []byte) error
	// remove removes files, those that are not there too, and the folders that
	// are empty then.
	remove(names ...string) error
	// create starts a file that is there, whole, once it is committed.
	create(name string) (construction, error)
	// check is Dataset.Check.
	check(f File) error
	// sum takes the checksums of files that have none.
	sum(ctx context.Context, files []*File) error
	// open opens a file for reading.
	open(name string) (*OpenFile, error)
	// close gives the place back. What was made for it and not used goes.
	close() error
}

// construction is a file being written.
type construction interface {
	io.Writer
	// commit publishes the file. Where its checksum is known by then it is in
	// the result.
	commit() (stored, error)
	// abort throws the file away; after commit it does nothing.
	abort() error
}

// stored is what is known of a file once it is published.
type stored struct {
	modifiedAt time.Time
	etag       string
	sha256     string
}

// OpenFile is a file of a dataset, open for reading.
type OpenFile struct {
	io.ReaderAt
	Size  int64
	close func() error
}

// Close ends the reading.
func (f *OpenFile) Close() error { return f.close() }
