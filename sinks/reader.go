package sinks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/sinks/place"
)

// ErrNoDataset says that a folder has no finished dataset.
var ErrNoDataset = errors.New("no dataset")

// ManifestError says that a manifest cannot be read.
type ManifestError struct{ Err error }

func (e *ManifestError) Error() string { return ManifestName + ": not readable: " + e.Err.Error() }
func (e *ManifestError) Unwrap() error { return e.Err }

// ReadManifest reads the manifest of a dataset, finished or not. The error is
// ErrNoDataset without one.
func ReadManifest(dataset interface {
	ReadFile(name string) ([]byte, error)
}) (*Manifest, error) {
	data, err := dataset.ReadFile(ManifestName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no %s; a run writes it when all parts are in place, and one that was stopped needs the same command again", ErrNoDataset, ManifestName)
	}
	if err != nil {
		return nil, err
	}
	return ParseManifest(data)
}

// ParseManifest reads a manifest.
func ParseManifest(data []byte) (*Manifest, error) {
	m, err := decodeManifest(data)
	if _, other := errors.AsType[*format.Error](err); err != nil && !other {
		return nil, &ManifestError{err}
	}
	return m, err
}

// decodeManifest decodes the manifest of a dataset. One in another format is refused.
func decodeManifest(data []byte) (*Manifest, error) {
	m := new(Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, err
	}
	return m, format.Check(ManifestName, m.Format, ManifestFormat, "use the version of the program that made the dataset, or make it again with --overwrite")
}

// CheckFinished checks that _SUCCESS is there, and has the checksum of the manifest. Else the error
// is ErrCorrupt.
func CheckFinished(dataset interface {
	ReadFile(name string) ([]byte, error)
}) error {
	success, err := dataset.ReadFile(SuccessName)
	if err != nil {
		return err
	}
	manifest, err := dataset.ReadFile(ManifestName)
	if err != nil {
		return err
	}
	return checkSuccess(success, manifest)
}

// Reader reads a dataset that another process may be writing. It locks and changes
// nothing.
type Reader struct{ place *place.Place }

// OpenReader opens the dataset in a local folder or on S3. A missing local folder is an
// error of the first read.
func OpenReader(ctx context.Context, uri string, o Options) (*Reader, error) {
	p, err := place.OpenToRead(ctx, uri, o)
	if err != nil {
		return nil, err
	}
	return &Reader{p}, nil
}

// Dir is the folder as it was given to Open; on S3 its URI in one spelling.
func (r *Reader) Dir() string { return r.place.URI() }

// Path returns the path or URI of a file for users.
func (r *Reader) Path(name string) string { return r.place.Path(name) }

// List returns the names of all files at or below the folder, in any order, with slashes.
// On S3 it lists foreign folders, but not what is in them. A missing local folder is
// fs.ErrNotExist.
func (r *Reader) List(ctx context.Context) ([]string, error) { return r.place.Walk(ctx) }

// Partitions returns the folders NAME=VALUE directly in a folder, which is "" or one of them, in order.
func (r *Reader) Partitions(ctx context.Context, folder string) ([]string, error) {
	return r.place.Partitions(ctx, folder)
}

// ReadFile reads a small file; fs.ErrNotExist without it.
func (r *Reader) ReadFile(name string) ([]byte, error) { return r.place.Read(name) }

// Open opens a file for reading; fs.ErrNotExist without it.
func (r *Reader) Open(name string) (*OpenFile, error) { return r.place.Open(name) }
