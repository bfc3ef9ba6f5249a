package directory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/leadetl/leadetl/internal/tabular"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/transforms/company"
)

var companyColumns = tabular.Columns{
	Names: []string{"domain", "name", "website_url", "network_url", "industry", "revenue", "employee_count", "year_founded",
		"street", "zip_code", "city", "state", "about"},
	Required: []string{"domain"},
}

const companySchema = `
CREATE TABLE companies(id INTEGER PRIMARY KEY, domain TEXT NOT NULL, name TEXT, website_url TEXT, network_url TEXT,
	industry TEXT, revenue TEXT, employee_count TEXT, year_founded INTEGER, street TEXT, zip_code TEXT, city TEXT, state TEXT,
	about TEXT);`

// companyIndex: of lines with one domain the last stays.
const companyIndex = `
CREATE INDEX companies_domain ON companies(domain);
DELETE FROM companies AS a WHERE EXISTS (SELECT 1 FROM companies b WHERE b.domain = a.domain AND b.id > a.id);`

func (im *importer) companies(ctx context.Context, r *imports.Report) (entry, error) {
	l := loading{
		want:   companyColumns,
		schema: companySchema,
		tables: []tableColumns{{"companies", companyColumns.Names}},
		index:  companyIndex,
		keys:   "SELECT count(*) FROM companies",
	}
	e, err := im.load(ctx, Companies, r, l, func(row tabular.Row, into []*inserter, sum *imports.Content) error {
		c := row.Cells
		domain := company.Domain(c[0])
		if domain == "" {
			r.Skip(row.Line, "domain: "+imports.EmptyOr(c[0], "invalid_domain"))
			return nil
		}
		r.Rows++
		var founded any
		if year, ok := company.ParseYear(c[7]); ok {
			founded = year
		} else if c[7] != "" {
			r.Drop(row.Line, "year_founded: invalid_year")
		}
		page := company.NetworkURL(c[3])
		sum.Add(domain, c[1], c[2], page, c[4], c[5], c[6], fmt.Sprint(founded), c[8], c[9], c[10], c[11], c[12])
		return into[0].add(domain, c[1], c[2], page, c[4], c[5], c[6], founded, c[8], c[9], c[10], c[11], c[12])
	})
	r.Replaced = r.Rows - e.Keys
	return e, err
}

// Company finds a company by its domain in canonical form; nil when there is
// none. The company is shared: do not change it.
func (d *Directory) Company(ctx context.Context, domain string) (*resolution.Company, error) {
	if err := ctx.Err(); err != nil || d.companies == nil || domain == "" {
		return nil, err
	}
	return d.companies.find(domain)
}

// companyReader remembers companies: people share them, and reading one costs
// as much as reading a person.
type companyReader struct {
	*sqliteFile
	byDomain   *sql.Stmt
	remembered remembered[string, resolution.Company]
}

// A remembered company is some 600 bytes, and never more than 1.5 kB: all of
// them are about 20 MB.
const rememberedCompaniesBits = 15

func openCompanies(path string) (*companyReader, error) {
	f, err := openSQLite(path)
	if err != nil {
		return nil, err
	}
	byDomain, err := f.db.Prepare(`SELECT domain, name, website_url, network_url, industry, revenue, employee_count, year_founded,
		street, zip_code, city, state, about FROM companies WHERE domain = ?`)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &companyReader{f, byDomain, remember[string, resolution.Company](rememberedCompaniesBits)}, nil
}

// find returns a company that is shared: it must not be changed.
func (r *companyReader) find(domain string) (*resolution.Company, error) {
	hash := xxh3.HashString(domain)
	if c := r.remembered.find(hash, domain); c != nil {
		return c, nil
	}
	m := &recollection[string, resolution.Company]{}
	found, err := r.read(domain, &m.value)
	if !found || err != nil {
		return nil, err
	}
	if len(pack(&m.value)) <= rememberedText {
		m.key = m.value.Domain
		r.remembered.keep(hash, m)
	}
	return &m.value, nil
}

// read reads a company from the file into c, which is zero.
func (r *companyReader) read(domain string, c *resolution.Company) (found bool, err error) {
	var industry string
	var founded sql.NullInt32
	err = r.byDomain.QueryRow(domain).Scan(&c.Domain, &c.Name, &c.WebsiteURL, &c.NetworkURL, &industry, &c.Revenue,
		&c.EmployeeCount, &founded, &c.Address.Street, &c.Address.ZipCode, &c.Address.City, &c.Address.State, &c.About)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if industry != "" {
		c.Industry = &industry
	}
	if founded.Valid {
		c.YearFounded = &founded.Int32
	}
	return true, nil
}
