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
	built   *arrow.Schema // of the records
}

// filler builds some consecutive columns of a batch.
type filler interface {
	fill(b *Batch, to []arrow.Array) []arrow.Array
}

// NewBuilder returns a Builder with its own buffers.
func (l *Layout) NewBuilder() *Builder {
	b := &Builder{layout: l}
	b.fillers = append([]filler{newFixedFiller()}, b.newFillers()...)
	return b
}

func (b *Builder) newFillers() []filler {
	s := b.layout.settings
	switch s.Operation {
	case resolution.EmailToHEM:
		fillers := []filler{newHEMFiller(s), newProfileFiller(s), newNetworkFiller()}
		if s.Remote {
			fillers = append(fillers, newHashedEmailsFiller())
		}
		return fillers
	case resolution.NetworkToHEM:
		return []filler{newHEMFiller(s), newHashedEmailsFiller(), newNetworkFiller()}
	case resolution.NetworkToPhone:
		return []filler{newPhoneFiller(b.layout)}
	case resolution.IPToCompany:
		return []filler{newAddressFiller(), &companyFiller{tables: &b.layout.companies}}
	case resolution.Enrichment:
		return b.leadFillers()
	case resolution.Deanonymization:
		return append(b.leadFillers(), newMatchFiller())
	case resolution.KeywordToLead:
		return slices.Concat([]filler{newFindFiller()}, b.leadFillers(), []filler{newLeadTypeFiller()})
	case resolution.KeywordToLeadCount:
		return []filler{newCountFiller()}
	}
	return nil
}

func (b *Builder) leadFillers() []filler {
	s := b.layout.settings
	return []filler{newContactFiller(&b.layout.texts), newPhoneFiller(b.layout), newHEMFiller(s), newHashedEmailsFiller(), &companyFiller{tables: &b.layout.companies}}
}

// Record builds the record of one batch. Its string columns share memory with
// the batch and with the Builder: they must be copied, not retained, before
// either is used again. So do dictionary arrays, which stand for columns of text
// and numbers that many rows share. The other columns own their memory.
func (b *Builder) Record(in *Batch) arrow.Record {
	columns := make([]arrow.Array, 0, len(b.layout.columns))
	for _, i := range b.layout.kept {
		columns = append(columns, b.layout.keep(in, i))
	}
	var built []arrow.Array
	for _, f := range b.fillers {
		built = f.fill(in, built)
	}
	for i, c := range built {
		if b.layout.omitted[b.layout.built[i].Name] {
			c.Release()
		} else {
			columns = append(columns, c)
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

// lead returns the lead of a row, or an empty one.
func (b *Batch) lead(i int) *resolution.Lead {
	if b.Leads == nil || b.Leads[i] == nil {
		return nobody
	}
	return b.Leads[i]
}

var nobody = &resolution.Lead{}

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

// array returns the list as an Arrow array over the memory of the list. valid is nil if
// no value is null.
func (s *Strings) array(valid func(i int) bool) arrow.Array {
	return s.over(bitmap(s.Len(), valid))
}

// over returns the list as an Arrow array, with the nulls of a bitmap.
func (s *Strings) over(validity *memory.Buffer, nulls int) arrow.Array {
	n := s.Len()
	buffers := []*memory.Buffer{validity, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(s.Offsets)), memory.NewBufferBytes(s.Data)}
	data := array.NewData(arrow.BinaryTypes.String, n, buffers, nil, nulls, 0)
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
