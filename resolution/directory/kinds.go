package directory

import (
	"context"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/resolution/directory/companies"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/resolution/directory/ranges"
	"github.com/leadetl/leadetl/resolution/directory/searches"
	"github.com/leadetl/leadetl/resolution/directory/visits"
)

// Kind is one kind of reference data.
type Kind string

// The kinds. They are also the names of flags and files.
const (
	People    Kind = "people"
	Companies Kind = "companies"
	IPRanges  Kind = "ip-ranges"
	Searches  Kind = "searches"
	Visits    Kind = "visits"
)

// Kinds lists the kinds in the order of imports and reports.
var Kinds = []Kind{People, Companies, IPRanges, Searches, Visits}

// kinds says all that differs between the kinds, beside the look-ups.
var kinds = map[Kind]struct {
	columns imports.Columns
	given   func(*Files) *string
	write   func(context.Context, imports.Options, *imports.Report, imports.File) (imports.Result, error)
	open    func(d *Directory, name string) (file, error)
}{
	People:    {people.Columns, func(f *Files) *string { return &f.People }, people.Import, opening(people.Open, func(d *Directory) **people.File { return &d.people })},
	Companies: {companies.Columns, func(f *Files) *string { return &f.Companies }, companies.Import, opening(companies.Open, func(d *Directory) **companies.File { return &d.companies })},
	IPRanges:  {ranges.Columns, func(f *Files) *string { return &f.IPRanges }, ranges.Import, opening(ranges.Open, func(d *Directory) **ranges.File { return &d.ranges })},
	Searches:  {searches.Columns, func(f *Files) *string { return &f.Searches }, searches.Import, opening(searches.Open, func(d *Directory) **searches.File { return &d.searches.present })},
	Visits:    {visits.Columns, func(f *Files) *string { return &f.Visits }, visits.Import, opening(visits.Open, func(d *Directory) **visits.File { return &d.visits })},
}

// opening returns how a kind is opened into its place in a directory.
func opening[F file](open func(disk.Folder, string) (F, error), place func(*Directory) *F) func(*Directory, string) (file, error) {
	return func(d *Directory, name string) (file, error) {
		f, err := open(disk.Dir(d.dir), name)
		*place(d) = f
		return f, err
	}
}

// file is the open file of a kind.
type file interface {
	// CheckAll checks the checksums that were not checked yet.
	CheckAll() error
	// Verify reads everything. It returns how many keys and rows the file has; rows is -1 where a
	// file does not keep them.
	Verify(ctx context.Context) (keys, rows int64, err error)
	Close() error
}

// Files names the files to import, by kind, each as sources.Open takes it: a
// path, a glob, s3://, "-". Empty ones are left as they are.
type Files struct {
	People, Companies, IPRanges, Searches, Visits string
}

// Of is the file of a kind.
func (f *Files) Of(k Kind) *string { return kinds[k].given(f) }

// ColumnsOf are the columns that files of a kind may have.
func ColumnsOf(k Kind) []string { return kinds[k].columns.Names }
