// Package parquetfile reads the columns of a Parquet file as text.
//
// A file is read a few thousand rows at a time and a page at a time, so that
// memory does not depend on the size of its row groups.
package parquetfile

import (
	"context"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"

	"github.com/leadetl/leadetl/internal/rows"
)

// stepBytes and stepRows bound what is decoded at a time.
const (
	stepBytes = rows.FullBytes
	stepRows  = 8192
)

// Input is an open file: *os.File is one.
type Input interface {
	io.ReaderAt
	io.Seeker
}

// Reader reads one file. It does not close its Input.
type Reader struct {
	name    string
	file    *file.Reader
	reader  *pqarrow.FileReader
	schema  *arrow.Schema
	columns []string

	records pqarrow.RecordReader
	fields  []int // per asked column, its place in a record

	record arrow.Record
	texts  []textColumn
	at     int   // the next row of record
	row    int64 // rows behind us
}

// Open reads the file's footer. Errors are *rows.FormatError, or in's own.
func Open(name string, in Input) (r *Reader, err error) {
	r = &Reader{name: name}
	defer r.recover(&err)
	properties := parquet.NewReaderProperties(memory.DefaultAllocator)
	properties.BufferedStreamEnabled = true
	properties.BufferSize = pageBuffer
	if r.file, err = file.NewParquetReader(in, file.WithReadProps(properties)); err != nil {
		return nil, r.unreadable(err)
	}
	step, err := stepOf(r.file)
	if err != nil {
		return nil, r.unreadable(err)
	}
	r.reader, err = pqarrow.NewFileReader(r.file, pqarrow.ArrowReadProperties{BatchSize: step}, memory.DefaultAllocator)
	if err != nil {
		return nil, r.unreadable(err)
	}
	if r.schema, err = r.reader.Schema(); err != nil {
		return nil, r.unreadable(err)
	}
	for _, f := range r.schema.Fields() {
		r.columns = append(r.columns, f.Name)
	}
	return r, nil
}

// stepOf is how many rows to decode at a time: as many as make stepBytes in
// the row group whose rows are the widest.
//
// It is an average within that row group, and of encoded values, where what a
// dictionary holds counts once however many rows repeat it. Wide rows that
// stand together among narrow ones, and repeated wide values, can therefore
// take more than stepBytes: up to stepRows times the widest value.
func stepOf(f *file.Reader) (int64, error) {
	widest := int64(1) // bytes per row
	for i := range f.NumRowGroups() {
		group := f.MetaData().RowGroup(i)
		size := int64(0) // the group's own total counts packed bytes with some writers
		for j := range group.NumColumns() {
			chunk, err := group.ColumnChunk(j)
			if err != nil {
				return 0, err
			}
			size += chunk.TotalUncompressedSize()
		}
		if n := group.NumRows(); n > 0 {
			widest = max(widest, size/n+1)
		}
	}
	return min(max(stepBytes/widest, 1), stepRows), nil
}

// Columns returns the names of the file's columns; of nested ones, the outer.
func (r *Reader) Columns() []string { return r.columns }

// Rows is the number of rows in the file.
func (r *Reader) Rows() int64 { return r.file.NumRows() }

// Row is the number of rows behind us.
func (r *Reader) Row() int64 { return r.row }

// Select names the columns Fill stores, by their index in Columns, each once;
// the n-th goes to column n. Call it once, before Fill.
func (r *Reader) Select(ctx context.Context, pick []int) (err error) {
	defer r.recover(&err)
	if r.Rows() == 0 {
		return nil
	}
	read := pick
	if len(read) == 0 {
		read = []int{0} // rows are still counted
	}
	wanted := make([]bool, len(r.columns))
	for _, field := range read {
		wanted[field] = true
	}
	var leaves []int
	place := make([]int, len(r.columns))
	places := 0
	for field, manifest := range r.reader.Manifest.Fields {
		if wanted[field] {
			leaves = appendLeaves(leaves, manifest)
			place[field] = places
			places++
		}
	}
	for _, field := range pick {
		r.fields = append(r.fields, place[field])
	}
	if r.records, err = r.reader.GetRecordReader(ctx, leaves, nil); err != nil {
		return r.unreadable(err)
	}
	return nil
}

// appendLeaves appends the stored columns a field is made of. A field's own
// IsLeaf is not asked: the ColIndex it goes by is 0, not -1, in nested fields.
func appendLeaves(leaves []int, f pqarrow.SchemaField) []int {
	if len(f.Children) == 0 {
		return append(leaves, f.ColIndex)
	}
	for _, child := range f.Children {
		leaves = appendLeaves(leaves, child)
	}
	return leaves
}

// Fill adds up to maxRows rows to b. It returns io.EOF when the file ends; b
// may hold rows then too. A row with a text that is not UTF-8 is a reject.
func (r *Reader) Fill(ctx context.Context, b *rows.Builder, maxRows int) (err error) {
	defer r.recover(&err)
	for b.Len() < maxRows && !b.Full() {
		if r.record == nil || r.at == int(r.record.NumRows()) {
			if err := r.next(ctx); err != nil {
				return err
			}
		}
		r.row++
		valid := true
		for column, text := range r.texts {
			if text.IsNull(r.at) {
				b.AddNull(column)
				continue
			}
			before := b.Slot(column)
			after := text.append(before, r.at)
			b.SetSlot(column, after)
			valid = valid && utf8.Valid(after[len(before):])
		}
		r.at++
		if !valid {
			b.Rollback()
			b.Reject(rows.Reject{Source: r.name, Line: r.row, Row: r.row, Reason: rows.InvalidUTF8}, nil)
			continue
		}
		b.Commit(r.row)
	}
	return nil
}

// next reads the next record.
func (r *Reader) next(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.row == r.Rows() {
		return io.EOF
	}
	if !r.records.Next() {
		if err := r.records.Err(); err != nil && err != io.EOF {
			return r.unreadable(err)
		}
		return r.unreadable(fmt.Errorf("%d rows of %d", r.row, r.Rows()))
	}
	// The record is the reader's and lives until its next Next.
	r.record, r.at = r.records.Record(), 0
	r.texts = r.texts[:0]
	for _, field := range r.fields {
		r.texts = append(r.texts, textOf(r.record.Column(field)))
	}
	return nil
}

// Close frees the decoders.
func (r *Reader) Close() (err error) {
	defer r.recover(&err)
	if r.records != nil {
		r.records.Release()
		r.records, r.record = nil, nil
	}
	return nil
}

// recover makes a panic of the decoders, which a damaged file can cause, an
// error: the file is at fault, and other files may still be read.
func (r *Reader) recover(err *error) {
	if p := recover(); p != nil {
		*err = r.unreadable(fmt.Errorf("%v", p))
	}
}

func (r *Reader) unreadable(err error) error {
	return &rows.FormatError{File: r.name, Problem: "is damaged or not a complete Parquet file",
		Advice: "Copy or write it again", Err: err}
}
