package companies

import (
	"context"
	"errors"
	"strconv"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/transforms/company"
)

// Columns are the columns of a file of companies, in the order of the fields.
var Columns = imports.Columns{
	Names: []string{"domain", "name", "website_url", "network_url", "industry", "revenue", "employee_count", "year_founded",
		"street", "zip_code", "city", "state", "about"},
	Required: []string{"domain"},
}

// repeated are the fields whose texts many companies share.
var repeated = []bool{
	resolution.CompanyIndustry: true, resolution.CompanyRevenue: true, resolution.CompanyEmployeeCount: true, resolution.CompanyYearFounded: true,
	resolution.CompanyZipCode: true, resolution.CompanyCity: true, resolution.CompanyState: true, resolution.CompanyAbout: false,
}

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
	c[resolution.CompanyNetworkURL], c[resolution.CompanyYearFounded] = company.NetworkURL(c[resolution.CompanyNetworkURL]), ""
	if year, ok := company.ParseYear(row.Cells[resolution.CompanyYearFounded]); ok {
		c[resolution.CompanyYearFounded] = strconv.Itoa(int(year))
	} else if row.Cells[resolution.CompanyYearFounded] != "" {
		r.Drop(row.Line, "year_founded: invalid_year")
	}
	return c, true
}
