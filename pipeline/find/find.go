// Package find tells where persons are: in datasets, in stored answers, and in whatever else has their
// identifiers. It compares as suppression lists are compared.
//
// The one thing to know before using it: a Hit names a subject by its number and a record by its place. It has
// no value of either.
package find

import (
	"runtime"
	"slices"

	"github.com/sourcegraph/conc/iter"

	"github.com/leadetl/leadetl/transforms/suppression"
)

// Subjects are the persons to find. They are safe from many goroutines.
type Subjects struct {
	set   *suppression.Set
	lines *suppression.Lines
}

// NewSubjects are the persons that a builder was given by AddLine. Their numbers are those of the lines.
func NewSubjects(b *suppression.Builder) *Subjects {
	lines := b.Lines()
	return &Subjects{b.Set(), lines}
}

// Fingerprint is that of a suppression list with the same persons.
func (s *Subjects) Fingerprint() string { return s.set.Fingerprint() }

// Hit is a record that names a subject.
type Hit struct {
	Subject uint32
	What    string   // such as rows or answer
	In      []string // columns or parts of the record
	File    string   // in the place; empty without files
	Row     int64    // of File, from 1; 0 for none
	// Source and SourceRow say where a row of a dataset comes from.
	Source    string
	SourceRow int64
	KeyHash   string // of an answer
}

// File is a file that was read, as it was then.
type File struct {
	Name   string `json:"name"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
	CRC32C string `json:"crc32c,omitempty"`
	ETag   string `json:"etag,omitempty"`
}

// Found receives what a search finds in one place.
type Found interface {
	// Hit receives a record.
	Hit(Hit)
	// Read receives a file that was read to its end.
	Read(File)
	// Unread receives what could not be read. The search goes on.
	Unread(name string, why error)
}

// Looker looks for subjects in records, one after another, in one goroutine.
type Looker struct {
	*suppression.Finder
	lines *suppression.Lines
	named map[uint32][]string
}

// Looker returns a new Looker.
func (s *Subjects) Looker() *Looker {
	return &Looker{s.set.RememberingFinder(), s.lines, map[uint32][]string{}}
}

// Note notes whom the last look-up has found in a part of the record. listed is its result.
func (l *Looker) Note(in string, listed bool) {
	if !listed {
		return
	}
	for _, subject := range l.lines.Of(l.Found()) {
		if !slices.Contains(l.named[subject], in) {
			l.named[subject] = append(l.named[subject], in)
		}
	}
	clear(l.Found())
}

// Hits ends a record, and returns a Hit like of for each subject in it.
func (l *Looker) Hits(of Hit) (hits []Hit) {
	for subject, in := range l.named {
		of.Subject, of.In = subject, in
		hits = append(hits, of)
	}
	clear(l.named)
	slices.SortFunc(hits, func(a, b Hit) int { return int(a.Subject) - int(b.Subject) })
	return hits
}

// lookers look for subjects side by side.
type lookers []*Looker

func (s *Subjects) lookers() (all lookers) {
	for range runtime.GOMAXPROCS(0) {
		all = append(all, s.Looker())
	}
	return all
}

// each looks into n records, and returns what it finds in their order.
func (ls lookers) each(n int, look func(l *Looker, record int) []Hit) (hits []Hit) {
	found := make([][]Hit, len(ls))
	iter.ForEachIdx(ls, func(i int, l **Looker) {
		for record := n * i / len(ls); record < n*(i+1)/len(ls); record++ {
			found[i] = append(found[i], look(*l, record)...)
		}
	})
	return slices.Concat(found...)
}
