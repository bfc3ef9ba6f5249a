// Package parquet writes Parquet files that every warehouse loads, and the same
// bytes for the same rows: format V1, plain and dictionary pages, three
// compressions.
package parquet

import (
	"fmt"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"

	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/sinks/schema"
)

// A row group ends after RowGroupRows. Warehouses read row groups of this size well, and the
// values of a company come often enough in it for a dictionary. It ends before, where its
// writer holds RowGroupBytes (Encoder.Held): about those of the row group before compression.
// That bounds memory.
const (
	RowGroupRows  = 1 << 17
	RowGroupBytes = 160 << 20
	// Where there are more than manyColumns, their open pages would take as much as a row
	// group. Both are smaller then, down to what still compresses well, and is read well.
	manyColumns     = 64
	leastPageBytes  = 64 << 10
	leastGroupBytes = 40 << 20
)

// pageBytes is where a page of a column ends.
func (t Table) pageBytes() int { return max(t.share(pageBytes), leastPageBytes) }

// rowGroupBytes is what a writer holds at most.
func (t Table) rowGroupBytes() int { return max(t.share(RowGroupBytes), leastGroupBytes) }

// share is less of a size if there are many columns.
func (t Table) share(of int) int { return of / max(manyColumns, len(t.Columns)) * manyColumns }

// Compression names a Parquet codec.
type Compression string

// The codecs every warehouse reads.
const (
	Snappy       Compression = "snappy"
	Zstd         Compression = "zstd"
	Uncompressed Compression = "none"
)

// ParseCompression returns the codec with the given name.
func ParseCompression(name string) (Compression, error) {
	switch c := Compression(name); c {
	case Snappy, Zstd, Uncompressed:
		return c, nil
	}
	return "", fmt.Errorf("unknown compression %q%s", name, suggest.OneOf(name, []string{"snappy", "zstd", "none"}))
}

func (c Compression) codec() compress.Compression {
	switch c {
	case Zstd:
		return compress.Codecs.Zstd
	case Uncompressed:
		return compress.Codecs.Uncompressed
	default:
		return compress.Codecs.Snappy
	}
}

// compressorFor is the compression of one column's pages, nil for none. Of a column of pairs
// it is that of the first texts.
func (t Table) compressorFor(c schema.Column) func(dst, src []byte) []byte {
	switch {
	case t.leavesAsIs(c):
		return nil
	case t.Compression == Snappy && c.Random:
		return packDigests
	case t.Compression == Snappy:
		return packSnappy // files are 2 to 6% smaller than with s2.EncodeSnappy, in the same time
	}
	codec, err := compress.GetCodec(t.Compression.codec())
	if err != nil {
		panic(err) // the three codecs are compiled in
	}
	return codec.Encode
}

// leavesAsIs reports whether the pages of a column are not compressed. Random pairs are, since
// one byte in twenty of their pages is of a length and repeats.
func (t Table) leavesAsIs(c schema.Column) bool {
	return t.Compression == Uncompressed || t.Compression == Snappy && c.Random && !isPairs(c.Arrow)
}

// Table describes the rows of a Parquet file.
type Table struct {
	Columns     []schema.Column
	Metadata    map[string]string // file key-value metadata
	Compression Compression
}

// Schema is the Arrow schema of the records that the file is made of.
func (t Table) Schema() *arrow.Schema { return schema.Arrow(t.Columns) }

func (t Table) properties() *parquet.WriterProperties {
	codec := t.Compression.codec()
	options := []parquet.WriterProperty{
		parquet.WithVersion(parquet.V1_0),
		parquet.WithDataPageVersion(parquet.DataPageV1),
		parquet.WithDictionaryDefault(false),
		parquet.WithStats(false),
		parquet.WithCompression(codec),
		// The root is not a column and does not repeat. Arrow's default is
		// REPEATED, which makes some readers take every column's levels as one
		// deeper.
		// Source: parquet.thrift, SchemaElement.repetition_type.
		parquet.WithRootRepetition(parquet.Repetitions.Required),
	}
	for _, c := range t.Columns {
		if t.leavesAsIs(c) {
			options = append(options, parquet.WithCompressionFor(c.Name, compress.Codecs.Uncompressed))
		}
	}
	return parquet.NewWriterProperties(options...)
}

// sizeOf is about the size of the values of an array that Arrow encodes. A slice has the
// buffers of the whole array, so these say nothing.
func sizeOf(a arrow.Array) int {
	switch a := a.(type) {
	case *array.List:
		if a.Len() == 0 {
			return 0
		}
		from, _ := a.ValueOffsets(0)
		_, to := a.ValueOffsets(a.Len() - 1)
		values := array.NewSlice(a.ListValues(), from, to)
		defer values.Release()
		return offsetBytes*a.Len() + sizeOf(values)
	case *array.String:
		return offsetBytes*a.Len() + len(a.ValueBytes())
	case *array.Boolean:
		return a.Len() / 8
	}
	return 8 * a.Len()
}

const offsetBytes = 4
