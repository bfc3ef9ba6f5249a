package columnfile

import (
	"unsafe"
)

// Checked is a column whose pages are verified at the first read. Its methods panic on a
// damaged page: call them under Guard.
type Checked[T Fixed] struct {
	values []T
	file   *File
	offset int64
}

// ReadChecked is Read for a Checked column.
func ReadChecked[T Fixed](r *Reader, name string, count int) Checked[T] {
	return Checked[T]{Read[T](r, name, count), r.File, r.File.Offset(name)}
}

// Len is the number of values.
func (c *Checked[T]) Len() int { return len(c.values) }

// At returns a value.
func (c *Checked[T]) At(i uint64) T {
	var one T
	at := c.offset + int64(i)*int64(unsafe.Sizeof(one))
	c.file.check(at, at+int64(unsafe.Sizeof(one)))
	return c.values[i]
}

// Slice returns the values in [i, j). They are valid until the file is closed.
func (c *Checked[T]) Slice(i, j uint64) []T {
	var one T
	values := c.values[i:j]
	at := c.offset + int64(i)*int64(unsafe.Sizeof(one))
	c.file.check(at, at+int64(len(values))*int64(unsafe.Sizeof(one)))
	return values
}

// CheckedTexts are Texts whose pages are verified at the first read.
type CheckedTexts struct {
	offsets Checked[uint64]
	bytes   Checked[uint8]
}

// ReadCheckedTexts is Reader.Texts for CheckedTexts.
func ReadCheckedTexts(r *Reader, name string, count int) CheckedTexts {
	return CheckedTexts{ReadChecked[uint64](r, name+"_offsets", count+1), ReadChecked[uint8](r, name, -1)}
}

// At returns a text, valid until the file is closed.
func (t *CheckedTexts) At(i uint32) []byte {
	ends := t.offsets.Slice(uint64(i), uint64(i)+2)
	return t.bytes.Slice(ends[0], ends[1])
}
