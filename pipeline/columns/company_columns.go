package columns

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/company"
)

// companyFiller builds the company block.
type companyFiller struct {
	head      texts // name … industry
	revenue   rangeBuilder
	employees rangeBuilder
	founded   *array.Int32Builder
	tail      texts                    // street … about
	ranges    map[string]company.Range // by text; there are few
}

// knownRanges bounds the remembered ranges.
const knownRanges = 1 << 12

func newCompanyFiller() *companyFiller {
	return &companyFiller{
		head: newTexts(5), revenue: newRangeBuilder(), employees: newRangeBuilder(),
		founded: array.NewInt32Builder(memory.DefaultAllocator), tail: newTexts(5),
		ranges: map[string]company.Range{},
	}
}

var noCompany = &resolution.Company{}

func (f *companyFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	f.head.start(b.Len())
	f.revenue.start(b.Len())
	f.employees.start(b.Len())
	f.founded.Reserve(b.Len())
	f.tail.start(b.Len())
	for i := range b.Len() {
		c := b.company(i)
		industry := ""
		if c.Industry != nil {
			industry = *c.Industry
		}
		f.head.append(c.Name, company.Domain(c.Domain), c.WebsiteURL, company.NetworkURL(c.NetworkURL), industry)
		f.revenue.append(c.Revenue, f.parsed(c.Revenue))
		f.employees.append(c.EmployeeCount, f.parsed(c.EmployeeCount))
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

func (f *companyFiller) parsed(text string) company.Range {
	if text == "" {
		return company.Range{}
	}
	r, known := f.ranges[text]
	if !known {
		if len(f.ranges) == knownRanges {
			clear(f.ranges)
		}
		r = company.ParseRange(text)
		f.ranges[text] = r
	}
	return r
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

func (b *rangeBuilder) start(n int) {
	b.text.start(n)
	b.min.Reserve(n)
	b.max.Reserve(n)
}

func (b *rangeBuilder) append(text string, r company.Range) {
	b.text.append(text)
	appendKnown(b.min, r.Min, r.HasMin)
	appendKnown(b.max, r.Max, r.HasMax)
}

func (b *rangeBuilder) finish(to []arrow.Array) []arrow.Array {
	return append(b.text.finish(to), b.min.NewArray(), b.max.NewArray())
}
