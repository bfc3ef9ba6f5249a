package parquet

import (
	"encoding/binary"
	"runtime"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
)

// cells are the values of an Arrow array of text or numbers as bytes.
type cells struct {
	data    []byte
	offsets []int32 // of text, nil for numbers
	width   int     // of numbers
	nulls   arrow.Array
}

// cellsOf reads an array of text, or of numbers of a width.
func cellsOf(a arrow.Array, width int) cells {
	if s, ok := a.(*array.String); ok {
		c := cells{data: s.ValueBytes(), offsets: s.ValueOffsets(), nulls: a}
		if s.Len() > 0 && c.offsets[0] > 0 { // ValueBytes begins at the first value
			c.data = s.Data().Buffers()[2].Bytes()
		}
		return c
	}
	c := cells{width: width, nulls: a}
	if b := a.Data().Buffers()[1]; b != nil {
		c.data = b.Bytes()[a.Data().Offset()*width:]
	}
	return c
}

func (c *cells) at(i int) []byte {
	if c.offsets != nil {
		return c.data[c.offsets[i]:c.offsets[i+1]]
	}
	return c.data[i*c.width : (i+1)*c.width]
}

// touch reads the first and the last byte of some values, at most of settledAtOnce.
func (c *cells) touch(some []int32) {
	if c.offsets == nil || len(c.data) == 0 {
		return
	}
	var places [settledAtOnce]int32
	for i, code := range some {
		places[i] = c.offsets[code]
	}
	sum, last := byte(0), int32(len(c.data)-1)
	for i, code := range some {
		sum += c.data[min(places[i], last)] + c.data[max(c.offsets[code+1]-1, 0)]
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
