package companies

import (
	"context"
	"errors"
	"strconv"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/resolution/values"
	"github.com/leadetl/leadetl/transforms/company"
)

// ofFields are the rows of the fields of a company.
var ofFields = func() (of [resolution.CompanyFields]values.Value) {
	for _, v := range values.Company {
		if !v.IsMade() {
			of[v.Company] = v
		}
	}
	return of
}()

// Columns are the columns of a file of companies, in the order of the fields. repeated are the
// fields whose texts many companies share.
var Columns, repeated = func() (columns imports.Columns, repeated []bool) {
	for _, v := range ofFields {
		columns.Names, repeated = append(columns.Names, v.Member), append(repeated, v.Shared)
	}
	columns.Required = columns.Names[:1]
	return columns, repeated
}()

// Import reads r.Source and writes a file. The last line of a domain is kept.
func Import(ctx context.Context, options imports.Options, r *imports.Report, to imports.File) (_ imports.Result, err error) {
	w := keyed.NewWriter(to, to.Scratch, repeated)
	defer func() { err = errors.Join(err, w.Close()) }()
	sum := imports.NewContent()
	if err := imports.Read(ctx, options, r, Columns, parse, func(c [resolution.CompanyFields]string) error {
		sum.Add(c[:]...)
		_, err := w.Add(c[:]...)
		return err
	}); err != nil {
		return imports.Result{}, err
	}
	keys, err := w.Records(ctx)
	if err != nil {
		return imports.Result{}, err
	}
	r.Replaced = r.Rows - int64(keys)
	return imports.Result{Keys: int64(keys), Content: sum.Sum()}, w.Finish()
}

// parse reads a line.
func parse(row imports.Row, r *imports.Report) (c [resolution.CompanyFields]string, ok bool) {
	copy(c[:], row.Cells)
	if c[resolution.CompanyDomain] = company.Domain(row.Cells[resolution.CompanyDomain]); c[resolution.CompanyDomain] == "" {
		r.Skip(row.Line, "domain: "+imports.EmptyOr(row.Cells[resolution.CompanyDomain], "invalid_domain"))
		return c, false
	}
	for field := range ofFields {
		switch v := &ofFields[field]; {
		case v.Kind == values.Profile:
			c[field] = company.NetworkURL(c[field])
		case v.Kind == values.Year && c[field] != "":
			year, ok := company.ParseYear(c[field])
			if c[field] = ""; ok {
				c[field] = strconv.Itoa(int(year))
			} else {
				r.Drop(row.Line, v.Member+": invalid_year")
			}
		}
	}
	return c, true
}
