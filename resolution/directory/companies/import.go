package companies

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"

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

// Columns are the columns of a file of companies, in the order of the fields.
var Columns = func() (columns imports.Columns) {
	for _, v := range ofFields {
		columns.Names = append(columns.Names, v.Member)
	}
	columns.Required = columns.Names[:1]
	return columns
}()

// names and widths are those of the columns of a Table, and domainColumn has the domain.
var (
	names  = columnNames()
	widths = func() (widths []int) {
		for _, v := range values.Company {
			width := 0
			if number, is := v.Arrow.(arrow.FixedWidthDataType); is {
				width = number.Bytes()
			}
			widths = append(widths, width)
		}
		return widths
	}()
	domainColumn = slices.Index(names, "company_domain")
)

func columnNames() (names []string) {
	for _, v := range values.Company {
		names = append(names, v.Name)
	}
	return names
}

// Import reads r.Source and writes a file. The last line of a domain is found.
func Import(ctx context.Context, options imports.Options, r *imports.Report, to imports.File) (_ imports.Result, err error) {
	keys, table := keyed.NewIndexWriter(to.Scratch, keyed.Last), keyed.NewTableWriter(to.Scratch, names, widths)
	defer func() { err = errors.Join(err, keys.Close(), table.Close()) }()
	sum, made := imports.NewContent(), newMaker()
	if err := imports.Read(ctx, options, r, Columns, parse, func(c [resolution.CompanyFields]string) error {
		sum.Add(c[:]...)
		row, err := table.Add(made.row(&c)...)
		return errors.Join(err, keys.Add(keyed.HashOf(c[resolution.CompanyDomain]), row, false))
	}); err != nil {
		return imports.Result{}, err
	}
	w := keyed.NewColumnWriter(to, keyed.MappedPages)
	n, err := keys.Write(ctx, w, "keys", nil, nil)
	if err := errors.Join(err, table.Write(ctx, w)); err != nil {
		return imports.Result{}, err
	}
	r.Replaced = r.Rows - int64(n)
	return imports.Result{Keys: int64(n), Content: sum.Sum()}, w.Finish()
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

// maker makes the values of the columns of companies.
type maker struct {
	ranges company.Ranges
	values [][]byte
}

func newMaker() *maker { return &maker{values: make([][]byte, len(names))} }

// row returns the values of a company, valid until the next call.
func (m *maker) row(c *[resolution.CompanyFields]string) [][]byte {
	for i := range values.Company {
		v := &values.Company[i]
		text := c[v.Company]
		m.values[i] = nil
		switch v.Kind {
		case values.Year:
			if year, err := strconv.ParseInt(text, 10, 32); err == nil {
				m.values[i] = keyed.Number(int32(year))
			}
		case values.MadeLeast:
			if r := m.ranges.Parse(text); r.HasMin {
				m.values[i] = keyed.Number(r.Min)
			}
		case values.MadeMost:
			if r := m.ranges.Parse(text); r.HasMax {
				m.values[i] = keyed.Number(r.Max)
			}
		default:
			m.values[i] = unsafe.Slice(unsafe.StringData(text), len(text))
		}
	}
	return m.values
}

// textOf is a value as the text of its field.
func textOf(v *values.Value, value []byte) string {
	if v.Kind == values.Year && len(value) > 0 {
		return strconv.Itoa(int(int32(binary.NativeEndian.Uint32(value))))
	}
	return unsafe.String(unsafe.SliceData(value), len(value))
}
