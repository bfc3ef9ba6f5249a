package directory

import (
	"errors"
	"time"

	"github.com/leadetl/leadetl/resolution"
)

// identified is a file whose records are about persons.
type identified interface {
	// Records is how many records Identify takes.
	Records() int
	// Identify gives use all identifiers in a record, from 0, also in one that another replaces.
	Identify(record int, use func(resolution.Identifier, string)) error
}

// Persons is a file with persons.
type Persons struct {
	Kind    Kind
	File    string // name in the folder of the directory
	Source  string // base name of the imported file
	Records int
	Bytes   int64
	SHA256  string
	// Replaced is when a later import replaced these searches, which are kept for a day; else zero.
	Replaced time.Time
	// Identify gives use all identifiers in a record, from 0. It may be called from many goroutines.
	Identify func(record int, use func(resolution.Identifier, string)) error
}

// Persons lists the files with persons: people, searches and visits, and the searches that a later import has
// replaced. What cannot be opened is in the error.
func (d *Directory) Persons() (all []Persons, err error) {
	add := func(k Kind, e entry, replaced time.Time, f identified) {
		all = append(all, Persons{k, e.File, e.Source, f.Records(), e.Bytes, e.SHA256, replaced, f.Identify})
	}
	for _, k := range Kinds {
		if f, is := d.files[k].(identified); is {
			add(k, d.manifest.Kinds[k], time.Time{}, f)
		}
	}
	for _, r := range d.manifest.Retired {
		f, failed := d.searches.retired(r.edition())
		switch {
		case failed == nil:
			add(Searches, r.entry, r.Retired, f)
		case !errors.Is(failed, resolution.ErrNoEdition):
			err = errors.Join(err, failed)
		}
	}
	return all, err
}
