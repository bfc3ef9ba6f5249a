package parquet

import (
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
)

// sharedRows are the rows of the open row group as codes that several columns share, such
// as those of the companies of rows, which have 17 columns. A row then costs one access to
// memory instead of one for each column.
//
// Such a column comes as a dictionary array of a dictionary array: codes of the rows, which
// all columns of the record share, and then the code of a value for each of these codes.
type sharedRows struct {
	table   arrow.DataType // of codes: that of the first column
	numbers []uint32       // by code: its number in the row group + 1, 0 for one not seen
	rows    []uint32       // the number of each row's code, in the order in which they occur
	seen    []firstCode    // by number
	counts  []uint32       // rows by number, while the row group is encoded

	// The record that is being added:
	codes *int32 // the first of its codes, nil as long as no column has come
	from  int    // the rows before it
}

// firstCode is a code where it occurs for the first time.
type firstCode struct {
	row  uint32
	code int32
}

// begin begins a record, and takes the codes of its first column that shares them. Columns may
// then be added at the same time: Arrow makes the values of a dictionary array when they are
// asked for first, and two columns may have one array.
func (s *sharedRows) begin(rec arrow.Record) {
	s.codes, s.from = nil, len(s.rows)
	for _, c := range rec.Columns() {
		d, inner, shares := sharedCodes(c)
		if !shares || c.Len() == 0 {
			continue
		}
		inner.Dictionary()
		if s.codes == nil {
			s.take(d.DataType(), d.Indices().(*array.Int32).Int32Values(), inner.Len())
		}
	}
}

// sharedCodes returns the array of a column that shares codes with others, and that of the
// values of the codes.
func sharedCodes(c arrow.Array) (d, inner *array.Dictionary, shares bool) {
	if d, shares = c.(*array.Dictionary); shares {
		inner, shares = d.Dictionary().(*array.Dictionary)
	}
	return d, inner, shares
}

// take takes the codes of a column of the record, of a table with n codes. It returns false
// if they are not those that the first column had.
func (s *sharedRows) take(table arrow.DataType, codes []int32, n int) bool {
	if s.codes != nil {
		return s.codes == &codes[0] && len(s.rows) == s.from+len(codes)
	}
	s.codes = &codes[0]
	if s.table != table {
		s.table = table
		clear(s.numbers)
	}
	if n > len(s.numbers) {
		s.numbers = append(s.numbers, make([]uint32, n-len(s.numbers))...)
	}
	s.rows = slices.Grow(s.rows, len(codes))[:s.from+len(codes)]
	rows := s.rows[s.from:]
	for i, code := range codes {
		number := s.numbers[code]
		if number == 0 {
			s.seen = append(s.seen, firstCode{uint32(s.from + i), code})
			number = uint32(len(s.seen))
			s.numbers[code] = number
		}
		rows[i] = number - 1
	}
	return true
}

// count counts the rows that each number has.
func (s *sharedRows) count() {
	s.counts = append(s.counts[:0], make([]uint32, len(s.seen))...)
	for _, n := range s.rows {
		s.counts[n]++
	}
}

// reset starts over. It keeps no memory if many files are open.
func (s *sharedRows) reset(keep bool) {
	if !keep {
		*s = sharedRows{}
		return
	}
	clear(s.numbers)
	*s = sharedRows{numbers: s.numbers, rows: s.rows[:0], seen: s.seen[:0], counts: s.counts[:0]}
}

// sharedColumn is what a column holds of the rows of sharedRows. It finds the values of codes
// some ten thousand rows at a time, in settle: then the memory of one column's table stays
// in the processor's cache. A record at a time, enrichment with 100,000 companies spent a
// tenth of its time waiting for memory here.
type sharedColumn struct {
	rows    *sharedRows
	end     int               // the column has the rows before
	known   int               // and the numbers before
	inner   *array.Dictionary // the values of their codes; retained
	numbers []uint32          // by number of sharedRows: the number of the value + 1, 0 for null; up to known once settled
	counted int               // the rows before are counted
	flat    []int32           // codes of values of a record
}

// addShared takes rows given by shared codes.
func (c *repeatingColumn) addShared(d, inner *array.Dictionary) {
	codes, s := d.Indices().(*array.Int32).Int32Values(), &c.shared
	same := s.rows.take(d.DataType(), codes, inner.Len())
	if s.inner != nil && s.inner.DataType() != inner.DataType() {
		c.settle()
	}
	if !same || s.end != s.rows.from || len(c.rows) > 0 || c.gaveUp {
		c.unshare()
		values := cellsOf(inner.Dictionary(), c.values.width)
		c.addCodes(inner.DataType(), c.flatten(codes, inner.Indices().(*array.Int32).Int32Values()), &values)
		return
	}
	inner.Retain()
	s.drop()
	s.inner, s.end, s.known = inner, s.rows.from+len(codes), len(s.rows.seen)
}

// settle finds the values of the codes that came since the last time.
func (c *repeatingColumn) settle() {
	s := &c.shared
	if len(s.numbers) == s.known {
		return
	}
	of, values := s.inner.Indices().(*array.Int32).Int32Values(), cellsOf(s.inner.Dictionary(), c.values.width)
	c.openTable(s.inner.DataType(), &values)
	s.numbers = slices.Grow(s.numbers, s.known-len(s.numbers))
	var codes [settledAtOnce]int32
	for len(s.numbers) < s.known {
		some := s.rows.seen[len(s.numbers):min(s.known, len(s.numbers)+settledAtOnce)]
		c.load(&codes, some, of, &values)
		for i, first := range some {
			code := codes[i]
			number := c.seen.numbers[code]
			if number == 0 {
				if c.values.len() >= c.most.tried {
					c.countShared(int(first.row)) // see asks for the count of rows
				}
				if number = c.see(int(code), &values); c.gaveUp {
					return
				}
			}
			if number == seenNull {
				number = 0
			}
			s.numbers = append(s.numbers, number)
		}
	}
}

// settledAtOnce is how many codes settle loads at once.
const settledAtOnce = 256

// load finds the codes of values, and reads values that the row group has not had into the
// processor's cache. Its loops are short and have no branches that depend on memory, so that
// the processor waits for many values at once. With 100,000 companies it halves the time of
// settle, which was an eighth of that of enrichment.
func (c *repeatingColumn) load(codes *[settledAtOnce]int32, some []firstCode, of []int32, values *cells) {
	for i, first := range some {
		codes[i] = of[first.code]
	}
	c.touchUnseen(codes[:len(some)], values)
}

// touchUnseen reads the values of codes that the row group has not had, of at most
// settledAtOnce.
func (c *repeatingColumn) touchUnseen(codes []int32, values *cells) {
	var unseen [settledAtOnce]int32
	n := 0
	for _, code := range codes {
		unseen[n] = code
		next := 0
		if c.seen.numbers[code] == 0 {
			next = 1
		}
		n += next
	}
	values.touch(unseen[:n])
}

// giveUpShared moves the shared rows into plain pages: those of the codes that are not
// settled too.
func (c *repeatingColumn) giveUpShared() {
	s := &c.shared
	of, values := s.inner.Indices().(*array.Int32).Int32Values(), cellsOf(s.inner.Dictionary(), c.values.width)
	nulls := 0
	for _, n := range s.rows.rows[:s.end] {
		var value []byte
		there := false
		if int(n) < len(s.numbers) {
			if there = s.numbers[n] > 0; there {
				value = c.values.value(s.numbers[n] - 1)
			}
		} else if code := int(of[s.rows.seen[n].code]); !values.nulls.IsNull(code) {
			value, there = values.at(code), true
		}
		p := c.plain.open()
		p.mark(1, there)
		if !there {
			nulls++
			continue
		}
		p.data = appendCell(p.data, value, c.values.width)
		if c.numbers != nil {
			c.numbers.bounds.take(value, c.numbers.width)
		}
	}
	if c.numbers != nil {
		c.numbers.bounds.takeNulls(nulls)
	}
}

// flatten returns the codes of values of rows.
func (c *repeatingColumn) flatten(codes, of []int32) []int32 {
	flat := slices.Grow(c.shared.flat[:0], len(codes))[:len(codes)]
	for i, code := range codes {
		flat[i] = of[code]
	}
	c.shared.flat = flat
	return flat
}

// countShared counts the shared rows before one that have a value.
func (c *repeatingColumn) countShared(row int) {
	s := &c.shared
	for _, n := range s.rows.rows[s.counted:row] {
		if s.numbers[n] > 0 {
			c.there++
		}
	}
	s.counted = row
}

// unshare makes shared rows the column's own.
func (c *repeatingColumn) unshare() {
	c.settle()
	s := &c.shared
	if s.end == 0 {
		return
	}
	c.countShared(s.end)
	if c.numbers != nil {
		c.numbers.bounds.takeNulls(s.end - c.there)
	}
	c.rows = s.translate(c.rows, 0, s.end)
	s.reset()
}

// sharedNulls counts the rows of the row group without a value.
func (c *repeatingColumn) sharedNulls() (nulls int) {
	if c.shared.end == 0 {
		return 0
	}
	for n, rows := range c.shared.rows.counts {
		if c.shared.numbers[n] == 0 {
			nulls += int(rows)
		}
	}
	return nulls
}

// translate appends the numbers of the values of shared rows, + 1, 0 for null.
func (s *sharedColumn) translate(to []uint32, from, end int) []uint32 {
	at := len(to)
	to = slices.Grow(to, end-from)[:at+end-from]
	for i, n := range s.rows.rows[from:end] {
		to[at+i] = s.numbers[n]
	}
	return to
}

// reset forgets the rows.
func (s *sharedColumn) reset() {
	s.drop()
	s.numbers, s.end, s.known, s.counted = s.numbers[:0], 0, 0, 0
}

func (s *sharedColumn) drop() {
	if s.inner != nil {
		s.inner.Release()
		s.inner = nil
	}
}

// count returns how many rows of the row group have a value, and their size in plain pages.
func (c *repeatingColumn) count() (there, plain int) {
	size := func(row uint32) int {
		if c.numbers != nil {
			return c.values.width
		}
		return lengthBytes + len(c.values.value(row-1))
	}
	if c.shared.end > 0 {
		for n, rows := range c.shared.rows.counts {
			if row := c.shared.numbers[n]; row > 0 {
				there, plain = there+int(rows), plain+int(rows)*size(row)
			}
		}
		return there, plain
	}
	if c.numbers != nil {
		return c.there, c.there * c.values.width
	}
	rows := make([]uint32, c.values.len()+1) // by number + 1: their lengths are then read in order
	for _, row := range c.rows {
		rows[row]++
	}
	for row := 1; row < len(rows); row++ {
		plain += int(rows[row]) * size(uint32(row))
	}
	return c.there, plain
}
