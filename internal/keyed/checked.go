package keyed

import (
	"runtime"
	"unsafe"
)

// Checked is a column whose pages are verified at the first read. Its methods panic on a
// damaged page: call them under Guard.
type Checked[T Fixed] struct {
	values []T
	file   *Columns
	offset int64
}

// ReadChecked is Read for a Checked column.
func ReadChecked[T Fixed](r *ColumnReader, name string, count int) Checked[T] {
	return Checked[T]{Read[T](r, name, count), r.Columns, r.Columns.Offset(name)}
}

// Len is the number of values.
func (c *Checked[T]) Len() int { return len(c.values) }

// All are the values, which are not verified. They are valid until the file is closed.
func (c *Checked[T]) All() []T { return c.values }

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

// Load sets to[i] to the value at places[i], wherever that is. It verifies the pages first, so
// that the loop that reads has few instructions a value: the processor then waits for the
// memory of dozens of values at once. With At for each, network_to_phone took 30% longer.
func (c *Checked[T]) Load(places []uint64, to []T) {
	var one T
	checked, bits, offset := c.file.checked, c.file.bits, uint64(c.offset)
	for _, i := range places {
		page := (offset + i*uint64(unsafe.Sizeof(one))) >> bits
		if checked[page/64].Load()>>(page%64)&1 == 0 {
			c.file.checkPage(int64(page))
		}
	}
	values, to := c.values, to[:len(places)]
	for k, i := range places {
		to[k] = values[i]
	}
}

// touch loads a byte at every step of the distances [from, to) behind each place, or the last
// byte without one. Like Load, it verifies all pages first. It also does what Expect
// does.
func touch(c *Checked[uint8], places []uint64, from, to, step uint64) {
	if c.file.scattered {
		c.file.expect(c.offset+int64(from), 1, places)
		c.file.expect(c.offset+int64(to)-1, 1, places)
	}
	checked, bits, offset, last := c.file.checked, c.file.bits, uint64(c.offset), uint64(len(c.values)-1)
	for _, i := range places {
		end := (offset + min(i+to-1, last)) >> bits
		for page := (offset + min(i+from, last)) >> bits; page <= end; page++ {
			if checked[page/64].Load()>>(page%64)&1 == 0 {
				c.file.checkPage(int64(page))
			}
		}
	}
	values, sum := c.values, uint8(0)
	for at := from; at < to; at += step {
		for _, i := range places {
			sum += values[min(i+at, last)]
		}
	}
	runtime.KeepAlive(sum)
}

// CheckedTexts are Texts whose pages are verified at the first read.
type CheckedTexts struct {
	offsets Checked[uint64]
	bytes   Checked[uint8]
}

// ReadCheckedTexts is ColumnReader.Texts for CheckedTexts.
func ReadCheckedTexts(r *ColumnReader, name string, count int) CheckedTexts {
	return CheckedTexts{ReadChecked[uint64](r, name+"_offsets", count+1), ReadChecked[uint8](r, name, -1)}
}

// At returns a text, valid until the file is closed.
func (t *CheckedTexts) At(i uint32) []byte {
	ends := t.offsets.Slice(uint64(i), uint64(i)+2)
	return t.bytes.Slice(ends[0], ends[1])
}

// Touch loads the beginning of some texts, so that the processor waits for many at once.
func (t *CheckedTexts) Touch(some []uint32) {
	if t.bytes.Len() == 0 {
		return
	}
	places, starts := make([]uint64, len(some)), make([]uint64, len(some))
	for k, i := range some {
		places[k] = uint64(i)
	}
	t.offsets.Load(places, starts)
	touch(&t.bytes, starts, 0, 1, 1)
}
