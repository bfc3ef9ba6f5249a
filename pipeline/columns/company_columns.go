package columns

import (
	"sync"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/company"
)

// companyTables brings the companies of rows into columns. Its tables are shared
// by all parts of a run: the values of a company are made once, however many rows
// have it. With a company a row, a third of the time of ip_to_company went into
// that. It is safe from many goroutines.
type companyTables struct {
	mu  sync.Mutex
	now *companyTable
	// ranges are those seen, by text: few are ever seen.
	ranges map[string]company.Range
}

// companyTable is the columns of the company block, a value a company.
type companyTable struct {
	codes   map[*resolution.Company]int32
	columns [17]*valueTable
	sizes   []int32 // of texts, by code
	bytes   int
	last    companyCodes // without codes; of as many companies as it has values
}

// companyCodes are the companies of the rows of a batch.
type companyCodes struct {
	codes  []int32 // by row
	sizes  []int32 // of texts, by code
	kinds  [17]*arrow.DictionaryType
	of     [17][]int32   // by column: the code in values of each company
	values []arrow.Array // by column; nil as long as codes are not known
}

// A table ends when it has so many companies, or so many bytes of text.
const (
	tableCompanies = 1 << 17
	tableBytes     = 16 << 20
)

// knownRanges bounds the memory of ranges seen.
const knownRanges = 1 << 12

func newCompanyTables() *companyTables {
	t := &companyTables{ranges: map[string]company.Range{}}
	t.start()
	return t
}

var noCompany = &resolution.Company{}

// start starts a table, which has noCompany at 0.
func (t *companyTables) start() {
	t.now = &companyTable{codes: map[*resolution.Company]int32{}}
	for i, c := range companyColumns() {
		t.now.columns[i] = newValueTable(c.Arrow)
		t.now.last.kinds[i] = t.now.columns[i].kind
	}
	t.add(noCompany)
}

// take sets the codes of a batch.
func (t *companyTables) take(b *Batch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.now.codes) > tableCompanies || t.now.bytes > tableBytes {
		t.start()
	}
	codes := resize(b.companies.codes, b.Len())
	for i := range b.Len() {
		if c := b.company(i); c != noCompany {
			code, known := t.now.codes[c]
			if !known {
				code = t.add(c)
			}
			codes[i] = code
		}
	}
	last := &t.now.last
	if len(last.sizes) < len(t.now.sizes) {
		last.sizes, last.values = t.now.sizes, nil
		for i, c := range t.now.columns {
			last.of[i] = c.of
			last.values = append(last.values, c.values())
		}
	}
	b.companies = *last
	b.companies.codes = codes
}

// bytes is the text of a row's company.
func (c *companyCodes) bytes(i int) int { return int(c.sizes[c.codes[i]]) }

// companyFiller builds the company block as Arrow dictionary arrays.
type companyFiller struct {
	tables  *companyTables
	columns [17]codedColumn
}

func (f *companyFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	if b.companies.values == nil {
		f.tables.take(b)
	}
	for i, values := range b.companies.values {
		to = append(to, f.columns[i].over(b.companies.kinds[i], b.companies.codes, b.companies.of[i], values))
	}
	return to
}

// add takes a company into the table.
func (ts *companyTables) add(c *resolution.Company) (code int32) {
	t := ts.now
	code = int32(len(t.codes))
	t.codes[c] = code
	size := companyBytes(c)
	t.bytes += size
	t.sizes = append(t.sizes, int32(size))
	industry, founded := "", int32(0)
	if c.Industry != nil {
		industry = *c.Industry
	}
	if c.YearFounded != nil {
		founded = *c.YearFounded
	}
	next := 0
	text := func(v string) { t.columns[next].addText(v); next++ }
	bounds := func(r company.Range) {
		addNumber(t.columns[next], r.Min, r.HasMin)
		addNumber(t.columns[next+1], r.Max, r.HasMax)
		next += 2
	}
	text(c.Name)
	text(company.Domain(c.Domain))
	text(c.WebsiteURL)
	text(company.NetworkURL(c.NetworkURL))
	text(industry)
	text(c.Revenue)
	bounds(ts.parsed(c.Revenue))
	text(c.EmployeeCount)
	bounds(ts.parsed(c.EmployeeCount))
	addNumber(t.columns[next], founded, c.YearFounded != nil)
	next++
	text(c.Address.Street)
	text(c.Address.ZipCode)
	text(c.Address.City)
	text(c.Address.State)
	text(c.About)
	return code
}

func (ts *companyTables) parsed(text string) company.Range {
	if text == "" {
		return company.Range{}
	}
	r, known := ts.ranges[text]
	if !known {
		if len(ts.ranges) == knownRanges {
			clear(ts.ranges)
		}
		r = company.ParseRange(text)
		ts.ranges[text] = r
	}
	return r
}
