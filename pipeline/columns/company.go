package columns

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/company"
)

// addressFiller builds ip_class and org_type.
type addressFiller struct{ texts texts }

func newAddressFiller() *addressFiller { return &addressFiller{newTexts(2)} }

func (f *addressFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	for i := range b.Len() {
		f.texts.append(b.IPClasses[i], b.OrgTypes[i])
	}
	return f.texts.finish(to)
}

// companyFiller builds the company block.
type companyFiller struct {
	head      texts // name … industry
	revenue   rangeBuilder
	employees rangeBuilder
	founded   *array.Int32Builder
	tail      texts // street … about
	known     map[*resolution.Company]companyFields
}

// companyFields are what is worked out of a company once for many rows.
type companyFields struct {
	domain, network    string
	revenue, employees company.Range
}

// knownCompanies bounds the memory of companies seen; a resolver hands out
// the same pointer for the same company where it can.
const knownCompanies = 1 << 14

func newCompanyFiller() *companyFiller {
	return &companyFiller{
		head: newTexts(5), revenue: newRangeBuilder(), employees: newRangeBuilder(),
		founded: array.NewInt32Builder(memory.DefaultAllocator), tail: newTexts(5),
		known: map[*resolution.Company]companyFields{},
	}
}

var noCompany = &resolution.Company{}

func (f *companyFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	for i := range b.Len() {
		c := b.lead(i).Company
		if c == nil {
			c = noCompany
		}
		fields := f.fields(c)
		industry := ""
		if c.Industry != nil {
			industry = *c.Industry
		}
		f.head.append(c.Name, fields.domain, c.WebsiteURL, fields.network, industry)
		f.revenue.append(c.Revenue, fields.revenue)
		f.employees.append(c.EmployeeCount, fields.employees)
		if c.YearFounded == nil {
			f.founded.AppendNull()
		} else {
			f.founded.Append(*c.YearFounded)
		}
		f.tail.append(c.Address.Street, c.Address.ZipCode, c.Address.City, c.Address.State, c.About)
	}
	to = f.employees.finish(f.revenue.finish(f.head.finish(to)))
	return f.tail.finish(append(to, f.founded.NewArray()))
}

func (f *companyFiller) fields(c *resolution.Company) companyFields {
	if known, ok := f.known[c]; ok {
		return known
	}
	if len(f.known) == knownCompanies {
		clear(f.known)
	}
	fields := companyFields{
		domain: company.Domain(c.Domain), network: company.NetworkURL(c.NetworkURL),
		revenue: company.ParseRange(c.Revenue), employees: company.ParseRange(c.EmployeeCount),
	}
	f.known[c] = fields
	return fields
}

// rangeBuilder builds a text range and its two bounds.
type rangeBuilder struct {
	text     texts
	min, max *array.Int64Builder
}

func newRangeBuilder() rangeBuilder {
	mem := memory.DefaultAllocator
	return rangeBuilder{newTexts(1), array.NewInt64Builder(mem), array.NewInt64Builder(mem)}
}

func (b *rangeBuilder) append(text string, r company.Range) {
	b.text.append(text)
	appendBound(b.min, r.Min, r.HasMin)
	appendBound(b.max, r.Max, r.HasMax)
}

func appendBound(to *array.Int64Builder, bound int64, known bool) {
	if known {
		to.Append(bound)
	} else {
		to.AppendNull()
	}
}

func (b *rangeBuilder) finish(to []arrow.Array) []arrow.Array {
	return append(b.text.finish(to), b.min.NewArray(), b.max.NewArray())
}
