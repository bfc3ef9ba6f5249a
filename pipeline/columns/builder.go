package columns

import (
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/bitutil"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/resolution"
)

// Builder makes records of a Layout, in one goroutine.
type Builder struct {
	layout  *Layout
	fillers []filler
	none    resolution.Answers // of a batch before anybody is asked
	built   *arrow.Schema      // of the records
}

// filler builds some consecutive columns of a batch. A Builder calls fill once for each
// batch, in one goroutine. The arrays that it adds to to belong to the caller; the
// filler keeps its buffers for the next batch, and nothing of b.
type filler interface {
	fill(b *Batch, to *blocks)
}

// blocks are the columns of a batch that are not kept from the input, in the order of their
// blocks. One that is not written is not built; its array is nil.
type blocks struct {
	wanted []bool
	arrays []arrow.Array
}

// add builds the next column.
func (to *blocks) add(build func() arrow.Array) {
	var column arrow.Array
	if to.wants(1) {
		column = build()
	}
	to.arrays = append(to.arrays, column)
}

// wants reports whether any of the next n columns is written.
func (to *blocks) wants(n int) bool {
	next := len(to.arrays)
	return slices.Contains(to.wanted[next:next+n], true)
}

// skip adds n columns that are not written.
func (to *blocks) skip(n int) { to.arrays = append(to.arrays, make([]arrow.Array, n)...) }

// NewBuilder returns a Builder with its own buffers.
func (l *Layout) NewBuilder() *Builder {
	b := &Builder{layout: l}
	b.fillers = append(b.fillers, newFixedFiller(l.settings))
	for _, block := range blocksOf[l.settings.Operation] {
		if len(block.columns(l.settings)) > 0 {
			b.fillers = append(b.fillers, block.filler(l))
		}
	}
	if o := newOriginFiller(l.settings); o.columns() > 0 {
		b.fillers = append(b.fillers, o)
	}
	return b
}

// Record builds the record of one batch. Its string columns share memory with
// the batch and with the Builder: they must be copied, not retained, before
// either is used again. So do dictionary arrays, which stand for columns of text
// and numbers that many rows share. The other columns own their memory.
func (b *Builder) Record(in *Batch) arrow.Record {
	columns := make([]arrow.Array, 0, len(b.layout.columns))
	if in.Answers == nil {
		b.none.Reset()
		in.Answers = &b.none
		defer func() { in.Answers = nil }()
	}
	b.layout.HashKeys(in)
	built := blocks{wanted: b.layout.wanted, arrays: make([]arrow.Array, 0, len(b.layout.wanted))}
	for _, f := range b.fillers {
		f.fill(in, &built)
	}
	for _, i := range b.layout.places {
		if n := len(b.layout.names); i >= n {
			columns = append(columns, built.arrays[i-n])
		} else {
			columns = append(columns, b.layout.keep(in, i))
		}
	}
	rec := array.NewRecord(b.schema(columns), columns, int64(in.Len()))
	for _, c := range columns {
		c.Release()
	}
	return rec
}

// schema is that of the layout with the types that columns were built with.
func (b *Builder) schema(columns []arrow.Array) *arrow.Schema {
	same := b.built != nil
	for i := 0; same && i < len(columns); i++ {
		same = b.built.Field(i).Type == columns[i].DataType()
	}
	if !same {
		fields := b.layout.schema.Fields()
		for i, c := range columns {
			fields[i].Type = c.DataType()
		}
		b.built = arrow.NewSchema(fields, nil)
	}
	return b.built
}

// appendKnown appends a value, or null if it is not known.
func appendKnown[T any](to interface {
	Append(v T)
	AppendNull()
}, v T, known bool,
) {
	if known {
		to.Append(v)
	} else {
		to.AppendNull()
	}
}

// stringArray is an array over the memory of texts. valid is nil if no value is null.
func stringArray(t *resolution.Texts, valid func(i int) bool) arrow.Array {
	validity, nulls := bitmap(t.Len(), valid)
	return nullableStrings(t, validity, nulls)
}

// nullableStrings is an array over the memory of texts, with the nulls of a bitmap.
func nullableStrings(t *resolution.Texts, validity *memory.Buffer, nulls int) arrow.Array {
	if len(t.Offsets) == 0 {
		t.Reset()
	}
	buffers := []*memory.Buffer{validity, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(t.Offsets)), memory.NewBufferBytes(t.Data)}
	data := array.NewData(arrow.BinaryTypes.String, t.Len(), buffers, nil, nulls, 0)
	defer data.Release()
	return array.NewStringData(data)
}

// bitmap returns an Arrow validity bitmap, nil if all values are valid.
func bitmap(n int, valid func(i int) bool) (*memory.Buffer, int) {
	if valid == nil {
		return nil, 0
	}
	var bits []byte
	nulls := 0
	for i := range n {
		if valid(i) {
			continue
		}
		if bits == nil {
			bits = make([]byte, bitutil.BytesForBits(int64(n)))
			bitutil.SetBitsTo(bits, 0, int64(n), true)
		}
		bitutil.ClearBit(bits, i)
		nulls++
	}
	if bits == nil {
		return nil, 0
	}
	return memory.NewBufferBytes(bits), nulls
}
