package exchange

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"

	"github.com/klauspost/compress/zstd"

	"github.com/leadetl/leadetl/internal/fields"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// A file of slices has what is known of the keys of a lot, for each part that
// has them: chunks of records, ordered by the hashes of their questions. The
// footer has for each part the number of records and the length of its chunks.
const slicesMagic = "ldslic\x00\x01"

// sliceChunk is the size at which a chunk ends, before it is packed.
const sliceChunk = 256 << 10

// Slices collects the slices of a lot.
type Slices struct {
	parts  [MaxParts]slicePart
	packer *zstd.Encoder
	record []byte
}

type slicePart struct {
	records     uint64
	raw, packed []byte
}

// NewSlices makes empty slices. Use Write once.
func NewSlices() *Slices { return &Slices{packer: newPacker()} }

// Add adds what is known of a key to the slices of some parts. Hashes rise.
func (s *Slices) Add(h answers.Hash, parts uint64, f answers.Found) {
	s.record = append(s.record[:0], h[:]...)
	s.record = appendFound(s.record, f)
	for ; parts != 0; parts &= parts - 1 {
		p := &s.parts[bits.TrailingZeros64(parts)]
		p.raw = fields.Append(p.raw, s.record)
		p.records++
		if len(p.raw) >= sliceChunk {
			s.pack(p)
		}
	}
}

func (s *Slices) pack(p *slicePart) {
	if len(p.raw) > 0 {
		p.packed = appendChunk(p.packed, p.raw, s.packer)
		p.raw = p.raw[:0]
	}
}

// Write writes the slices, and frees the memory.
func (s *Slices) Write(w io.Writer) (err error) {
	var footer []byte
	for i := range s.parts {
		p := &s.parts[i]
		s.pack(p)
		footer = binary.AppendUvarint(footer, p.records)
		footer = binary.AppendUvarint(footer, uint64(len(p.packed)))
		if err == nil {
			_, err = w.Write(p.packed)
		}
		*p = slicePart{}
	}
	if err == nil {
		_, err = w.Write(appendFooter(nil, footer, slicesMagic))
	}
	return errors.Join(err, s.packer.Close())
}

// SlicesFile is a file of slices to read.
type SlicesFile struct {
	o       Object
	records [MaxParts]uint64
	at      [MaxParts + 1]int64
}

// OpenSlices reads the footer of a file of slices.
func OpenSlices(o Object) (*SlicesFile, error) {
	footer, end, err := readFooter(o, slicesMagic)
	if err != nil {
		return nil, err
	}
	f := &SlicesFile{o: o}
	d := fields.Reader{Rest: footer}
	for i := range f.records {
		records, size := d.Uint(), d.Uint()
		if size > uint64(end-f.at[i]) || records > maxChunk*size {
			return nil, damaged(o.Name, "impossible footer")
		}
		f.records[i], f.at[i+1] = records, f.at[i]+int64(size)
	}
	if d.Broken || len(d.Rest) > 0 || f.at[MaxParts] != end {
		return nil, damaged(o.Name, "impossible footer")
	}
	return f, nil
}

// Has reports whether there is a slice for a part.
func (f *SlicesFile) Has(part int) bool { return f.records[part] > 0 }

// Record is a hash and, encoded, what is known of its question.
type Record struct {
	Hash answers.Hash
	data []byte
}

// Clone copies a record.
func (r Record) Clone() Record { return Record{r.Hash, bytes.Clone(r.data)} }

// Each passes the records of a part to do, in the order of their hashes. A
// record is valid until do returns.
func (f *SlicesFile) Each(part int, do func(Record) error) error {
	size := f.at[part+1] - f.at[part]
	unpacker := newUnpacker()
	defer unpacker.Close()
	from := bufio.NewReaderSize(io.NewSectionReader(f.o, f.at[part], size), int(max(min(size, 1<<20), 16)))
	chunks := chunkReader{name: f.o.Name, from: from, left: size, unpacker: unpacker}
	records, last := uint64(0), answers.Hash{}
	for {
		raw, err := chunks.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for d := (fields.Reader{Rest: raw}); len(d.Rest) > 0; records++ {
			record := fields.Reader{Rest: d.Bytes()}
			r := Record{Hash: answers.ReadHash(&record), data: record.Rest}
			if d.Broken || record.Broken || records > 0 && r.Hash.Compare(last) <= 0 {
				return damaged(f.o.Name, "impossible record")
			}
			if err := do(r); err != nil {
				return err
			}
			last = r.Hash
		}
	}
	if records != f.records[part] {
		return damaged(f.o.Name, "another number of records")
	}
	return nil
}
