package parquetfile

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/parquet-go/parquet-go/format"
)

// The decoders read the values of a page one by one. None allocates memory
// based on the sizes that a page claims: a run of a few bytes can stand for
// billions of values. Source: Apache Parquet format, "Parquet encoding
// definitions".

// value is a value of a page: the bytes of texts, binary and INT96, which are
// valid until the next value, or the bits of a number.
type value struct {
	bits  uint64
	bytes []byte
}

type decoder interface{ next() (value, error) }

var errPage = errors.New("a page ends before its values do")

// plain decodes values that are stored one after another.
type plain struct {
	data   []byte
	kind   format.Type
	length int // of FIXED_LEN_BYTE_ARRAY
	bit    int // of BOOLEAN
}

func (p *plain) next() (v value, err error) {
	switch p.kind {
	case format.Boolean:
		if p.bit/8 >= len(p.data) {
			return v, errPage
		}
		v.bits = uint64(p.data[p.bit/8]>>(p.bit%8)) & 1
		p.bit++
		return v, nil
	case format.Int32, format.Float:
		b, err := p.take(4)
		if err != nil {
			return v, err
		}
		return value{bits: uint64(binary.LittleEndian.Uint32(b))}, nil
	case format.Int64, format.Double:
		b, err := p.take(8)
		if err != nil {
			return v, err
		}
		return value{bits: binary.LittleEndian.Uint64(b)}, nil
	case format.Int96:
		v.bytes, err = p.take(12)
	case format.ByteArray:
		size, err := p.take(4)
		if err != nil {
			return v, err
		}
		v.bytes, err = p.take(int(binary.LittleEndian.Uint32(size)))
		return v, err
	default:
		v.bytes, err = p.take(p.length)
	}
	return v, err
}

func (p *plain) take(n int) ([]byte, error) {
	if n < 0 || n > len(p.data) {
		return nil, errPage
	}
	b := p.data[:n]
	p.data = p.data[n:]
	return b, nil
}

// hybrid decodes runs of equal and of bit-packed numbers: levels, dictionary
// indexes and booleans.
type hybrid struct {
	data   []byte
	width  int
	left   int // values left in the run
	packed []byte
	bit    int    // in packed
	value  uint64 // of a run of equal values
}

func (h *hybrid) next() (uint64, error) {
	if h.width == 0 {
		return 0, nil
	}
	for h.left == 0 {
		header, n := binary.Uvarint(h.data)
		if n <= 0 || header>>1 > 1<<32 {
			return 0, errPage
		}
		h.data = h.data[n:]
		if header&1 == 1 {
			h.left = int(header>>1) * 8
			size := min(h.left/8*h.width, len(h.data)) // the last run may be cut
			h.packed, h.data, h.bit = h.data[:size], h.data[size:], 0
			continue
		}
		h.left, h.packed = int(header>>1), nil
		size := (h.width + 7) / 8
		if size > len(h.data) {
			return 0, errPage
		}
		h.value = 0
		for i, b := range h.data[:size] {
			h.value |= uint64(b) << (8 * i)
		}
		h.data = h.data[size:]
	}
	h.left--
	if h.packed == nil {
		return h.value, nil
	}
	v, ok := unpack(h.packed, h.bit, h.width)
	h.bit += h.width
	if !ok {
		return 0, errPage
	}
	return v, nil
}

// unpack returns the number of width bits at bit position bit.
func unpack(data []byte, bit, width int) (v uint64, ok bool) {
	if width == 0 {
		return 0, true
	}
	at := bit / 8
	if at+9 <= len(data) {
		v = binary.LittleEndian.Uint64(data[at:]) >> (bit % 8)
		if bit%8 != 0 {
			v |= uint64(data[at+8]) << (64 - bit%8)
		}
		return v << (64 - width) >> (64 - width), true
	}
	if (bit+width+7)/8 > len(data) {
		return 0, false
	}
	for i := range width {
		v |= uint64(data[(bit+i)/8]>>((bit+i)%8)&1) << i
	}
	return v, true
}

// bitPacked decodes the deprecated BIT_PACKED: n levels, highest bit first. It
// also returns how many bytes they take.
func bitPacked(data []byte, n, width int) (*hybrid, int, error) {
	if n < 0 || n > 8*len(data)/width {
		return nil, 0, errPage
	}
	size := (n*width + 7) / 8
	turned := make([]byte, size) // with the lowest bit first
	for i := range n * width {
		from := i/width*width + width - 1 - i%width
		turned[i/8] |= data[from/8] >> (7 - from%8) & 1 << (i % 8)
	}
	return &hybrid{width: width, left: n, packed: turned}, size, nil
}

// booleans decodes BOOLEAN in runs.
type booleans struct{ hybrid }

func (b *booleans) next() (value, error) {
	v, err := b.hybrid.next()
	return value{bits: v}, err
}

// indexed decodes dictionary indexes.
type indexed struct {
	places  hybrid
	entries []value
}

func (d *indexed) next() (value, error) {
	i, err := d.places.next()
	if err != nil {
		return value{}, err
	}
	if i >= uint64(len(d.entries)) {
		return value{}, errors.New("a value is not in its dictionary")
	}
	return d.entries[i], nil
}

// delta decodes DELTA_BINARY_PACKED.
type delta struct {
	data       []byte
	miniBlocks int
	miniSize   int
	left       int // values
	value      uint64
	first      bool

	minimum uint64
	widths  []byte // of the remaining mini blocks
	mini    []byte
	width   int
	bit     int
	inMini  int // values left in it
}

func newDelta(data []byte, maxValues int) (*delta, error) {
	d := &delta{data: data, first: true}
	var header [3]uint64
	for i := range header {
		n := 0
		if header[i], n = binary.Uvarint(d.data); n <= 0 {
			return nil, errPage
		}
		d.data = d.data[n:]
	}
	first, n := binary.Varint(d.data)
	blockSize, miniBlocks, values := header[0], header[1], header[2]
	if n <= 0 || miniBlocks == 0 || blockSize == 0 || blockSize > 1<<30 || blockSize%miniBlocks != 0 || blockSize/miniBlocks%8 != 0 || values > uint64(maxValues) {
		return nil, errors.New("a page of DELTA_BINARY_PACKED has a wrong header")
	}
	d.data = d.data[n:]
	d.miniBlocks, d.miniSize, d.left, d.value = int(miniBlocks), int(blockSize/miniBlocks), int(values), uint64(first)
	return d, nil
}

func (d *delta) number() (uint64, error) {
	if d.left == 0 {
		return 0, errPage
	}
	d.left--
	if d.first {
		d.first = false
		return d.value, nil
	}
	if d.inMini == 0 {
		if err := d.nextMini(); err != nil {
			return 0, err
		}
	}
	v, ok := unpack(d.mini, d.bit, d.width)
	if !ok {
		return 0, errPage
	}
	d.bit += d.width
	d.inMini--
	d.value += d.minimum + v
	return d.value, nil
}

// nextMini starts the next mini block. At the end of a block it starts the next
// block.
func (d *delta) nextMini() error {
	if len(d.widths) == 0 {
		minimum, n := binary.Varint(d.data)
		if n <= 0 || n+d.miniBlocks > len(d.data) {
			return errPage
		}
		d.minimum = uint64(minimum)
		d.widths, d.data = d.data[n:n+d.miniBlocks], d.data[n+d.miniBlocks:]
	}
	d.width, d.widths = int(d.widths[0]), d.widths[1:]
	if d.width > 64 {
		return errPage
	}
	size := min(d.miniSize*d.width/8, len(d.data)) // the last block may be cut
	d.mini, d.data = d.data[:size], d.data[size:]
	d.bit, d.inMini = 0, d.miniSize
	return nil
}

func (d *delta) next() (value, error) {
	v, err := d.number()
	return value{bits: v}, err
}

// rest reads all numbers, and returns how many there are and the bytes after
// them.
func rest(data []byte, maxValues int) (count int, behind []byte, err error) {
	d, err := newDelta(data, maxValues)
	if err != nil {
		return 0, nil, err
	}
	for count = d.left; d.left > 0; {
		if _, err := d.number(); err != nil {
			return 0, nil, err
		}
	}
	return count, d.data, nil
}

// deltaLengths decodes DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes.
type deltaLengths struct {
	lengths *delta
	data    []byte
}

func newDeltaLengths(data []byte, maxValues int) (*deltaLengths, error) {
	_, bytes, err := rest(data, maxValues)
	if err != nil {
		return nil, err
	}
	lengths, err := newDelta(data, maxValues)
	return &deltaLengths{lengths, bytes}, err
}

func (d *deltaLengths) next() (value, error) {
	n, err := d.lengths.number()
	if err != nil {
		return value{}, err
	}
	if n > uint64(len(d.data)) {
		return value{}, errPage
	}
	v := value{bytes: d.data[:n]}
	d.data = d.data[n:]
	return v, nil
}

// deltaBytes decodes DELTA_BYTE_ARRAY: each value shares a prefix with the one
// before.
type deltaBytes struct {
	prefixes *delta
	suffixes *deltaLengths
	value    []byte
}

func newDeltaBytes(data []byte, maxValues int) (*deltaBytes, error) {
	_, behind, err := rest(data, maxValues)
	if err != nil {
		return nil, err
	}
	prefixes, err := newDelta(data, maxValues)
	if err != nil {
		return nil, err
	}
	suffixes, err := newDeltaLengths(behind, maxValues)
	return &deltaBytes{prefixes: prefixes, suffixes: suffixes}, err
}

func (d *deltaBytes) next() (value, error) {
	n, err := d.prefixes.number()
	if err != nil {
		return value{}, err
	}
	suffix, err := d.suffixes.next()
	if err != nil {
		return value{}, err
	}
	if n > uint64(len(d.value)) {
		return value{}, errPage
	}
	d.value = append(d.value[:n], suffix.bytes...)
	return value{bytes: d.value}, nil
}

// split decodes BYTE_STREAM_SPLIT: the first bytes of all values, then all
// second bytes, and so on.
type split struct {
	data  []byte
	count int // values
	at    int
	value []byte // the current value
	kind  format.Type
}

func newSplit(data []byte, kind format.Type, length int) (*split, error) {
	if width, ok := map[format.Type]int{format.Int32: 4, format.Float: 4, format.Int64: 8, format.Double: 8}[kind]; ok {
		length = width
	}
	if length <= 0 || len(data)%length != 0 {
		return nil, errPage
	}
	return &split{data: data, count: len(data) / length, value: make([]byte, length), kind: kind}, nil
}

func (s *split) next() (value, error) {
	if s.at == s.count {
		return value{}, errPage
	}
	for i := range s.value {
		s.value[i] = s.data[i*s.count+s.at]
	}
	s.at++
	return (&plain{data: s.value, kind: s.kind, length: len(s.value)}).next()
}

// levelWidth returns the number of bits of a level.
func levelWidth(maximum int) int { return bits.Len(uint(maximum)) }
