package sinks

import "context"

// Reader reads a dataset that somebody else may be writing: it takes hold of
// nothing and changes nothing.
type Reader struct{ place place }

// OpenReader opens the dataset in a local folder or on S3. A local folder that
// is not there is found out by the first read.
func OpenReader(ctx context.Context, uri string, o Options) (*Reader, error) {
	o.Look = true
	p, err := readablePlace(ctx, uri, o)
	if err != nil {
		return nil, err
	}
	return &Reader{p}, nil
}

// Dir is the dataset as its user knows it.
func (r *Reader) Dir() string { return r.place.uri() }

// Path is one of its files as its user knows it.
func (r *Reader) Path(name string) string { return r.place.path(name) }

// List returns the names of the dataset's own files, relative to it and with
// slashes, and of files that are of no dataset.
func (r *Reader) List() (own, foreign []string, err error) { return r.place.files() }

// ReadFile reads a small file; fs.ErrNotExist when it is not there.
func (r *Reader) ReadFile(name string) ([]byte, error) { return r.place.read(name) }

// Open opens a file for reading here and there, several goroutines at once if
// need be.
func (r *Reader) Open(name string) (*OpenFile, error) { return r.place.open(name) }

// Manifest is Dataset.Manifest.
func (r *Reader) Manifest() (*Manifest, error) { return readManifest(r.place) }
