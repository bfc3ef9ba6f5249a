package exchange

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/leadetl/leadetl/internal/fields"
	"github.com/leadetl/leadetl/internal/rows"
)

// A file of rows has the batches of a part as they were read: source, row
// numbers, columns and malformed lines. Each batch is a chunk, because the sizes
// of batches have an influence on the bytes of a part. An empty chunk and the
// number of batches end the file.
const rowsMagic = "ldrows\x00\x01"

// RowsWriter writes a file of rows.
type RowsWriter struct {
	to          *bufio.Writer
	packer      *zstd.Encoder
	raw, packed []byte
	batches     uint64
}

// NewRowsWriter begins a file of rows.
func NewRowsWriter(to io.Writer) (*RowsWriter, error) {
	w := &RowsWriter{to: bufio.NewWriterSize(to, 1<<20), packer: newPacker()}
	_, err := w.to.WriteString(rowsMagic)
	return w, err
}

// Write writes a batch.
func (w *RowsWriter) Write(b *rows.Batch) error {
	w.raw = appendBatch(w.raw[:0], b)
	w.packed = appendChunk(w.packed[:0], w.raw, w.packer)
	w.batches++
	_, err := w.to.Write(w.packed)
	return err
}

// Close ends the file. It does not close what it is written to.
func (w *RowsWriter) Close() error {
	end := binary.LittleEndian.AppendUint64(appendChunk(nil, nil, w.packer), w.batches)
	_, err := w.to.Write(end)
	return errors.Join(err, w.to.Flush(), w.packer.Close())
}

func appendBatch(to []byte, b *rows.Batch) []byte {
	to = fields.Append(to, b.Source)
	to = binary.AppendUvarint(to, uint64(b.Len()))
	last := int64(0)
	for _, row := range b.Rows {
		to = binary.AppendVarint(to, row-last)
		last = row
	}
	to = binary.AppendUvarint(to, uint64(len(b.Columns)))
	for _, c := range b.Columns {
		to = append(to, flag(c.NullN() > 0, 1))
		offsets := c.ValueOffsets()
		for i := range c.Len() {
			// A null is 0, a text its length and 1, if there are nulls at all.
			size := uint64(offsets[i+1] - offsets[i])
			switch {
			case c.NullN() == 0:
			case c.IsNull(i):
				size = 0
			default:
				size++
			}
			to = binary.AppendUvarint(to, size)
		}
		to = fields.Append(to, c.ValueBytes())
	}
	to = binary.AppendUvarint(to, uint64(len(b.Rejects)))
	for _, r := range b.Rejects {
		to = fields.Append(to, r.Source)
		to = binary.AppendVarint(binary.AppendVarint(to, r.Line), r.Row)
		to = fields.Append(fields.Append(to, r.Reason), r.Raw)
	}
	return to
}

// RowsReader reads a file of rows.
type RowsReader struct {
	chunks  chunkReader
	columns int
	batches uint64
}

// NewRowsReader begins to read a file of rows. name is for errors, size is that
// of the file, and columns is how many columns its batches have. Close frees
// the memory.
func NewRowsReader(name string, from io.Reader, size int64, columns int) (*RowsReader, error) {
	r := &RowsReader{chunks: chunkReader{name: name, from: bufio.NewReaderSize(from, 1<<20), left: size, unpacker: newUnpacker()}, columns: columns}
	magic := make([]byte, magicBytes)
	if err := r.chunks.fill(magic); err != nil {
		return nil, err
	}
	if string(magic) != rowsMagic {
		return nil, damaged(name, "not the expected kind of object")
	}
	return r, nil
}

// Close frees the memory.
func (r *RowsReader) Close() { r.chunks.unpacker.Close() }

// Next returns the next batch, or io.EOF. The caller releases it.
func (r *RowsReader) Next() (*rows.Batch, error) {
	raw, err := r.chunks.next()
	if errors.Is(err, io.EOF) {
		return nil, damaged(r.chunks.name, "ends too early")
	}
	if err != nil {
		return nil, err
	}
	if len(raw) == 0 {
		end := make([]byte, 8)
		if err := r.chunks.fill(end); err != nil {
			return nil, err
		}
		if r.chunks.left > 0 || binary.LittleEndian.Uint64(end) != r.batches {
			return nil, damaged(r.chunks.name, "another number of batches")
		}
		return nil, io.EOF
	}
	r.batches++
	b := decodeBatch(&fields.Reader{Rest: raw}, r.columns)
	if b == nil {
		return nil, damaged(r.chunks.name, "impossible batch")
	}
	return b, nil
}

// decodeBatch decodes a batch; nil if that is impossible.
func decodeBatch(d *fields.Reader, columns int) *rows.Batch {
	source := d.Text()
	numbers := make([]int64, d.Count())
	last := int64(0)
	for i := range numbers {
		last += d.Int()
		numbers[i] = last
	}
	if d.Uint() != uint64(columns) || d.Broken {
		return nil
	}
	builder := rows.NewBuilder(columns, len(numbers))
	order := make([]int, columns)
	cells := make([]columnCells, columns)
	for i := range cells {
		order[i], cells[i] = i, decodeColumn(d, len(numbers))
	}
	for row, number := range numbers {
		for i := range cells {
			cells[i].addTo(builder, i, row)
		}
		builder.Commit(number, number)
	}
	for range d.Count() {
		j := rows.Reject{Source: d.Text(), Line: d.Int(), Row: d.Int(), Reason: d.Text()}
		builder.Reject(j, d.Bytes())
	}
	if d.Broken || len(d.Rest) > 0 {
		builder.Discard()
		return nil
	}
	return builder.Batch(source, order)
}

// columnCells are the cells of a column.
type columnCells struct {
	nulls bool
	sizes []uint64
	rest  []byte
}

func decodeColumn(d *fields.Reader, n int) columnCells {
	kind := d.Byte()
	c := columnCells{nulls: kind == 1, sizes: make([]uint64, n)}
	total := uint64(0)
	for i := range c.sizes {
		size := d.Uint()
		c.sizes[i] = size
		if c.nulls && size > 0 {
			size--
		}
		if size > maxChunk {
			d.Broken = true
		}
		total += size
	}
	c.rest = d.Bytes()
	if kind > 1 || d.Broken || total != uint64(len(c.rest)) {
		d.Break()
		c.sizes = make([]uint64, n) // so that addTo reads nothing
		c.nulls = false
	}
	return c
}

func (c *columnCells) addTo(b *rows.Builder, column, row int) {
	size := c.sizes[row]
	switch {
	case c.nulls && size == 0:
		b.AddNull(column)
		return
	case c.nulls:
		size--
	}
	b.Add(column, c.rest[:size])
	c.rest = c.rest[size:]
}
