package typed

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
)

// maxPage bounds an unpacked page. A page ends soon after 256 kB, a dictionary is smaller, and a value
// is no larger than a line.
const maxPage = 1 << 30

// pages allocates memory for pages. A page that says that it is larger is damaged.
type pages struct{ memory.GoAllocator }

func (p *pages) Allocate(size int) []byte {
	if size > maxPage+1<<10 {
		panic(fmt.Sprintf("a page of %d bytes", size))
	}
	return p.GoAllocator.Allocate(size)
}

func (p *pages) Reallocate(size int, b []byte) []byte {
	if cap(b) >= size {
		return b[:size]
	}
	bigger := p.Allocate(size)
	copy(bigger, b)
	return bigger
}

// Values are values and nulls of a column chunk, in their order, by the type of the chunk. Texts are
// parts of pages, and valid as long as they are kept.
type Values struct {
	Physical   string  // INT64, BYTE_ARRAY …
	Count      int     // of values and nulls
	Definition []int16 // of all; nil if they are values
	Repetition []int16 // of all; nil without lists

	MaxDefinition, MaxRepetition int16

	Texts    []parquet.ByteArray
	Numbers  []int64 // of INT32 and INT64
	Floats   []float64
	Booleans []bool
	small    []int32 // a batch
}

// Reset drops the values, and keeps the memory for others.
func (v *Values) Reset() {
	v.Count = 0
	v.Definition, v.Repetition, v.Texts, v.Numbers, v.Floats, v.Booleans = v.Definition[:0], v.Repetition[:0], v.Texts[:0], v.Numbers[:0], v.Floats[:0], v.Booleans[:0]
}

// IsNull reports whether value or null i is null, or stands for a list without values.
func (v *Values) IsNull(i int) bool { return v.Definition != nil && v.Definition[i] < v.MaxDefinition }

// Bytes returns the bytes of a value, given by its number among the values: those of a text, or of the
// bits of a number, in room.
func (v *Values) Bytes(i int, room *[8]byte) []byte {
	bits := uint64(0)
	switch {
	case i < len(v.Texts):
		if v.Texts[i] == nil {
			return room[:0]
		}
		return v.Texts[i]
	case i < len(v.Numbers):
		bits = uint64(v.Numbers[i])
	case i < len(v.Floats):
		bits = math.Float64bits(v.Floats[i])
	case v.Booleans[i]:
		bits = 1
	}
	binary.LittleEndian.PutUint64(room[:], bits)
	return room[:]
}

// BatchRows is how many values and nulls are best read at a time.
const BatchRows = 8192

// Chunk reads the values of a leaf in a row group.
type Chunk struct {
	file    *File
	group   int
	leaf    *Leaf
	column  file.ColumnChunkReader
	left    int64 // values and nulls that the footer promises
	batched int64 // at a time at most
}

// Chunk begins a leaf of a row group.
func (f *File) Chunk(group, leaf int) (c *Chunk, err error) {
	l := &f.Leaves[leaf]
	defer f.at(&err, group, l.Path)
	defer Contain(&err)
	read, err := f.reader.RowGroup(group).GetColumnPageReader(leaf)
	if err != nil {
		return nil, err
	}
	column := file.NewColumnReader(f.Metadata().Schema.Column(leaf), &levelPages{PageReader: read, leaf: l}, &pages{}, f.reader.BufferPool())
	c = &Chunk{file: f, group: group, leaf: l, column: column, left: f.Rows(group), batched: max(f.Rows(group), 1)}
	if l.MaxRepetition > 0 {
		chunk, err := f.Metadata().RowGroup(group).ColumnChunk(leaf)
		if err != nil {
			return nil, err
		}
		c.left = chunk.NumValues()
	}
	return c, nil
}

// Read appends up to most values and nulls, fewer at the end of a page, and returns how many; 0 at the
// end. The bytes of texts are those of a page, which is kept as long as they are.
func (c *Chunk) Read(v *Values, most int) (n int, err error) {
	defer c.file.at(&err, c.group, c.leaf.Path)
	defer Contain(&err)
	v.Physical, v.MaxDefinition, v.MaxRepetition = c.column.Type().String(), c.leaf.MaxDefinition, c.leaf.MaxRepetition
	if !c.column.HasNext() {
		return 0, c.column.Err()
	}
	levels, batch := int64(0), min(int64(most), c.batched)
	definition, repetition := levelRoom(&v.Definition, v.MaxDefinition, batch), levelRoom(&v.Repetition, v.MaxRepetition, batch)
	switch r := c.column.(type) {
	case *file.ByteArrayColumnChunkReader:
		levels, err = readValues(r, batch, &v.Texts, definition, repetition)
	case *file.Int64ColumnChunkReader:
		levels, err = readValues(r, batch, &v.Numbers, definition, repetition)
	case *file.Int32ColumnChunkReader:
		v.small = v.small[:0]
		levels, err = readValues(r, batch, &v.small, definition, repetition)
		for _, n := range v.small {
			v.Numbers = append(v.Numbers, int64(n))
		}
	case *file.Float64ColumnChunkReader:
		levels, err = readValues(r, batch, &v.Floats, definition, repetition)
	case *file.BooleanColumnChunkReader:
		levels, err = readValues(r, batch, &v.Booleans, definition, repetition)
	default:
		err = fmt.Errorf("values of type %s, which no dataset has", v.Physical)
	}
	if definition != nil {
		v.Definition = v.Definition[:len(v.Definition)+int(levels)]
	}
	if repetition != nil {
		v.Repetition = v.Repetition[:len(v.Repetition)+int(levels)]
	}
	v.Count += int(levels)
	c.left -= levels
	if err == nil { // after which Arrow would go on with the page for ever
		err = c.column.Err()
	}
	if err == nil && c.left < 0 { // a forged page may say that it has millions, for each byte
		err = fmt.Errorf("a page has %d values more than the footer says", -c.left)
	}
	return int(levels), err
}

// readValues appends the values of a batch.
func readValues[T any](from interface {
	ReadBatch(batch int64, values []T, definition, repetition []int16) (levels int64, n int, err error)
}, batch int64, to *[]T, definition, repetition []int16,
) (levels int64, err error) {
	levels, n, err := from.ReadBatch(batch, roomFor(to, batch), definition, repetition)
	*to = (*to)[:len(*to)+n]
	return levels, err
}

// levelRoom makes room for a batch of levels; nil without levels.
func levelRoom(all *[]int16, most int16, batch int64) []int16 {
	if most == 0 {
		*all = nil
		return nil
	}
	return roomFor(all, batch)
}

// roomFor makes room for a batch at the end of all.
func roomFor[T any](all *[]T, batch int64) []T {
	n := len(*all)
	*all = slices.Grow(*all, int(batch))
	return (*all)[n : n+int(batch)]
}
