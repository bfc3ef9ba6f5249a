// Package answertable writes stored answers as Parquet files, for programs that read tables.
//
// The columns are those of Schema, the rows are in the order in which they come. All identifiers, and the
// answers as received, are in the files: personal data.
package answertable

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"

	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// Schema has the columns of a file. A body that is valid UTF-8 is text in body, any other body is in body_binary.
// An empty body is null in both.
var Schema = arrow.NewSchema([]arrow.Field{
	{Name: "service", Type: arrow.BinaryTypes.String},
	{Name: "operation", Type: arrow.BinaryTypes.String},
	{Name: "key_hash", Type: arrow.BinaryTypes.String}, // hex, as leadetl answers list shows it
	{Name: "key", Type: arrow.BinaryTypes.String},
	{Name: "outcome", Type: arrow.BinaryTypes.String},
	{Name: "reason", Type: arrow.BinaryTypes.String},
	{Name: "status", Type: arrow.PrimitiveTypes.Int32},
	{Name: "credits", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "received_at", Type: &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}},
	{Name: "run", Type: arrow.BinaryTypes.String},
	{Name: "resolution_id", Type: arrow.BinaryTypes.String},
	{Name: "request_id", Type: arrow.BinaryTypes.String},
	{Name: "body", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "body_binary", Type: arrow.BinaryTypes.Binary, Nullable: true},
}, nil)

var properties = parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithRootRepetition(parquet.Repetitions.Required),
	parquet.WithDictionaryFor("key_hash", false), parquet.WithDictionaryFor("key", false), parquet.WithDictionaryFor("body", false), parquet.WithDictionaryFor("body_binary", false))

// recordRows and recordBytes bound the rows that the encoder receives at a time, and groupBytes those of a row
// group.
const (
	recordRows  = 1024
	recordBytes = 1 << 20
	groupBytes  = 32 << 20
)

// Write writes answers to files, of at most so many rows each, and returns how many there are. name gives each of
// them its name.
func Write(ctx context.Context, to store.Store, name func(number int) string, rows int64, items iter.Seq2[answers.Item, error]) (written int64, err error) {
	var w *writer
	number := 0
	end := func() error {
		err := w.end()
		w = nil
		return err
	}
	defer func() {
		if w != nil {
			err = errors.Join(err, w.to.Abort())
		}
	}()
	for i, err := range items {
		if err == nil && w == nil {
			w, err = newWriter(ctx, to, name(number))
			number++
		}
		if err == nil {
			err = w.write(&i)
			written++
		}
		if err == nil && w.rows == rows {
			err = end()
		}
		if err != nil {
			return written, err
		}
	}
	if w == nil && number == 0 { // a table without rows
		if w, err = newWriter(ctx, to, name(0)); err != nil {
			return 0, err
		}
	}
	if w != nil {
		return written, end()
	}
	return written, nil
}

// writer writes one file.
type writer struct {
	to      store.Unfinished
	builder *array.RecordBuilder
	encoder *pqarrow.FileWriter
	rows    int64
	bytes   int // of the rows in builder
	group   int // of those in the open row group
}

func newWriter(ctx context.Context, to store.Store, name string) (*writer, error) {
	file, err := to.Begin(ctx, name)
	if err != nil {
		return nil, err
	}
	w := &writer{to: file, builder: array.NewRecordBuilder(memory.DefaultAllocator, Schema)}
	if w.encoder, err = pqarrow.NewFileWriter(Schema, file, properties, pqarrow.DefaultWriterProps()); err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", to.Path(name), err), file.Abort())
	}
	return w, nil
}

func (w *writer) write(i *answers.Item) error {
	w.rows++
	at := 0
	field := func() array.Builder {
		at++
		return w.builder.Field(at - 1)
	}
	text := func(value string) {
		field().(*array.StringBuilder).Append(value)
		w.bytes += len(value) + 4
	}
	for _, value := range []string{i.Service, string(i.Operation), i.Hash.String(), i.Key, string(i.Outcome), i.Reason} {
		text(value)
	}
	field().(*array.Int32Builder).Append(int32(i.Status))
	if credits := field().(*array.Int64Builder); i.Credits == nil {
		credits.AppendNull()
	} else {
		credits.Append(*i.Credits)
	}
	field().(*array.TimestampBuilder).Append(arrow.Timestamp(i.Received.UnixMilli()))
	for _, value := range []string{i.Run, i.Resolution, i.Request} {
		text(value)
	}
	body, binary := field().(*array.StringBuilder), field().(*array.BinaryBuilder)
	switch {
	case len(i.Body) == 0:
		body.AppendNull()
		binary.AppendNull()
	case utf8.Valid(i.Body):
		body.Append(string(i.Body))
		binary.AppendNull()
	default:
		body.AppendNull()
		binary.Append(i.Body)
	}
	if w.bytes += len(i.Body) + 16; body.Len() == recordRows || w.bytes >= recordBytes {
		return w.flush()
	}
	return nil
}

// flush passes the rows to the encoder.
func (w *writer) flush() error {
	rec := w.builder.NewRecord()
	defer rec.Release()
	if rec.NumRows() == 0 {
		return nil
	}
	if w.group >= groupBytes {
		w.encoder.NewBufferedRowGroup()
		w.group = 0
	}
	w.group += w.bytes
	w.bytes = 0
	return w.encoder.WriteBuffered(rec)
}

func (w *writer) end() error {
	if err := errors.Join(w.flush(), w.encoder.Close(), w.to.Flush()); err != nil {
		return errors.Join(err, w.to.Abort())
	}
	_, err := w.to.Commit()
	return err
}
