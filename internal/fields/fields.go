// Package fields encodes the fields of a record one after another: numbers as
// varints, texts and bytes after their length.
package fields

import "encoding/binary"

// Append appends a text or bytes, after their length.
func Append[T []byte | string](to []byte, p T) []byte {
	return append(binary.AppendUvarint(to, uint64(len(p))), p...)
}

// Reader decodes fields from the start of Rest. If it finds invalid data, it
// sets Broken, and all further fields are zero.
type Reader struct {
	Rest   []byte
	Broken bool
}

// Break marks the data as invalid.
func (r *Reader) Break() { r.Rest, r.Broken = nil, true }

// Uint decodes a number that was appended with binary.AppendUvarint.
func (r *Reader) Uint() uint64 {
	v, n := binary.Uvarint(r.Rest)
	if !r.skip(n) {
		return 0
	}
	return v
}

// Int decodes a number that was appended with binary.AppendVarint.
func (r *Reader) Int() int64 {
	v, n := binary.Varint(r.Rest)
	if !r.skip(n) {
		return 0
	}
	return v
}

// skip passes over the n bytes of a number, which is invalid if n is not
// positive.
func (r *Reader) skip(n int) bool {
	if n <= 0 {
		r.Break()
		return false
	}
	r.Rest = r.Rest[n:]
	return true
}

// Count decodes the number of items that follow. It is at most the number of
// bytes left, because each item takes a byte at least.
func (r *Reader) Count() int {
	v := r.Uint()
	if v > uint64(len(r.Rest)) {
		r.Break()
		return 0
	}
	return int(v)
}

// Take returns the next n bytes. They are part of the data, and nil if that is
// too short.
func (r *Reader) Take(n int) []byte {
	if n < 0 || n > len(r.Rest) {
		r.Break()
		return nil
	}
	p := r.Rest[:n:n]
	r.Rest = r.Rest[n:]
	return p
}

// Byte returns the next byte.
func (r *Reader) Byte() byte {
	if p := r.Take(1); p != nil {
		return p[0]
	}
	return 0
}

// Bytes decodes bytes that were appended with Append. They are part of the data.
func (r *Reader) Bytes() []byte { return r.Take(r.Count()) }

// Text decodes a text that was appended with Append.
func (r *Reader) Text() string { return string(r.Bytes()) }
