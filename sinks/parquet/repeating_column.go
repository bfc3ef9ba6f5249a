package parquet

import (
	"math"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
)

const (
	// dictionaryBytes is the maximum size of a dictionary's values in a row group. The format
	// has no limit; Arrow's writer stops at 1 MiB, and DuckDB's at 1 GiB. What 100,000 companies
	// say of themselves has 25 MiB in a row group: with a dictionary, a file of ip_to_company
	// took 143 MB in place of 252.
	dictionaryBytes = 32 << 20
	// triedValues is how many values a dictionary takes before it is given up
	// where less than half of the rows have a value that came before. Where many
	// files are open it is fewer: each file has a dictionary for every column.
	triedValues        = 1 << 17
	triedValuesGrowing = 1 << 8
)

// dictionaryLimit bounds the size of a dictionary.
type dictionaryLimit struct {
	bytes int // of the values
	tried int // values, unless each comes twice on average
}

// repeatingColumn is a flat column of text or numbers. It uses a dictionary if
// that makes the row group smaller, and plain pages otherwise. The choice
// depends only on the values and their order.
type repeatingColumn struct {
	plain   *textColumn   // pages without a dictionary
	numbers *numberColumn // whose pages they are, nil for text
	most    dictionaryLimit
	rowGroupMemory
	shared sharedColumn // rows, if rows of rowGroupMemory has none
	there  int          // rows that are not null
	gaveUp bool         // the row group is in plain
	coded  []*page      // of numbers, once the row group is encoded
	packed packedDictionary
}

// rowGroupMemory is what a repeatingColumn holds of the open row group. A part
// uses the memory of the part before.
type rowGroupMemory struct {
	values dictionary
	rows   []uint32 // the number of each row's value + 1, 0 for null
	seen   seenCodes
	// sharedNumbers is the memory of sharedColumn.numbers, as long as no column has it.
	sharedNumbers []uint32
}

// seenCodes are the codes of a table that the row group has had. Records whose
// dictionary arrays have one type object share a table, whose values are distinct:
// a code means the same value in all of them, and no other code does.
type seenCodes struct {
	table   arrow.DataType
	numbers []uint32 // of the value + 1, by code; 0 for one not seen, or seenNull
	alone   bool     // all values of the row group are the table's
}

const seenNull = math.MaxUint32

// What a row and a value of a dictionary take beside the text.
const (
	rowBytes   = 4
	valueBytes = 8
)

func (c *repeatingColumn) held() int {
	c.settle()
	return c.plain.held() + rowBytes*max(c.shared.end, len(c.rows)) + valueBytes*c.values.len() + len(c.values.data)
}

func newRepeatingColumn(plain *textColumn, shared *sharedRows) *repeatingColumn {
	c := &repeatingColumn{plain: plain, most: dictionaryLimit{dictionaryBytes, triedValues}}
	c.rowGroupMemory, _ = plain.pool.columns.take()
	c.shared.rows, c.shared.numbers = shared, c.sharedNumbers[:0]
	c.values.width = 0 // the memory may come from another type of column
	if plain.pool.Growing {
		c.most.tried = triedValuesGrowing
	}
	return c
}

func newRepeatingNumbers(numbers *numberColumn, shared *sharedRows) *repeatingColumn {
	c := newRepeatingColumn(&numbers.textColumn, shared)
	c.numbers, c.values.width = numbers, numbers.width
	return c
}

func (c *repeatingColumn) add(a arrow.Array) {
	d, inner, shares := sharedCodes(a)
	switch {
	case a.Len() == 0:
	case shares:
		c.addShared(d, inner)
	case d != nil:
		c.unshare()
		values := cellsOf(d.Dictionary(), c.values.width)
		c.addCodes(d.DataType(), d.Indices().(*array.Int32).Int32Values(), &values)
	default:
		if c.unshare(); c.gaveUp {
			c.addPlain(a)
		} else {
			c.addCells(a)
		}
	}
}

func (c *repeatingColumn) addPlain(a arrow.Array) {
	if c.numbers != nil {
		c.numbers.add(a)
	} else {
		c.plain.add(a)
	}
}

func (c *repeatingColumn) addCells(a arrow.Array) {
	c.rows = slices.Grow(c.rows, a.Len())
	if a.NullN() == a.Len() {
		c.addNulls(a.Len())
		return
	}
	values, anyNull := cellsOf(a, c.values.width), a.NullN() > 0
	c.seen.alone = false
	for i := range a.Len() {
		if anyNull && a.IsNull(i) {
			c.addNulls(1)
			continue
		}
		value := values.at(i)
		number, added := c.values.number(value)
		c.rows = append(c.rows, number+1)
		c.there++
		if added && c.added(value) {
			rest := array.NewSlice(a, int64(i+1), int64(a.Len()))
			c.addPlain(rest)
			rest.Release()
			return
		}
	}
}

func (c *repeatingColumn) addNulls(n int) {
	for range n {
		c.rows = append(c.rows, 0)
	}
	if c.numbers != nil {
		c.numbers.bounds.takeNulls(n)
	}
}

// added records a new value. It reports whether the column gave up the
// dictionary.
func (c *repeatingColumn) added(value []byte) bool {
	if c.numbers != nil {
		c.numbers.bounds.take(value, c.numbers.width)
	}
	if c.tooLarge() {
		c.giveUp()
	}
	return c.gaveUp
}

// addCodes takes rows given by codes, none of which is null. A row whose code
// was seen costs one access to seen: nothing is hashed or copied. Without codes,
// ip_to_company spent a quarter of its time on hashing and copying the texts of
// the same companies. Values of a large table are first read side by side: with phone
// numbers of millions of people that saves two fifths of the time of this loop.
func (c *repeatingColumn) addCodes(table arrow.DataType, codes []int32, values *cells) {
	if c.gaveUp {
		c.addPlainCodes(codes, values)
		return
	}
	c.openTable(table, values)
	c.rows = slices.Grow(c.rows, len(codes))
	nulls := 0
	for i, code := range codes {
		if i%settledAtOnce == 0 && len(c.seen.numbers) > cachedCodes {
			c.touchUnseen(codes[i:min(i+settledAtOnce, len(codes))], values)
		}
		number := c.seen.numbers[code]
		if number == 0 {
			if number = c.see(int(code), values); c.gaveUp {
				c.addPlainCodes(codes[i:], values)
				break
			}
		}
		if number == seenNull {
			nulls++
			c.rows = append(c.rows, 0)
			continue
		}
		c.there++
		c.rows = append(c.rows, number)
	}
	if c.numbers != nil {
		c.numbers.bounds.takeNulls(nulls)
	}
}

// cachedCodes is the size of a table whose numbers are in the processor's cache anyway.
const cachedCodes = 1 << 13

// openTable makes seen that of a table.
func (c *repeatingColumn) openTable(table arrow.DataType, values *cells) {
	if c.seen.table != table {
		c.seen.alone = c.values.len() == 0
		c.seen.table = table
		clear(c.seen.numbers)
	}
	if n := values.nulls.Len(); n > len(c.seen.numbers) {
		c.seen.numbers = append(c.seen.numbers, make([]uint32, n-len(c.seen.numbers))...)
	}
}

// see adds the value of a code that occurs for the first time.
func (c *repeatingColumn) see(code int, values *cells) (number uint32) {
	number = seenNull
	if !values.nulls.IsNull(code) {
		value := values.at(code)
		n, added := uint32(c.values.len()), true
		if c.seen.alone {
			c.values.append(value)
		} else {
			n, added = c.values.number(value)
		}
		c.there++ // count the row first: its value may be one too many
		if number = n + 1; added && c.added(value) {
			return number
		}
		c.there--
	}
	c.seen.numbers[code] = number
	return number
}

// addPlainCodes writes the values of codes into plain pages.
func (c *repeatingColumn) addPlainCodes(codes []int32, values *cells) {
	for len(codes) > 0 {
		p := c.plain.open()
		n, null := 0, values.nulls.IsNull(int(codes[0]))
		for n < len(codes) && p.n+n < c.plain.limit.values && len(p.data) < c.plain.limit.bytes && values.nulls.IsNull(int(codes[n])) == null {
			if !null {
				p.data = appendCell(p.data, values.at(int(codes[n])), c.values.width)
			}
			n++
		}
		p.mark(n, !null)
		if c.numbers != nil {
			c.numbers.boundsOfCodes(codes[:n], null, values)
		}
		codes = codes[n:]
	}
}

// sameKind returns how many rows at the start all have a value, or all have
// none.
func sameKind(rows []uint32) int {
	n := 1
	for n < len(rows) && (rows[n] > 0) == (rows[0] > 0) {
		n++
	}
	return n
}

func (c *repeatingColumn) tooLarge() bool {
	return len(c.values.data) > c.most.bytes || c.values.len() > c.most.tried && 2*c.values.len() > c.there
}

// giveUp moves the rows into plain pages.
func (c *repeatingColumn) giveUp() {
	if c.shared.end > 0 {
		c.giveUpShared()
	}
	for at := 0; at < len(c.rows); {
		p := c.plain.open()
		n := 1
		if row := c.rows[at]; row > 0 {
			p.data = appendCell(p.data, c.values.value(row-1), c.values.width)
		} else {
			n = min(sameKind(c.rows[at:]), c.plain.limit.values-p.n)
		}
		p.mark(n, c.rows[at] > 0)
		at += n
	}
	c.reset()
	c.gaveUp = true
}

// close returns the memory for reuse.
func (c *repeatingColumn) close() {
	c.sharedNumbers = c.shared.numbers
	if !c.plain.pool.Growing {
		c.plain.pool.columns.keep(c.rowGroupMemory, poolMemory)
	}
	c.rowGroupMemory = rowGroupMemory{values: dictionary{width: c.values.width}}
}

// reset starts over. With many open files, it keeps no memory.
func (c *repeatingColumn) reset() {
	c.there, c.gaveUp = 0, false
	c.shared.reset()
	c.seen.table = nil
	if c.plain.pool.Growing {
		c.rowGroupMemory = rowGroupMemory{values: dictionary{width: c.values.width}}
		return
	}
	c.values.reset()
	c.rows = c.rows[:0]
}

func (c *repeatingColumn) encode(m *pageMemory) {
	c.settle()
	if !c.gaveUp {
		if there, plain := c.count(); !c.values.pays(there, plain) {
			c.giveUp()
		}
	}
	if c.gaveUp {
		c.plainColumn().encode(m)
		return
	}
	for at, all := 0, max(c.shared.end, len(c.rows)); at < all; {
		end := min(at+c.pageRows(), all)
		c.coded = append(c.coded, c.codedPage(m, c.rowsOf(m, at, end)))
		at = end
	}
	c.packed.pack(&c.values, c.plain.compress)
}

// plainColumn is the column of the pages without a dictionary.
func (c *repeatingColumn) plainColumn() column {
	if c.numbers != nil {
		return c.numbers
	}
	return c.plain
}

func (c *repeatingColumn) flush(g *rowGroup) error {
	defer c.reset()
	if c.gaveUp {
		return c.plainColumn().flush(g)
	}
	chunk, out, err := g.nextLeaf()
	if err != nil {
		return err
	}
	if c.numbers != nil {
		c.numbers.bounds.takeNulls(c.sharedNulls())
		c.numbers.bounds.publish(chunk, c.numbers.width)
	}
	if err := c.packed.flush(g, chunk, out, c.plain.pool, c.coded); err != nil {
		return err
	}
	clear(c.coded)
	c.coded = c.coded[:0]
	return nil
}

// rowsOf returns some rows, shared ones in the memory of m.
func (c *repeatingColumn) rowsOf(m *pageMemory, from, end int) []uint32 {
	if c.shared.end == 0 {
		return c.rows[from:end]
	}
	m.rowsOfPage = c.shared.translate(m.rowsOfPage[:0], from, end)
	return m.rowsOfPage
}

// pageRows is how many rows a page of numbers has.
func (c *repeatingColumn) pageRows() int {
	limit := c.plain.limit
	return min(limit.values, limit.bytes*8/c.values.bits())
}

// codedPage makes a page of numbers.
// Source: Apache Parquet format, "Dictionary Encoding".
func (c *repeatingColumn) codedPage(m *pageMemory, rows []uint32) *page {
	p := c.plain.pool.get(c.plain.limit.bytes)
	numbers := p.markRows(rows) // these rows are not used again
	p.data = append(p.data, byte(c.values.bits()))
	p.data = appendNumbers(p.data, numbers, c.values.bits())
	c.plain.pack(m, p, p.encoded(c.plain.nullable, m))
	return p
}
