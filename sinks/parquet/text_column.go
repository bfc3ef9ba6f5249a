package parquet

import (
	"bytes"
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

func newTextColumn(nullable bool, compress func(dst, src []byte) []byte, most int, pool *PagePool) *textColumn {
	return &textColumn{nullable: nullable, compress: compress, limit: pageLimit{most, pageNulls}, pool: pool}
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
		bytes += p.held()
	}
	return bytes
}

// open returns the page for the next value.
func (c *textColumn) open() *page {
	if n := len(c.pages); n > 0 {
		p := c.pages[n-1]
		if !c.limit.reached(p) {
			return p
		}
		c.packEarly(func(m *pageMemory) { c.pack(m, p, p.encoded(c.nullable, m)) })
	}
	return c.next()
}

// next begins a page.
func (c *textColumn) next() *page {
	p := c.pool.get(c.limit.bytes)
	c.pages = append(c.pages, p)
	return p
}

// packEarly packs the last page, which is full, before its row group ends: it then takes less
// memory. Pages that are not compressed stay as they are.
func (c *textColumn) packEarly(pack func(m *pageMemory)) {
	if c.compress == nil {
		return
	}
	p := c.pages[len(c.pages)-1]
	held := p.held()
	m := c.pool.getPageMemory()
	pack(m)
	c.pool.putPageMemory(m)
	c.pages[len(c.pages)-1] = &page{n: p.n, nulls: p.nulls, plain: p.plain, data: bytes.Clone(p.data), full: held}
	c.pool.put(p)
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
	if err := g.writePages(out, c.pool, c.pages, parquet.Encodings.Plain); err != nil {
		return err
	}
	clear(c.pages)
	c.pages = c.pages[:0]
	return out.Close(false, false)
}

func (c *textColumn) encode(m *pageMemory) {
	for _, p := range c.pages {
		if p.full == 0 {
			c.pack(m, p, p.encoded(c.nullable, m))
		}
	}
}

// pack makes the data of a page what the file has, from its bytes before compression, which
// may be in the memory of the page or of m.
func (c *textColumn) pack(m *pageMemory, p *page, plain []byte) {
	p.plain = len(plain)
	if c.compress != nil {
		m.packed = c.compress(m.packed[:cap(m.packed)], plain)
		plain = m.packed
	}
	p.data = append(p.data[:0], plain...)
}

// writePages writes encoded pages, and frees each of them.
func (g *rowGroup) writePages(out file.PageWriter, pool *PagePool, pages []*page, encoding parquet.Encoding) error {
	for _, p := range pages {
		data := file.NewDataPageV1(memory.NewBufferBytes(p.data), int32(p.n), encoding, parquet.Encodings.RLE, parquet.Encodings.RLE, int32(p.plain))
		_, err := out.WriteDataPage(data)
		data.Release()
		if err != nil {
			return err
		}
		g.bytes += int64(p.plain)
		if p.full == 0 {
			pool.put(p)
		}
	}
	return nil
}
