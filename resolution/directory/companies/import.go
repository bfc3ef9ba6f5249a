package companies

import (
	"context"
	"errors"
	"strconv"

	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/resolution/directory/records"
	"github.com/leadetl/leadetl/transforms/company"
)

// Columns are the columns of a file of companies, in the order of the fields.
var Columns = imports.Columns{
	Names: []string{"domain", "name", "website_url", "network_url", "industry", "revenue", "employee_count", "year_founded",
		"street", "zip_code", "city", "state", "about"},
	Required: []string{"domain"},
}

// repeated are the fields whose texts many companies share.
var repeated = []bool{industry: true, revenue: true, employeeCount: true, yearFounded: true, zipCode: true, city: true, state: true, about: false}

// Import reads r.Source and writes the file at path under its temporary name. The last line
// of a domain is kept.
func Import(ctx context.Context, options imports.Options, r *imports.Report, path string) (_ imports.Result, err error) {
	w, err := records.NewWriter(path, repeated)
	if err != nil {
		return imports.Result{}, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	sum := imports.NewContent()
	if err := imports.Read(ctx, options, r, Columns, parse, func(c [fields]string) error {
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
func parse(row imports.Row, r *imports.Report) (c [fields]string, ok bool) {
	copy(c[:], row.Cells)
	if c[domain] = company.Domain(row.Cells[domain]); c[domain] == "" {
		r.Skip(row.Line, "domain: "+imports.EmptyOr(row.Cells[domain], "invalid_domain"))
		return c, false
	}
	c[networkURL], c[yearFounded] = company.NetworkURL(c[networkURL]), ""
	if year, ok := company.ParseYear(row.Cells[yearFounded]); ok {
		c[yearFounded] = strconv.Itoa(int(year))
	} else if row.Cells[yearFounded] != "" {
		r.Drop(row.Line, "year_founded: invalid_year")
	}
	return c, true
}
