package people

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/resolution/directory/records"
	"github.com/leadetl/leadetl/transforms/company"
	"github.com/leadetl/leadetl/transforms/phone"
)

// Columns are the columns of a file of people.
var Columns = imports.Columns{
	Names: []string{"network_url", "first_name", "last_name", "headline", "job_title", "seniority", "department",
		"email", "emails", "phones", "street", "zip_code", "city", "state", "company_domain", "last_seen_at", "phone"},
	Required: []string{"network_url"},
}

// repeated are the fields with texts that many people share.
var repeated = []bool{firstName: true, lastName: true, jobTitle: true, seniority: true, department: true,
	zipCode: true, city: true, state: true, companyDomain: true, lastSeen: false}

// line is a line of people, its cells in canonical form.
type line struct {
	cells   [fields]string
	digests []digestHash
}

// digestHash is the hash of a digest by which a person is found.
type digestHash struct {
	records.Hash
	respelled bool
}

// Import reads r.Source and writes the file at path under its temporary name.
// Of lines with the same profile address, it keeps the last. Of people with the same email,
// the first is found by it, and people who have it as it is come before those who have it
// in the uid2 or google form.
func Import(ctx context.Context, settings imports.Settings, r *imports.Report, path string) (_ imports.Result, err error) {
	w, err := records.NewWriter(path, repeated)
	if err != nil {
		return imports.Result{}, err
	}
	digests := records.NewIndexWriter(path)
	defer func() { err = errors.Join(err, w.Close(), digests.Close()) }()
	sum := imports.NewContent()
	if err := imports.Read(ctx, settings, r, Columns, parser(settings), func(l line) error {
		sum.Add(l.cells[:]...)
		row, err := w.Add(l.cells[:]...)
		if err != nil {
			return err
		}
		for _, d := range l.digests {
			order := row
			if d.respelled {
				order |= 1 << 31
			}
			if err := digests.Add(d.Hash, order, row); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return imports.Result{}, err
	}
	keys, err := w.Records(ctx)
	if err != nil {
		return imports.Result{}, err
	}
	if _, err := digests.Write(ctx, w.Columns, "digests", w.Kept, nil); err != nil {
		return imports.Result{}, err
	}
	r.Replaced = r.Rows - int64(keys)
	return imports.Result{Keys: int64(keys), Content: sum.Sum()}, w.Finish()
}

// parser returns a function that reads a line. A line without a key is bad. Of other cells
// that cannot be read, only the cell is dropped.
func parser(s imports.Settings) func(imports.Row, *imports.Report) (line, bool) {
	return func(row imports.Row, r *imports.Report) (l line, ok bool) {
		c := row.Cells
		key, err := s.Rules.ParsePerson(c[0])
		if err != nil {
			r.Skip(row.Line, "network_url: "+err.Error())
			return l, false
		}
		l.cells = [fields]string{
			networkURL: key, firstName: c[1], lastName: c[2], headline: c[3], jobTitle: c[4], seniority: c[5], department: c[6],
			street: c[10], zipCode: c[11], city: c[12], state: c[13],
		}
		var keys, numbers []string
		for _, cell := range append(imports.List(c[7]), imports.List(c[8])...) {
			key, err := imports.EmailKey(cell)
			if err != nil {
				r.Drop(row.Line, "email: "+err.Error())
				continue
			}
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
				for _, d := range lookupDigests(key) {
					l.digests = append(l.digests, digestHash{records.HashOf(string(d.raw)), d.respelled})
				}
			}
		}
		for _, cell := range append(imports.List(c[16]), imports.List(c[9])...) {
			number, err := phone.Parse(cell, s.Region)
			if err != nil {
				r.Drop(row.Line, "phone: "+err.Error())
				continue
			}
			if !slices.Contains(numbers, number.E164) {
				numbers = append(numbers, number.E164)
			}
		}
		l.cells[emails], l.cells[phones] = strings.Join(keys, ";"), strings.Join(numbers, ";")
		if l.cells[companyDomain] = company.Domain(c[14]); l.cells[companyDomain] == "" && c[14] != "" {
			r.Drop(row.Line, "company_domain: invalid_domain")
		}
		if seen, ok := imports.Time(c[15]); ok {
			l.cells[lastSeen] = string(binary.AppendVarint(nil, seen.UnixMicro()))
		} else if c[15] != "" {
			r.Drop(row.Line, "last_seen_at: invalid_time")
		}
		return l, true
	}
}
