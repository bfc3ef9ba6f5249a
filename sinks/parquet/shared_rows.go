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
	count   int            // numbers given
	counts  []uint32       // rows by number, while the row group is written

	// The record that is being added:
	codes *int32      // the first of its codes, nil as long as no column has come
	from  int         // the rows before it
	fresh []freshCode // the codes that occur for the first time
}

// freshCode is a code that occurs for the first time, in a row of the record.
type freshCode struct {
	row  int
	code int32
}

// begin begins a record.
func (s *sharedRows) begin() { s.codes, s.from, s.fresh = nil, len(s.rows), s.fresh[:0] }

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
			s.count++
			number = uint32(s.count)
			s.numbers[code], s.fresh = number, append(s.fresh, freshCode{i, code})
		}
		rows[i] = number - 1
	}
	return true
}

// rowsOf returns how many rows each number has.
func (s *sharedRows) rowsOf() []uint32 {
	if len(s.counts) == 0 {
		s.counts = append(s.counts, make([]uint32, s.count)...)
		for _, n := range s.rows {
			s.counts[n]++
		}
	}
	return s.counts
}

// reset starts over. It keeps no memory if many files are open.
func (s *sharedRows) reset(keep bool) {
	if !keep {
		*s = sharedRows{}
		return
	}
	clear(s.numbers)
	*s = sharedRows{numbers: s.numbers, rows: s.rows[:0], counts: s.counts[:0], fresh: s.fresh[:0]}
}

// sharedColumn is what a column holds of the rows of sharedRows.
type sharedColumn struct {
	rows    *sharedRows
	numbers []uint32 // by number of sharedRows: the number of the value + 1, 0 for null
	end     int      // the column has the rows before
	counted int      // of these, how many are counted
	flat    []int32  // codes of values of a record
}

// addShared takes rows given by shared codes.
func (c *repeatingColumn) addShared(d *array.Dictionary) {
	inner := d.Dictionary().(*array.Dictionary)
	codes, of := d.Indices().(*array.Int32).Int32Values(), inner.Indices().(*array.Int32).Int32Values()
	values := cellsOf(inner.Dictionary(), c.values.width)
	s := &c.shared
	if same := s.rows.take(d.DataType(), codes, len(of)); !same || s.end != s.rows.from || len(c.rows) > 0 || c.gaveUp {
		c.unshare()
		c.addCodes(inner.DataType(), c.flatten(codes, of), &values)
		return
	}
	c.openTable(inner.DataType(), &values)
	for _, fresh := range s.rows.fresh {
		s.end = s.rows.from + fresh.row
		if c.values.len() >= c.most.tried {
			c.countShared() // see asks for the count of rows
		}
		code := of[fresh.code]
		number := c.seen.numbers[code]
		if number == 0 {
			if number = c.see(int(code), &values); c.gaveUp {
				c.addPlainCodes(c.flatten(codes[fresh.row:], of), &values)
				return
			}
		}
		if number == seenNull {
			number = 0
		}
		s.numbers = append(s.numbers, number)
	}
	s.end = s.rows.from + len(codes)
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

// countShared counts the shared rows that have a value.
func (c *repeatingColumn) countShared() {
	s := &c.shared
	for _, n := range s.rows.rows[s.counted:s.end] {
		if s.numbers[n] > 0 {
			c.there++
		}
	}
	s.counted = s.end
}

// unshare makes shared rows the column's own.
func (c *repeatingColumn) unshare() {
	s := &c.shared
	if s.end == 0 {
		return
	}
	if c.numbers != nil {
		c.numbers.bounds.takeNulls(c.sharedNulls())
	}
	c.countShared()
	c.rows = s.translate(c.rows, 0, s.end)
	s.reset()
}

// sharedNulls counts the shared rows without a value.
func (c *repeatingColumn) sharedNulls() (nulls int) {
	for _, n := range c.shared.rows.rows[:c.shared.end] {
		if c.shared.numbers[n] == 0 {
			nulls++
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
func (s *sharedColumn) reset() { s.numbers, s.end, s.counted = s.numbers[:0], 0, 0 }

// count returns how many rows of the row group have a value, and their size in plain pages.
func (c *repeatingColumn) count() (there, plain int) {
	size := func(row uint32) int {
		if c.numbers != nil {
			return c.values.width
		}
		return lengthBytes + len(c.values.value(row-1))
	}
	if c.shared.end > 0 {
		for n, rows := range c.shared.rows.rowsOf() {
			if row := c.shared.numbers[n]; row > 0 {
				there, plain = there+int(rows), plain+int(rows)*size(row)
			}
		}
		return there, plain
	}
	if c.numbers != nil {
		return c.there, c.there * c.values.width
	}
	for _, row := range c.rows {
		if row > 0 {
			plain += size(row)
		}
	}
	return c.there, plain
}
