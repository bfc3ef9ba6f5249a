package keyed

import (
	"cmp"
	"fmt"
	"unsafe"
)

// Texts are strings stored one after another. Offsets has one more element than
// there are texts.
type Texts struct {
	Offsets []uint64
	Bytes   []byte
}

// Len is the number of texts.
func (t Texts) Len() int { return len(t.Offsets) - 1 }

// At returns a text. It is valid as long as the source of t.
func (t Texts) At(i uint32) []byte { return t.Bytes[t.Offsets[i]:t.Offsets[i+1]] }

// Lists are lists of codes stored one after another, like Texts.
type Lists struct {
	Offsets []uint64
	Members []uint32
}

// Len is the number of lists.
func (l Lists) Len() int { return len(l.Offsets) - 1 }

// At returns a list. It is valid as long as the source of l.
func (l Lists) At(i uint32) []uint32 { return l.Members[l.Offsets[i]:l.Offsets[i+1]] }

// PutTexts writes the two sections of texts.
func PutTexts(w *ColumnWriter, name string, t Texts) {
	Column(w, name+"_offsets", t.Offsets)
	Column(w, name, t.Bytes)
}

// PutEachText writes the two sections of n texts.
func PutEachText(w *ColumnWriter, name string, n int, text func(i int) []byte) {
	end := uint64(0)
	PutEach(w, name+"_offsets", n+1, func(i int) uint64 {
		if i > 0 {
			end += uint64(len(text(i - 1)))
		}
		return end
	})
	begin[uint8](w, name)
	for i := range n {
		put(w, text(i)...)
	}
}

// PutLists writes the two sections of lists.
func PutLists(w *ColumnWriter, name string, l Lists) {
	Column(w, name+"_offsets", l.Offsets)
	Column(w, name, l.Members)
}

// ColumnReader finds sections of Columns and keeps the first error in Err.
type ColumnReader struct {
	Columns *Columns
	Err     error
}

// Has reports whether there is a column.
func (r *ColumnReader) Has(name string) bool {
	_, has := r.Columns.section(name)
	return has
}

// Read returns a column, which is valid until the file is closed. It must have count values, or
// any number if count is negative. The values are not verified: see CheckAll.
func Read[T Fixed](r *ColumnReader, name string, count int) []T {
	e, ok := r.Columns.section(name)
	var one T
	if !ok || e.Width != int(unsafe.Sizeof(one)) || (count >= 0 && e.Count != int64(count)) {
		r.Err = cmp.Or(r.Err, fmt.Errorf("%w: section %s is not what it should be", ErrDamaged, name))
		return nil
	}
	return view[T](r.Columns.data[e.Offset:e.end()])
}

// offsets returns the offsets of count lists, or of any number if count is
// negative.
func (r *ColumnReader) offsets(name string, count int) []uint64 {
	if count >= 0 {
		count++
	}
	offsets := Read[uint64](r, name+"_offsets", count)
	if len(offsets) == 0 {
		r.Err = cmp.Or(r.Err, fmt.Errorf("section %s_offsets is empty", name))
	}
	return offsets
}

// Texts returns count texts of PutTexts, or any number if count is negative.
func (r *ColumnReader) Texts(name string, count int) Texts {
	return Texts{r.offsets(name, count), Read[uint8](r, name, -1)}
}

// Lists returns count lists of PutLists.
func (r *ColumnReader) Lists(name string, count int) Lists {
	return Lists{r.offsets(name, count), Read[uint32](r, name, -1)}
}
