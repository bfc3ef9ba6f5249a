package parquet

import (
	"encoding/binary"
	"runtime"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// cells are the values of an Arrow array of text or numbers as bytes.
type cells struct {
	data    []byte
	offsets []int32            // of text that is side by side
	wide    []int64            // the same of more text
	views   []arrow.ViewHeader // of text that is in any place of buffers
	buffers []*memory.Buffer
	width   int // of numbers
	nulls   arrow.Array
}

// cellsOf reads an array of text, or of numbers of a width.
func cellsOf(a arrow.Array, width int) cells {
	data := a.Data()
	switch s := a.(type) {
	case *array.String:
		c := cells{data: s.ValueBytes(), offsets: s.ValueOffsets(), nulls: a}
		if s.Len() > 0 && c.offsets[0] > 0 { // ValueBytes begins at the first value
			c.data = data.Buffers()[2].Bytes()
		}
		return c
	case *array.LargeString:
		return cells{data: data.Buffers()[2].Bytes(), wide: arrow.Int64Traits.CastFromBytes(data.Buffers()[1].Bytes())[data.Offset():], nulls: a}
	case *array.StringView:
		return cells{views: arrow.ViewHeaderTraits.CastFromBytes(data.Buffers()[1].Bytes())[data.Offset():], buffers: data.Buffers()[2:], nulls: a}
	}
	c := cells{width: width, nulls: a}
	if b := data.Buffers()[1]; b != nil {
		c.data = b.Bytes()[data.Offset()*width:]
	}
	return c
}

func (c *cells) at(i int) []byte {
	if c.offsets != nil {
		return c.data[c.offsets[i]:c.offsets[i+1]]
	}
	if c.wide != nil {
		return c.data[c.wide[i]:c.wide[i+1]]
	}
	if c.views != nil {
		v := &c.views[i]
		if v.IsInline() {
			return v.InlineBytes()
		}
		from := v.BufferOffset()
		return c.buffers[v.BufferIndex()].Bytes()[from : int(from)+v.Len()]
	}
	return c.data[i*c.width : (i+1)*c.width]
}

// touch reads the first and the last byte of some values, at most of settledAtOnce.
func (c *cells) touch(some []int32) {
	if c.width > 0 {
		return
	}
	var texts [settledAtOnce][]byte
	for i, code := range some {
		texts[i] = c.at(int(code))
	}
	sum := byte(0)
	for _, text := range texts[:len(some)] {
		if len(text) > 0 {
			sum += text[0] + text[len(text)-1]
		}
	}
	runtime.KeepAlive(sum)
}

// appendCell appends a value as it is in PLAIN pages.
func appendCell(to, value []byte, width int) []byte {
	if width == 0 {
		to = binary.LittleEndian.AppendUint32(to, uint32(len(value)))
	}
	return append(to, value...)
}
