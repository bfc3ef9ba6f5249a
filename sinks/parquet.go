package sinks

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/klauspost/compress/s2"
)

// rowGroupBytes is where a row group ends, in bytes before compression: about
// 64 MB suits warehouses, and a row group is what a writer holds in memory.
const rowGroupBytes = 64 << 20

// Compression names a Parquet codec.
type Compression string

// The codecs every warehouse reads.
const (
	Snappy       Compression = "snappy"
	Zstd         Compression = "zstd"
	Uncompressed Compression = "none"
)

// ParseCompression finds the codec called name.
func ParseCompression(name string) (Compression, error) {
	switch c := Compression(name); c {
	case Snappy, Zstd, Uncompressed:
		return c, nil
	}
	return "", fmt.Errorf("unknown compression %q; it is one of snappy, zstd, none", name)
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

// compressorFor is the compression of one column's pages, nil for none.
func (t Table) compressorFor(column string) func(dst, src []byte) []byte {
	switch {
	case t.Compression == Uncompressed, t.Compression == Snappy && t.Traits[column].Random:
		return nil
	case t.Compression == Snappy:
		return s2.EncodeSnappy // Snappy's format at twice the speed of Arrow's encoder
	}
	codec, err := compress.GetCodec(t.Compression.codec())
	if err != nil {
		panic(err) // the three codecs are compiled in
	}
	return codec.Encode
}

// ColumnTraits is what a writer should know of a top-level column beyond its
// type; the zero value is right for any column.
type ColumnTraits struct {
	// Statistics writes min and max. Never set it on a column that can hold
	// personal data: they are values in clear text.
	Statistics bool
	// Random says that the values cannot be compressed.
	Random bool
}

// Table describes the rows of a Parquet file.
type Table struct {
	Schema      *arrow.Schema
	Traits      map[string]ColumnTraits // by top-level column name
	Metadata    map[string]string       // file key-value metadata
	Compression Compression
}

func (t Table) properties() *parquet.WriterProperties {
	codec := t.Compression.codec()
	options := []parquet.WriterProperty{
		parquet.WithVersion(parquet.V1_0),
		parquet.WithDataPageVersion(parquet.DataPageV1),
		parquet.WithDictionaryDefault(false),
		parquet.WithStats(false),
		parquet.WithCompression(codec),
	}
	for _, f := range t.Schema.Fields() {
		if f.Type.ID() == arrow.DICTIONARY {
			options = append(options, parquet.WithDictionaryFor(f.Name, true))
		}
	}
	for name, traits := range t.Traits {
		if traits.Random && t.Compression == Snappy {
			options = append(options, parquet.WithCompressionFor(name, compress.Codecs.Uncompressed))
		}
	}
	return parquet.NewWriterProperties(options...)
}

// Writer writes one Parquet file of a dataset. It is used by one goroutine.
type Writer struct {
	name     string
	file     construction
	buffer   *bufio.Writer
	bytes    int64
	parquet  *encoder
	pending  int64 // bytes in the open row group, before compression
	rows     int64
	finished bool
}

// fileBuffer is what a file collects before it is handed on.
const fileBuffer = 1 << 20

func newWriter(in place, name string, t Table, pages *pagePool, buffer int) (*Writer, error) {
	f, err := in.create(name)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", name, err)
	}
	w := &Writer{name: name, file: f}
	w.buffer = bufio.NewWriterSize(io.MultiWriter(f, (*byteCount)(&w.bytes)), buffer)
	if w.parquet, err = newEncoder(w.buffer, t, pages); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), f.abort())
	}
	return w, nil
}

type byteCount int64

func (c *byteCount) Write(p []byte) (int, error) {
	*c += byteCount(len(p))
	return len(p), nil
}

// Write adds the rows of a record. The record may be released afterwards.
func (w *Writer) Write(rec arrow.Record) error {
	if rec.NumRows() == 0 {
		return nil
	}
	size := recordBytes(rec)
	if w.pending > 0 && w.pending+size > rowGroupBytes {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.add(rec, size)
	return nil
}

// add adds the rows of a record to the open row group.
func (w *Writer) add(rec arrow.Record, size int64) {
	w.parquet.add(rec)
	w.pending += size
	w.rows += rec.NumRows()
}

// flush ends the open row group.
func (w *Writer) flush() error {
	if err := w.parquet.flush(); err != nil {
		return fmt.Errorf("write %s: %w", w.name, err)
	}
	w.pending = 0
	return nil
}

// Finish writes what is left of the file and gives its memory back. What
// remains, Commit, is waiting for the disk.
func (w *Writer) Finish() error {
	w.finished = true
	if err := w.parquet.close(); err != nil {
		return errors.Join(fmt.Errorf("finish %s: %w", w.name, err), w.file.abort())
	}
	if err := w.buffer.Flush(); err != nil {
		return errors.Join(fmt.Errorf("finish %s: %w", w.name, err), w.file.abort())
	}
	return nil
}

// Commit makes the file durable and gives it its final name, after finishing
// it if need be. In a local folder its checksum is not known yet: Dataset.Sum
// takes those of several files at once.
func (w *Writer) Commit() (File, error) {
	if !w.finished {
		if err := w.Finish(); err != nil {
			return File{}, err
		}
	}
	published, err := w.file.commit()
	if err != nil {
		return File{}, fmt.Errorf("publish %s: %w", w.name, err)
	}
	return File{Name: w.name, Rows: w.rows, Bytes: w.bytes, SHA256: published.sha256, ModifiedAt: published.modifiedAt, ETag: published.etag}, nil
}

// Abort throws the file away; after Commit it does nothing.
func (w *Writer) Abort() error { return w.file.abort() }

// recordBytes is the size of a record's values in memory.
func recordBytes(rec arrow.Record) int64 {
	var size int64
	for _, column := range rec.Columns() {
		size += dataBytes(column.Data())
	}
	return size
}

func dataBytes(d arrow.ArrayData) int64 {
	var size int64
	for _, b := range d.Buffers() {
		if b != nil {
			size += int64(b.Len())
		}
	}
	for _, child := range d.Children() {
		size += dataBytes(child)
	}
	return size
}
