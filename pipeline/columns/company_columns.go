package columns

import (
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/company"
)

// companyTables are the tables of the companies of a run, one after another. All parts share
// them: the values of a company are made once, however many rows have it. With a company a
// row, a third of the time of ip_to_company went into that.
type companyTables struct {
	wanted func(column string) bool // whether a column is written
	mu     sync.Mutex
	now    *CompanyTable
}

// Companies returns the table for the companies of the next rows.
func (l *Layout) Companies() *CompanyTable { return l.companies.current() }

// current returns the table for the next rows.
func (t *companyTables) current() *CompanyTable {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now == nil || t.now.full() {
		t.now = newCompanyTable(t.wanted)
	}
	return t.now
}

// CompanyTable is the columns of the company block, a value a company. It keeps nothing of
// the companies but these, and the pointers of AddShared. It is safe from many goroutines.
type CompanyTable struct {
	mu       sync.Mutex
	columns  [17]*valueTable // nil if it is not written
	n        int32           // companies, with the empty one of code 0
	ranges   map[string]company.Range
	shared   map[*resolution.Company]int32 // the codes of those of AddShared
	memory   any                           // of those who add companies
	reserved bool                          // room for all companies of a full table

	kinds  [17]*arrow.DictionaryType
	values []arrow.Array // by column: those of each company; nil as long as some are missing
}

var _ resolution.CompanyTable = (*CompanyTable)(nil)

// A table ends when it takes tableBytes, of which companyOverhead are those of each company
// beside its texts: its codes, and what finds them. 100,000 companies with 800 bytes of text fit,
// which is 3 times as fast as reading them again (3 M rows: 11 s of processor time, and 441 MB).
// A million do not fit. While a table follows another one, both take memory: 3 M rows then take
// 673 MB, and 580 MB with tables of 64 MiB.
const (
	tableBytes      = 112 << 20
	companyOverhead = 256
)

// knownRanges bounds the memory of ranges seen.
const knownRanges = 1 << 12

func newCompanyTable(wanted func(column string) bool) *CompanyTable {
	t := &CompanyTable{ranges: map[string]company.Range{}, shared: map[*resolution.Company]int32{}}
	for i, c := range companyColumns() {
		if !wanted(c.Name) {
			continue
		}
		t.columns[i] = newValueTable(c.Arrow)
		t.kinds[i] = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: t.columns[i].kind}
	}
	t.add(&resolution.Company{}) // code 0
	return t
}

// size is about how many bytes the companies take.
func (t *CompanyTable) size() int {
	size := companyOverhead * int(t.n)
	for c := range t.written() {
		size += len(c.texts.Data)
	}
	return size
}

func (t *CompanyTable) full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	size := t.size()
	if !t.reserved && size > tableBytes/8 {
		t.reserved = true
		t.reserve(tableBytes/size + 1)
	}
	return size > tableBytes
}

// reserve makes room for so many times the companies. Their texts would else be copied several
// times as the table grows, and the copies would take more memory than the table. The system
// provides memory when it is used. That of a full table before this one is free by now.
func (t *CompanyTable) reserve(times int) {
	runtime.GC()
	for c := range t.written() {
		c.texts.Data = append(room((times+1)*len(c.texts.Data)), c.texts.Data...)
		c.texts.Offsets = slices.Grow(c.texts.Offsets, times*len(c.texts.Offsets))
		c.of = slices.Grow(c.of, times*len(c.of))
	}
}

// room is an empty text with room for n bytes. make would write zeros, for which the system
// provides memory; a strings.Builder does not, and is the owner of its memory alone.
func room(n int) []byte {
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), n)[:0]
}

// written are the columns that are written.
func (t *CompanyTable) written() iter.Seq[*valueTable] {
	return func(yield func(*valueTable) bool) {
		for _, c := range t.columns {
			if c != nil && !yield(c) {
				return
			}
		}
	}
}

// Add copies a company, and returns its code.
func (t *CompanyTable) Add(c *resolution.Company) int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.add(c)
}

// AddShared returns the code of a company that does not change. It copies one that is new.
func (t *CompanyTable) AddShared(c *resolution.Company) int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	code, known := t.shared[c]
	if !known {
		code = t.add(c)
		t.shared[c] = code
	}
	return code
}

// Memory is that of resolution.CompanyTable.
func (t *CompanyTable) Memory(begin func() any) any {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.memory == nil {
		t.memory = begin()
	}
	return t.memory
}

// fill adds the columns of rows with these codes, as dictionary arrays that share them.
func (t *CompanyTable) fill(codes arrow.Array, to *blocks) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.values == nil {
		t.values = make([]arrow.Array, len(t.columns))
		for i, c := range t.columns {
			if c != nil {
				t.values[i] = c.snapshot()
			}
		}
	}
	for i, values := range t.values {
		to.add(func() arrow.Array { return array.NewDictionaryArray(t.kinds[i], codes, values) })
	}
}

// companyFiller builds the company block as Arrow dictionary arrays, which share the codes
// of the rows. Without a table of the layout there are no companies.
type companyFiller struct{ tables *companyTables }

func (f *companyFiller) fill(b *Batch, to *blocks) {
	of := &b.Answers.Companies
	table, known := of.Table.(*CompanyTable)
	if !known {
		table = f.tables.current()
	}
	of.Codes = resolution.Pad(of.Codes, b.Len(), 0)
	codes := int32Array(of.Codes)
	defer codes.Release()
	table.fill(codes, to)
}

func (t *CompanyTable) add(c *resolution.Company) (code int32) {
	code = t.n
	t.n++
	t.values = nil
	industry, founded := "", int32(0)
	if c.Industry != nil {
		industry = *c.Industry
	}
	if c.YearFounded != nil {
		founded = *c.YearFounded
	}
	next := 0
	column := func() *valueTable { next++; return t.columns[next-1] }
	text := func(v string) { column().addText(v) }
	bounds := func(r company.Range) {
		addNumber(column(), r.Min, r.HasMin)
		addNumber(column(), r.Max, r.HasMax)
	}
	text(c.Name)
	text(company.Domain(c.Domain))
	text(c.WebsiteURL)
	text(company.NetworkURL(c.NetworkURL))
	text(industry)
	text(c.Revenue)
	bounds(t.parsed(c.Revenue))
	text(c.EmployeeCount)
	bounds(t.parsed(c.EmployeeCount))
	addNumber(column(), founded, c.YearFounded != nil)
	text(c.Address.Street)
	text(c.Address.ZipCode)
	text(c.Address.City)
	text(c.Address.State)
	text(c.About)
	return code
}

// parsed is a range. It remembers those seen: few texts are ever seen.
func (t *CompanyTable) parsed(text string) company.Range {
	if text == "" {
		return company.Range{}
	}
	r, known := t.ranges[text]
	if !known {
		if len(t.ranges) == knownRanges {
			clear(t.ranges)
		}
		r = company.ParseRange(text)
		t.ranges[strings.Clone(text)] = r
	}
	return r
}
