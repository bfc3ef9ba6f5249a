// Package companies keeps the companies of a directory, which are found by domain.
package companies

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/values"
)

// File is the companies of one import. It is safe from many goroutines.
type File struct {
	Table
	file *keyed.Columns // nil for None
	keys keyed.Index    // rows by domain
}

// None is a file without companies.
var None = &File{}

// Open opens a file of Import.
func Open(in disk.Folder, name string) (*File, error) {
	c, err := keyed.OpenColumns(in, name)
	if err != nil {
		return nil, err
	}
	f, r := &File{file: c}, &keyed.ColumnReader{Columns: c}
	f.keys = keyed.ReadIndex(r, "keys")
	for i, v := range values.Company {
		f.Columns[i] = keyed.ReadValues(r, v.Name, widths[i])
		if r.Err == nil && f.Columns[i].Rows() != f.Columns[0].Rows() {
			r.Err = fmt.Errorf("%w: section %s is not as long as others", keyed.ErrDamaged, v.Name)
		}
	}
	if r.Err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", in.Path(name), r.Err), c.Close())
	}
	return f, nil
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Has is that of keyed.Columns.
func (f *File) Has(err error) bool { return f.file != nil && f.file.Has(err) }

// CheckAll checks the checksums that were not checked yet.
func (f *File) CheckAll() error { return f.file.CheckAll() }

// together is how many domains are looked up at a time.
const together = 64

// FindAll sets rows to the row of each domain, 0 without one, and for an empty domain. Call it under
// keyed.Guard.
func (f *File) FindAll(domains []string, rows []uint32) {
	var hashes [together]keyed.Hash
	for from := 0; from < len(domains); from += together {
		some, rows := domains[from:min(from+together, len(domains))], rows[from:]
		for i, domain := range some {
			hashes[i] = keyed.HashOf(domain)
		}
		f.keys.FirstRows(hashes[:len(some)], rows[:len(some)])
		for i, domain := range some {
			rows[i] = f.find(domain, hashes[i], rows[i])
		}
	}
}

// find returns the row of a domain, which is first or another one with its hash.
func (f *File) find(domain string, h keyed.Hash, first uint32) uint32 {
	if domain == "" || first == keyed.None {
		return 0
	}
	is := func(row uint32) bool { return string(f.Columns[domainColumn].At(row)) == domain }
	if is(first) {
		return first
	}
	for row := range f.keys.Rows(h) {
		if is(row) {
			return row
		}
	}
	return 0
}

// Verify checks all checksums, that every domain is found, and that every row can be read. It
// returns the numbers of domains and rows.
func (f *File) Verify(ctx context.Context) (keys, rows int64, err error) {
	if err := f.file.Verify(); err != nil {
		return 0, 0, err
	}
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	if err := f.verify(); err != nil {
		return 0, 0, err
	}
	var found [1]uint32
	for row := uint32(1); row < uint32(f.Rows()); row++ {
		if row%4096 == 0 && ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
		switch f.FindAll([]string{string(f.Columns[domainColumn].At(row))}, found[:]); {
		case found[0] == row:
			keys++
		case found[0] < row:
			return 0, 0, fmt.Errorf("%w: company %d is not found by its domain", keyed.ErrDamaged, row)
		}
	}
	if keys != int64(f.keys.Len()) {
		return 0, 0, fmt.Errorf("%w: %d domains, the index has %d", keyed.ErrDamaged, keys, f.keys.Len())
	}
	return keys, int64(f.Rows()) - 1, nil
}

// Table has companies as columns, in the order of values.Company. Row 0 is none.
type Table struct {
	Columns [resolution.CompanyColumns]keyed.Values
}

// Rows is the number of rows, with row 0.
func (t *Table) Rows() int { return t.Columns[0].Rows() }

// Record is the company of a row, whose texts are valid until the file is closed. Call it, and read
// them, under keyed.Guard.
func (t *Table) Record(row uint32) (r resolution.CompanyRecord) {
	for i := range values.Company {
		if v := &values.Company[i]; !v.IsMade() {
			r.Fields[v.Company].Text = textOf(v, t.Columns[i].At(row))
		}
	}
	return r
}

func (t *Table) verify() error {
	for i := range t.Columns {
		if err := t.Columns[i].CheckAll(); err != nil {
			return fmt.Errorf("%s: %w", values.Company[i].Name, err)
		}
	}
	return nil
}
