package columns

import (
	"iter"
	"slices"
	"strconv"
	"sync"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/values"
	"github.com/leadetl/leadetl/transforms/company"
)

// companyTables are the tables of the companies of a run, one after another. All parts share
// them: the values of a company are made once, however many rows have it. With a company a
// row, a third of the time of ip_to_company went into that.
type companyTables struct {
	wanted func(column string) bool // whether a column is written
	mu     sync.Mutex
	now    *CompanyTable
	rows   map[*resolution.CompanyRows]*companyRows
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
	mu      sync.Mutex
	columns [len(values.Company)]*valueTable // nil if it is not written
	n       int32                            // companies, with the empty one of code 0
	ranges  company.Ranges
	shared  map[*resolution.Company]int32 // the codes of those of AddShared

	kinds  [len(values.Company)]*arrow.DictionaryType
	values []arrow.Array // by column: those of each company; nil as long as some are missing
}

var _ resolution.CompanyTable = (*CompanyTable)(nil)

// A table ends when it takes tableBytes, of which companyOverhead are those of each company
// beside its texts: its codes, views of its texts, and what finds them. While a table follows
// another one, both take memory.
const (
	tableBytes      = 96 << 20
	companyOverhead = 320
)

func newCompanyTable(wanted func(column string) bool) *CompanyTable {
	t := &CompanyTable{shared: map[*resolution.Company]int32{}}
	for i, c := range values.Company {
		if !wanted(c.Name) {
			continue
		}
		t.columns[i] = newValueTable(c.Arrow)
		t.kinds[i] = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: t.columns[i].kind}
	}
	t.add(&resolution.CompanyRecord{}) // code 0
	return t
}

// size is about how many bytes the companies take.
func (t *CompanyTable) size() int {
	size := companyOverhead * int(t.n)
	for c := range t.written() {
		size += c.texts.copied
	}
	return size
}

func (t *CompanyTable) full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size() > tableBytes
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

// Add is that of resolution.CompanyTable.
func (t *CompanyTable) Add(r resolution.CompanyRecord) int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.add(&r)
}

// AddShared returns the code of a company that does not change. It copies one that is new.
func (t *CompanyTable) AddShared(c *resolution.Company) int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	code, known := t.shared[c]
	if !known {
		r := c.Record()
		code = t.add(&r)
		t.shared[c] = code
	}
	return code
}

// TakesRows is true.
func (t *CompanyTable) TakesRows() bool { return true }

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
	of.Codes = resolution.Pad(of.Codes, b.Len(), 0)
	codes := int32Array(of.Codes)
	defer codes.Release()
	if of.Rows != nil {
		f.tables.ofRows(of.Rows).fill(codes, to)
		return
	}
	table, known := of.Table.(*CompanyTable)
	if !known {
		table = f.tables.current()
	}
	table.fill(codes, to)
}

// companyValues are the values of the columns of the company block: the field of each, and what
// its text becomes.
var companyValues = func() (of [len(values.Company)]struct {
	field int
	code  func(t *CompanyTable, column *valueTable, text string) int32
}) {
	for i, v := range values.Company {
		of[i].field = v.Company
		switch v.Kind {
		case values.Domain:
			of[i].code = func(_ *CompanyTable, c *valueTable, text string) int32 { return c.codeOf(company.Domain(text)) }
		case values.Profile:
			of[i].code = func(_ *CompanyTable, c *valueTable, text string) int32 { return c.codeOf(company.NetworkURL(text)) }
		case values.Year:
			of[i].code = func(_ *CompanyTable, c *valueTable, text string) int32 {
				year, err := strconv.ParseInt(text, 10, 32)
				return codeOfNumber(c, int32(year), err == nil)
			}
		case values.MadeLeast:
			of[i].code = smallest
		case values.MadeMost:
			of[i].code = largest
		default:
			of[i].code = func(_ *CompanyTable, c *valueTable, text string) int32 { return c.codeOf(text) }
		}
	}
	return of
}()

func smallest(t *CompanyTable, c *valueTable, text string) int32 {
	r := t.ranges.Parse(text)
	return codeOfNumber(c, r.Min, r.HasMin)
}

func largest(t *CompanyTable, c *valueTable, text string) int32 {
	r := t.ranges.Parse(text)
	return codeOfNumber(c, r.Max, r.HasMax)
}

// add adds a company to all columns or, when its texts cannot be read any more, to none.
func (t *CompanyTable) add(r *resolution.CompanyRecord) (code int32) {
	var codes [len(t.columns)]int32
	for i, c := range t.columns {
		if c == nil {
			continue
		}
		value := &companyValues[i]
		codes[i] = value.code(t, c, r.Fields[value.field].Text)
	}
	for i, c := range t.columns {
		if c != nil {
			c.of = append(c.of, codes[i])
		}
	}
	t.values = nil
	t.n++
	return t.n - 1
}

// companyRows are the companies of reference data as dictionary arrays over their memory, by column;
// nil for one that is not written.
type companyRows struct {
	kinds  [resolution.CompanyColumns]*arrow.DictionaryType
	values [resolution.CompanyColumns]arrow.Array
}

// ofRows returns the arrays of companies. All parts share them.
func (t *companyTables) ofRows(of *resolution.CompanyRows) *companyRows {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.rows[of]; known != nil {
		return known
	}
	made, most := &companyRows{}, 0
	for i := range of.Columns {
		most = max(most, of.Columns[i].Len())
	}
	valid := slices.Repeat([]byte{0xff}, int(bitutil.BytesForBits(int64(most))))
	valid[0] &^= 1
	for i, v := range values.Company {
		if t.wanted(v.Name) {
			column := valuesOf(&of.Columns[i], v.Arrow, valid)
			made.values[i] = column
			made.kinds[i] = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: column.DataType()}
		}
	}
	if t.rows == nil {
		t.rows = map[*resolution.CompanyRows]*companyRows{}
	}
	t.rows[of] = made
	return made
}

// valuesOf is a column as a dictionary array of its values.
func valuesOf(c *resolution.CompanyColumn, kind arrow.DataType, valid []byte) arrow.Array {
	buffers := []*memory.Buffer{memory.NewBufferBytes(valid), memory.NewBufferBytes(c.Bytes)}
	if c.Offsets != nil {
		kind = arrow.BinaryTypes.LargeString
		buffers = slices.Insert(buffers, 1, memory.NewBufferBytes(arrow.Uint64Traits.CastToBytes(c.Offsets)))
	}
	data := array.NewData(kind, c.Len(), buffers, nil, array.UnknownNullCount, 0)
	defer data.Release()
	texts := array.MakeFromData(data)
	defer texts.Release()
	codes := array.NewData(arrow.PrimitiveTypes.Int32, len(c.Codes), []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Uint32Traits.CastToBytes(c.Codes))}, nil, 0, 0)
	defer codes.Release()
	indices := array.NewInt32Data(codes)
	defer indices.Release()
	column := array.NewDictionaryArray(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: kind}, indices, texts)
	column.Dictionary() // Arrow keeps it when it is asked for first: encoders of other parts have the array too
	return column
}

// fill adds the columns of rows.
func (r *companyRows) fill(codes arrow.Array, to *blocks) {
	for i, values := range r.values {
		to.add(func() arrow.Array { return array.NewDictionaryArray(r.kinds[i], codes, values) })
	}
}
