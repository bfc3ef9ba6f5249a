package parquet

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
)

const (
	// dictionaryBytes is the most that a dictionary's values take in a file:
	// what other writers use, and readers expect.
	dictionaryBytes = 1 << 20
	// triedValues is how many values a dictionary takes before it is given up
	// where less than half of the rows have a value that came before. Where many
	// files are open it is fewer: each file has a dictionary for every column.
	triedValues        = 1 << 15
	triedValuesGrowing = 1 << 8
)

// dictionaryLimit is what a dictionary may grow to.
type dictionaryLimit struct {
	bytes int // of the values
	tried int // values, unless each comes twice on average
}

// repeatingColumn is a flat string column with a dictionary, if that makes the
// row group smaller; otherwise it has the pages of a textColumn. Which one it is
// follows from the values and their order alone.
type repeatingColumn struct {
	plain  *textColumn
	values dictionary
	most   dictionaryLimit
	rows   []uint32 // the number of each row's value + 1, 0 for null
	there  int      // rows that are not null
	bytes  int      // of the values of all rows as PLAIN pages
	gaveUp bool     // the row group is in plain
}

func newRepeatingColumn(plain *textColumn) *repeatingColumn {
	c := &repeatingColumn{plain: plain, most: dictionaryLimit{dictionaryBytes, triedValues}}
	if plain.pool.Growing {
		c.most.tried = triedValuesGrowing
	}
	return c
}

func (c *repeatingColumn) add(a arrow.Array) {
	s := a.(*array.String)
	if c.gaveUp {
		c.plain.add(s)
		return
	}
	if s.Len() == 0 {
		return
	}
	offsets, values := s.ValueOffsets(), s.ValueBytes()
	anyNull := s.NullN() > 0
	if s.NullN() == s.Len() {
		c.rows = append(c.rows, make([]uint32, s.Len())...)
		return
	}
	c.rows = slices.Grow(c.rows, s.Len())
	for i := range s.Len() {
		if anyNull && s.IsNull(i) {
			c.rows = append(c.rows, 0)
			continue
		}
		value := values[offsets[i]-offsets[0] : offsets[i+1]-offsets[0]]
		number, added := c.values.number(value)
		c.rows = append(c.rows, number+1)
		c.there++
		c.bytes += lengthBytes + len(value)
		if added && c.tooLarge() {
			c.giveUp()
			rest := array.NewSlice(s, int64(i+1), int64(s.Len()))
			c.plain.add(rest)
			rest.Release()
			return
		}
	}
}

// sameKind is how many rows come first that all have a value, or all have none.
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
	for at := 0; at < len(c.rows); {
		p := c.plain.open()
		n := 1
		if row := c.rows[at]; row > 0 {
			value := c.values.value(row - 1)
			p.data = append(binary.LittleEndian.AppendUint32(p.data, uint32(len(value))), value...)
		} else {
			n = min(sameKind(c.rows[at:]), c.plain.limit.values-p.n)
		}
		p.mark(n, c.rows[at] > 0)
		at += n
	}
	c.reset()
	c.gaveUp = true
}

// reset starts over. Where many files are open it keeps no memory.
func (c *repeatingColumn) reset() {
	c.there, c.bytes, c.gaveUp = 0, 0, false
	if c.plain.pool.Growing {
		c.values, c.rows = dictionary{}, nil
		return
	}
	c.values.reset()
	c.rows = c.rows[:0]
}

// pays reports whether the dictionary and the numbers are clearly smaller than
// the values, which compression makes smaller too.
func (c *repeatingColumn) pays() bool {
	return c.there > 0 && 4*(len(c.values.data)+c.there*c.width()/8) <= 3*c.bytes
}

// width is the bits of a number.
func (c *repeatingColumn) width() int { return max(1, bits.Len(uint(c.values.len()-1))) }

func (c *repeatingColumn) flush(g *rowGroup) error {
	defer c.reset()
	if !c.gaveUp && !c.pays() {
		c.giveUp()
	}
	if c.gaveUp {
		return c.plain.flush(g)
	}
	_, out, err := g.nextLeaf()
	if err != nil {
		return err
	}
	values := file.NewDictionaryPage(memory.NewBufferBytes(c.values.data), int32(c.values.len()), parquet.Encodings.PlainDict)
	_, err = out.WriteDictionaryPage(values)
	values.Release()
	if err != nil {
		return err
	}
	g.bytes += int64(len(c.values.data))
	for at := 0; at < len(c.rows); {
		n := min(len(c.rows)-at, c.pageRows())
		if err := c.writePage(g, out, c.rows[at:at+n]); err != nil {
			return err
		}
		at += n
	}
	return out.Close(true, false)
}

// pageRows is how many rows a page of numbers has.
func (c *repeatingColumn) pageRows() int {
	limit := c.plain.limit
	return min(limit.values, limit.bytes*8/c.width())
}

// writePage writes a page of numbers.
// Source: Apache Parquet format, "Dictionary Encoding".
func (c *repeatingColumn) writePage(g *rowGroup, out file.PageWriter, rows []uint32) error {
	p := c.plain.pool.get()
	defer c.plain.pool.put(p)
	numbers := rows[:0] // no row of them is looked at again
	for len(rows) > 0 {
		n := sameKind(rows)
		there := rows[0] > 0
		p.mark(n, there)
		if there {
			for _, row := range rows[:n] {
				numbers = append(numbers, row-1)
			}
		}
		rows = rows[n:]
	}
	p.data = append(p.data, byte(c.width()))
	p.data = appendNumbers(p.data, numbers, c.width())
	return c.plain.writePage(g, out, p, parquet.Encodings.PlainDict)
}
