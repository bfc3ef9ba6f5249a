// Package directory keeps the reference data of the embedded engine: people, companies, IP
// ranges, keyword searches and visits. They are imported from files into a folder.
//
// The one thing to know before using it: an import never changes open files. It builds new
// files beside the old ones and commits them by replacing a small file, the manifest. A
// Directory keeps its view until it is closed; Changed says when there is a newer one.
package directory

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/companies"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/resolution/directory/ranges"
	"github.com/leadetl/leadetl/resolution/directory/visits"
)

// Directory is an open directory folder. It is safe from many goroutines. Call Close after
// the last look-up.
type Directory struct {
	dir      string
	manifest manifest
	state    [sha256.Size]byte // of the manifest's bytes when opened

	people    *people.File
	companies *companies.File
	ranges    *ranges.File
	searches  Editions
	visits    *visits.File
	joins     *companies.Joins // nil without any

	files map[Kind]file // the same ones
}

// ErrNotImported says that a folder was not made by an import.
var ErrNotImported = errors.New("no reference data made by an import")

// Open opens the directory in dir. Look-ups of kinds that were never imported find
// nothing. The error is resolution.ErrInvalid for a folder that is not a directory, or
// whose files do not match its manifest.
func Open(dir string) (*Directory, error) {
	for {
		m, state, err := readManifest(dir)
		if err == nil && len(m.Kinds) == 0 { // the first import is running, or was killed
			err = fs.ErrNotExist
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %s: %w: %w", resolution.ErrInvalid, dir, ErrNotImported, err)
		}
		if err == nil {
			err = m.checkFormats(dir)
		}
		if err != nil {
			return nil, err
		}
		d := newDirectory(dir, m)
		d.state = state
		err = d.open(slices.Sorted(maps.Keys(m.Kinds))) // in order, so that the same problem gives the same error
		if err == nil && m.Joins != nil {
			err = d.openJoins(*m.Joins)
		}
		if err == nil {
			return d, nil
		}
		err = errors.Join(err, d.Close())
		// An import may have replaced the manifest and removed the older files
		// since the manifest was read.
		if !d.Changed() {
			return nil, fmt.Errorf("%w: directory %s cannot be opened, import what is missing again: %w", resolution.ErrInvalid, dir, err)
		}
	}
}

func newDirectory(dir string, m manifest) *Directory {
	return &Directory{
		dir: dir, manifest: m, files: map[Kind]file{}, people: people.None, companies: companies.None, visits: visits.None,
		searches: Editions{dir: dir, name: m.Kinds[Searches].edition(), kept: m.Retired},
	}
}

// open opens the files of kinds.
func (d *Directory) open(some []Kind) error {
	for _, k := range some {
		e := d.manifest.Kinds[k]
		if err := e.checkSize(d.dir); err != nil {
			return err
		}
		of, ok := kinds[k]
		if !ok {
			return fmt.Errorf("the manifest names the unknown kind %q", k)
		}
		f, err := of.open(d, e.File)
		if err != nil {
			return err
		}
		d.files[k] = f
	}
	return nil
}

// checkSize returns an error if the file of an entry in dir is not as long as the import wrote it.
func (e entry) checkSize(dir string) error {
	path := filepath.Join(dir, e.File)
	info, err := os.Stat(path)
	if err == nil && info.Size() != e.Bytes {
		err = fmt.Errorf("%s has %d bytes, the import wrote %d", path, info.Size(), e.Bytes)
	}
	return err
}

// Close closes all files. Do not use the directory afterwards; earlier answers stay valid.
func (d *Directory) Close() error {
	errs := d.searches.close()
	for _, f := range d.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// Has reports whether the kind was imported, even without rows.
func (d *Directory) Has(k Kind) bool { _, ok := d.manifest.Kinds[k]; return ok }

// Searches are the keyword searches.
func (d *Directory) Searches() *Editions { return &d.searches }

// Fingerprint identifies the content of all kinds, in lower-case hex. It is the same for
// the same sources and import settings, on any machine.
func (d *Directory) Fingerprint() string {
	h := sha256.New()
	for _, k := range Kinds {
		if e, ok := d.manifest.Kinds[k]; ok {
			fmt.Fprintf(h, "%s %s\n", k, e.Content)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Changed reports whether an import has replaced data since Open. It reads a small file.
func (d *Directory) Changed() bool {
	_, state, err := readManifest(d.dir)
	return err == nil && state != d.state
}

// damaged adds to an error what to do about a damaged file.
func damaged(k Kind, err error) error {
	if k == joins && errors.Is(err, keyed.ErrDamaged) {
		return fmt.Errorf("the file of %s is damaged, import the %s, %s or %s again: %w", k, People, Companies, IPRanges, err)
	}
	if errors.Is(err, keyed.ErrDamaged) {
		return fmt.Errorf("the file of %s is damaged, import the %s again: %w", k, k, err)
	}
	return err
}
