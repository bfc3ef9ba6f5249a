package parquet

import (
	"encoding/binary"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/metadata"
)

// textColumn is a flat string column of PLAIN pages.
type textColumn struct {
	nullable bool
	compress func(dst, src []byte) []byte // nil leaves pages as they are
	limit    pageLimit
	pool     *PagePool
	pages    []*page
}

func newTextColumn(nullable bool, compress func(dst, src []byte) []byte, pool *PagePool) *textColumn {
	return &textColumn{nullable: nullable, compress: compress, limit: pageLimit{pageBytes, pageNulls}, pool: pool}
}

// add appends the values to pages. It is the hot loop of writing: one bounds
// check and one copy per value.
func (c *textColumn) add(a arrow.Array) {
	s := a.(*array.String)
	offsets, values := s.ValueOffsets(), s.ValueBytes()
	if s.Len() == 0 {
		return
	}
	if s.NullN() == s.Len() {
		c.addNulls(s.Len())
		return
	}
	base := offsets[0]
	anyNull := s.NullN() > 0
	for i := 0; i < s.Len(); {
		p := c.open()
		start := i
		if !anyNull {
			for i < s.Len() && len(p.data) < c.limit.bytes {
				value := values[offsets[i]-base : offsets[i+1]-base]
				p.data = append(binary.LittleEndian.AppendUint32(p.data, uint32(len(value))), value...)
				i++
			}
			p.mark(i-start, true)
			continue
		}
		for i < s.Len() && !c.limit.reached(p) {
			if valid := s.IsValid(i); valid {
				value := values[offsets[i]-base : offsets[i+1]-base]
				p.data = append(binary.LittleEndian.AppendUint32(p.data, uint32(len(value))), value...)
				p.mark(1, true)
			} else {
				p.mark(1, false)
			}
			i++
		}
	}
}

// addNulls appends nulls to pages.
func (c *textColumn) addNulls(n int) {
	for n > 0 {
		p := c.open()
		some := min(n, c.limit.values-p.n)
		p.mark(some, false)
		n -= some
	}
}

func (c *textColumn) held() (bytes int) {
	for _, p := range c.pages {
		bytes += len(p.data) + len(p.valid) + len(p.levels)
	}
	return bytes
}

// open returns the page for the next value.
func (c *textColumn) open() *page {
	if n := len(c.pages); n > 0 {
		if p := c.pages[n-1]; !c.limit.reached(p) {
			return p
		}
	}
	p := c.pool.get()
	c.pages = append(c.pages, p)
	return p
}

func (c *textColumn) flush(g *rowGroup) error {
	return c.flushPages(g, func(*metadata.ColumnChunkMetaDataBuilder) {})
}

// flushPages writes the column's chunk. describe may add to the chunk's
// metadata.
func (c *textColumn) flushPages(g *rowGroup, describe func(*metadata.ColumnChunkMetaDataBuilder)) error {
	chunk, out, err := g.nextLeaf()
	if err != nil {
		return err
	}
	describe(chunk)
	for _, p := range c.pages {
		plain, stored := c.pack(g, p)
		if err := g.writePage(out, stored, plain, p.n, parquet.Encodings.Plain); err != nil {
			return err
		}
		c.pool.put(p)
	}
	clear(c.pages)
	c.pages = c.pages[:0]
	return out.Close(false, false)
}

// pack returns a page as it is in the file, and its size before compression. It is valid
// until the next page is packed.
func (c *textColumn) pack(g *rowGroup, p *page) (plain int, stored []byte) {
	encoded := p.encoded(c.nullable, g.scratch)
	if p.mixed() {
		g.scratch = encoded
	}
	return len(encoded), c.compressed(g, encoded)
}

// compressed compresses a page.
func (c *textColumn) compressed(g *rowGroup, plain []byte) []byte {
	if c.compress == nil {
		return plain
	}
	g.packed = c.compress(g.packed[:cap(g.packed)], plain)
	return g.packed
}

// writePage writes a page of n values, of a size before compression.
func (g *rowGroup) writePage(out file.PageWriter, stored []byte, plain, n int, encoding parquet.Encoding) error {
	data := file.NewDataPageV1(memory.NewBufferBytes(stored), int32(n), encoding, parquet.Encodings.RLE, parquet.Encodings.RLE, int32(plain))
	defer data.Release()
	_, err := out.WriteDataPage(data)
	g.bytes += int64(plain)
	return err
}
