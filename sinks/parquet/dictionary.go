package parquet

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/leadetl/leadetl/internal/codes"
)

// dictionary numbers values in the order in which they first occur. They are in one block of
// memory.
type dictionary struct {
	width  int         // of numbers, 0 for text
	data   []byte      // the values as a PLAIN page: text behind its length
	starts []uint32    // of each value in data
	table  codes.Table // lacks the last values if they came as codes, and no value was looked up since
}

const lengthBytes = 4 // before each value

// number returns the number of a value. If the value is new, it gets the next
// number.
func (d *dictionary) number(value []byte) (number uint32, added bool) {
	for n := d.table.Len(); n < len(d.starts); n++ {
		d.table.Add(codes.Hash(d.value(uint32(n))))
	}
	hash := codes.Hash(value)
	if number, found := d.table.Find(hash, func(number uint32) bool { return bytes.Equal(d.value(number), value) }); found {
		return number, false
	}
	d.table.Add(hash)
	return d.append(value), true
}

// append adds a value that is not in the dictionary yet.
func (d *dictionary) append(value []byte) (number uint32) {
	number = uint32(len(d.starts))
	d.starts = append(d.starts, uint32(len(d.data)))
	d.data = appendCell(d.data, value, d.width)
	return number
}

// value is the value with a number. It is valid until the next one is added.
func (d *dictionary) value(number uint32) []byte {
	start := d.starts[number]
	if d.width > 0 {
		return d.data[start : int(start)+d.width]
	}
	end := start + lengthBytes + binary.LittleEndian.Uint32(d.data[start:])
	return d.data[start+lengthBytes : end]
}

func (d *dictionary) len() int { return len(d.starts) }

// bits is the number of bits of a number.
func (d *dictionary) bits() int { return max(1, bits.Len(uint(d.len()-1))) }

// pays reports whether the dictionary and so many numbers are clearly smaller than the values,
// which compression makes smaller too.
func (d *dictionary) pays(numbers, plain int) bool {
	return numbers > 0 && 4*(len(d.data)+numbers*d.bits()/8) <= 3*plain
}

// reset forgets the values and keeps the memory.
func (d *dictionary) reset() {
	d.table.Reset()
	d.data, d.starts = d.data[:0], d.starts[:0]
}

// appendNumbers appends numbers of the given bit width, as runs of equal ones
// and packed groups of eight.
// Source: Apache Parquet format, "RLE / Bit-Packing Hybrid".
func appendNumbers(to []byte, numbers []uint32, width int) []byte {
	for at := 0; at < len(numbers); {
		if n := runLength(numbers[at:]); n >= 8 {
			to = binary.AppendUvarint(to, uint64(n)<<1)
			for shift := 0; shift < width; shift += 8 {
				to = append(to, byte(numbers[at]>>shift))
			}
			at += n
			continue
		}
		end := at + 8
		for end < len(numbers) && !startsRun(numbers[end:]) {
			end += 8
		}
		to = binary.AppendUvarint(to, uint64(end-at)/8<<1|1)
		to = appendPacked(to, numbers[at:min(end, len(numbers))], width)
		at = end
	}
	return to
}

func runLength(numbers []uint32) int {
	n := 1
	for n < len(numbers) && numbers[n] == numbers[0] {
		n++
	}
	return n
}

// startsRun reports whether the first eight numbers are equal.
func startsRun(numbers []uint32) bool {
	return len(numbers) >= 8 && runLength(numbers[:8]) == 8
}

// appendPacked appends numbers bit by bit, the lowest first, and zeros up to a
// multiple of eight numbers.
func appendPacked(to []byte, numbers []uint32, width int) []byte {
	var bits uint64
	have := 0
	for _, n := range numbers {
		bits |= uint64(n) << have
		if have += width; have >= 32 {
			to = binary.LittleEndian.AppendUint32(to, uint32(bits))
			bits >>= 32
			have -= 32
		}
	}
	for have += (-len(numbers) & 7) * width; have > 0; have -= 8 {
		to = append(to, byte(bits))
		bits >>= 8
	}
	return to
}
