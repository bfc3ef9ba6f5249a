package columns

import (
	"sync"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

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
	bytes   int          // of texts
	last    companyCodes // without codes; of as many companies as it has values
}

// companyCodes are the companies of the rows of a batch.
type companyCodes struct {
	codes     []int32 // by row
	companies int     // of the table, when values were made
	kinds     [17]*arrow.DictionaryType
	values    []arrow.Array // by column: those of each company; nil as long as codes are not known
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
		t.now.last.kinds[i] = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: t.now.columns[i].kind}
	}
	t.add(noCompany)
}

// companyCoder finds the codes of companies for one Builder. It remembers those that it has
// seen, so that it rarely waits for the tables, which all parts share.
type companyCoder struct {
	tables *companyTables
	table  *companyTable // of known and last
	known  []knownCompany
	last   companyCodes // without codes
	missed []int        // rows
}

// knownCompany is a company with its code.
type knownCompany struct {
	company *resolution.Company
	code    int32
}

// knownCompanies is how many companies a companyCoder remembers. Of two with the same
// place, it remembers the last.
const knownCompanies = 1 << 17

// place is where the coder remembers a company.
func (r *companyCoder) place(c *resolution.Company) *knownCompany {
	h := uint64(uintptr(unsafe.Pointer(c))) * 0x9E3779B97F4A7C15
	return &r.known[h>>(64-17)]
}

// take sets the codes of a batch.
func (r *companyCoder) take(b *Batch) {
	if r.known == nil {
		r.known = make([]knownCompany, knownCompanies)
	}
	codes := resize(b.companies.codes, b.Len())
	r.missed = r.missed[:0]
	for i := range codes {
		c := b.company(i)
		if c == noCompany {
			continue // its code is 0 in every table
		}
		if k := r.place(c); k.company == c {
			codes[i] = k.code
		} else {
			r.missed = append(r.missed, i)
		}
	}
	if len(r.missed) > 0 || r.table == nil {
		r.ask(b, codes)
	}
	b.companies = r.last
	b.companies.codes = codes
}

// ask sets the codes of missed rows. If there is a new table, it sets those of all rows.
func (r *companyCoder) ask(b *Batch, codes []int32) {
	t := r.tables
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.now.codes) > tableCompanies || t.now.bytes > tableBytes {
		t.start()
	}
	if r.table != t.now {
		r.table = t.now
		clear(r.known)
		r.missed = r.missed[:0]
		for i := range codes {
			r.missed = append(r.missed, i)
		}
	}
	for _, i := range r.missed {
		c := b.company(i)
		code, known := t.now.codes[c]
		if !known {
			code = t.add(c)
		}
		codes[i], *r.place(c) = code, knownCompany{c, code}
	}
	r.last = t.now.snapshot()
}

// snapshot is the table as it is now. It stays as it is when companies are added.
func (t *companyTable) snapshot() companyCodes {
	last := &t.last
	if last.companies < len(t.codes) {
		last.companies, last.values = len(t.codes), nil
		for _, c := range t.columns {
			last.values = append(last.values, c.snapshot())
		}
	}
	return *last
}

// companyFiller builds the company block as Arrow dictionary arrays, which share the codes
// of the rows.
type companyFiller struct{ coder *companyCoder }

func (f *companyFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	if b.companies.values == nil {
		f.coder.take(b)
	}
	codes := int32Array(b.companies.codes)
	defer codes.Release()
	for i, values := range b.companies.values {
		to = append(to, array.NewDictionaryArray(b.companies.kinds[i], codes, values))
	}
	return to
}

// add takes a company into the table.
func (ts *companyTables) add(c *resolution.Company) (code int32) {
	t := ts.now
	code = int32(len(t.codes))
	t.codes[c] = code
	t.bytes += companyBytes(c)
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
