package parquet

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/parquet/metadata"

	"github.com/leadetl/leadetl/sinks/schema"
)

// numberColumn is a flat column of 32- or 64-bit numbers, days or instants, PLAIN:
// the bytes are those of the Arrow array.
type numberColumn struct {
	textColumn
	width  int
	bounds *bounds // nil when no statistics were asked for
}

// numberWidth returns the size in bytes of a value of the types that
// numberColumn supports, 0 for others.
func numberWidth(t arrow.DataType) int {
	switch t.ID() {
	case arrow.INT32, arrow.DATE32:
		return 4
	case arrow.INT64, arrow.TIMESTAMP, arrow.FLOAT64:
		return 8
	}
	return 0
}

func newNumberColumn(described schema.Column, pages *textColumn) *numberColumn {
	c := &numberColumn{textColumn: *pages, width: numberWidth(described.Arrow)}
	if described.Statistics {
		c.bounds = &bounds{float: described.Arrow.ID() == arrow.FLOAT64}
	}
	return c
}

func (c *numberColumn) add(a arrow.Array) {
	if a.NullN() == a.Len() {
		c.addNulls(a.Len())
		c.bounds.takeNulls(a.Len())
		return
	}
	from := a.Data().Offset()
	var raw []byte
	if b := a.Data().Buffers()[1]; b != nil {
		raw = b.Bytes()
	}
	for i := 0; i < a.Len(); {
		p := c.open()
		if a.NullN() == 0 {
			room := min(a.Len()-i, (c.limit.bytes-len(p.data)+c.width-1)/c.width, c.limit.values-p.n)
			values := raw[(from+i)*c.width : (from+i+room)*c.width]
			p.data = append(p.data, values...)
			p.mark(room, true)
			c.bounds.take(values, c.width)
			i += room
			continue
		}
		for ; i < a.Len() && !c.limit.reached(p); i++ {
			valid := a.IsValid(i)
			p.mark(1, valid)
			if valid {
				value := raw[(from+i)*c.width : (from+i+1)*c.width]
				p.data = append(p.data, value...)
				c.bounds.take(value, c.width)
			} else {
				c.bounds.takeNulls(1)
			}
		}
	}
}

// boundsOfCodes takes codes whose values are either all null or all not null.
func (c *numberColumn) boundsOfCodes(codes []int32, null bool, values *cells) {
	if null {
		c.bounds.takeNulls(len(codes))
		return
	}
	for _, code := range codes {
		c.bounds.take(values.at(int(code)), c.width)
	}
}

func (c *numberColumn) flush(g *rowGroup) error {
	return c.flushPages(g, func(chunk *metadata.ColumnChunkMetaDataBuilder) { c.bounds.publish(chunk, c.width) })
}

// bounds are the smallest and largest value of a chunk, and its count of nulls.
// The methods of a nil bounds do nothing.
type bounds struct {
	float    bool
	any      bool
	min, max [8]byte
	nulls    int64
}

func (b *bounds) takeNulls(n int) {
	if b != nil {
		b.nulls += int64(n)
	}
}

func (b *bounds) take(values []byte, width int) {
	if b == nil {
		return
	}
	for ; len(values) > 0; values = values[width:] {
		v := values[:width]
		if b.float && math.IsNaN(math.Float64frombits(binary.LittleEndian.Uint64(v))) {
			continue
		}
		if !b.any || b.less(v, b.min[:width]) {
			copy(b.min[:], v)
		}
		if !b.any || b.less(b.max[:width], v) {
			copy(b.max[:], v)
		}
		b.any = true
	}
}

func (b *bounds) less(x, y []byte) bool {
	switch {
	case b.float:
		return math.Float64frombits(binary.LittleEndian.Uint64(x)) < math.Float64frombits(binary.LittleEndian.Uint64(y))
	case len(x) == 4:
		return int32(binary.LittleEndian.Uint32(x)) < int32(binary.LittleEndian.Uint32(y))
	}
	return int64(binary.LittleEndian.Uint64(x)) < int64(binary.LittleEndian.Uint64(y))
}

// publish writes the bounds into a chunk's metadata and starts over.
func (b *bounds) publish(chunk *metadata.ColumnChunkMetaDataBuilder, width int) {
	if b == nil {
		return
	}
	var s metadata.EncodedStatistics
	s.SetNullCount(b.nulls)
	if b.any {
		s.SetMin(append([]byte(nil), b.min[:width]...))
		s.SetMax(append([]byte(nil), b.max[:width]...))
	}
	chunk.SetStats(s)
	b.any, b.nulls = false, 0
}
