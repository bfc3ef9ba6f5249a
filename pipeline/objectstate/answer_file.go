package objectstate

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// The columns of a file of answers. A body that is valid UTF-8 is text in body,
// any other body is in body_binary. An empty body is null in both.
var answerSchema = arrow.NewSchema([]arrow.Field{
	{Name: "key_hash", Type: &arrow.FixedSizeBinaryType{ByteWidth: 32}},
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

// bodyColumns is the number of columns that hold the body. They come last.
const bodyColumns = 2

// properties make the same rows give the same bytes. With a dictionary, Arrow
// would list the encodings of a chunk in random order.
var properties = parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithDictionaryDefault(false), parquet.WithStats(false),
	parquet.WithStatsFor("key_hash", true), parquet.WithRootRepetition(parquet.Repetitions.Required))

// recordRows and recordBytes bound the rows that the encoder receives at a
// time.
const (
	recordRows  = 1024
	recordBytes = 1 << 20
)

// fileWriter writes one file of answers to disk, and uploads it to S3.
type fileWriter struct {
	state    *State
	temp     *os.File
	buffered *bufio.Writer
	sum      hash.Hash
	size     int64
	rows     *array.RecordBuilder
	bytes    int // size of the rows
	group    int // size of the open row group
	encoder  *pqarrow.FileWriter
	about    answerFile
}

func (s *State) newFileWriter(generation int64) (w *fileWriter, err error) {
	w = &fileWriter{state: s, sum: sha256.New(), about: answerFile{Generation: generation}}
	if w.temp, err = os.CreateTemp(s.Scratch, "leadetl-answers-*"); err != nil {
		return nil, err
	}
	// The file has no name from here on, so a kill leaves nothing behind.
	if err := os.Remove(w.temp.Name()); err != nil {
		return nil, errors.Join(err, w.temp.Close())
	}
	w.buffered = bufio.NewWriterSize(io.MultiWriter(w.temp, w.sum), 1<<20)
	w.rows = array.NewRecordBuilder(memory.DefaultAllocator, answerSchema)
	if w.encoder, err = pqarrow.NewFileWriter(answerSchema, w, properties, pqarrow.DefaultWriterProps()); err != nil {
		return nil, errors.Join(err, w.abort())
	}
	return w, nil
}

// Write receives the output of the encoder.
func (w *fileWriter) Write(p []byte) (int, error) {
	w.size += int64(len(p))
	return w.buffered.Write(p)
}

func (w *fileWriter) abort() error { return w.temp.Close() }

func (w *fileWriter) add(i answers.Item) error {
	if w.about.Rows == 0 {
		w.about.First = i.Hash.String()
	}
	w.about.Last = i.Hash.String()
	w.about.Rows++
	text := func(column int, value string) {
		w.rows.Field(column).(*array.StringBuilder).Append(value)
		w.bytes += len(value) + 4
	}
	w.rows.Field(0).(*array.FixedSizeBinaryBuilder).Append(i.Hash[:])
	text(1, i.Key)
	text(2, string(i.Outcome))
	text(3, i.Reason)
	w.rows.Field(4).(*array.Int32Builder).Append(int32(i.Status))
	if credits := w.rows.Field(5).(*array.Int64Builder); i.Credits == nil {
		credits.AppendNull()
	} else {
		credits.Append(*i.Credits)
	}
	w.rows.Field(6).(*array.TimestampBuilder).Append(arrow.Timestamp(i.Received.UnixMilli()))
	text(7, i.Run)
	text(8, i.Resolution)
	text(9, i.Request)
	body, binary := w.rows.Field(10).(*array.StringBuilder), w.rows.Field(11).(*array.BinaryBuilder)
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
	w.bytes += len(i.Body) + 64
	if body.Len() == recordRows || w.bytes >= recordBytes {
		return w.flush()
	}
	return nil
}

// flush passes the rows to the encoder.
func (w *fileWriter) flush() error {
	rec := w.rows.NewRecord()
	defer rec.Release()
	if rec.NumRows() == 0 {
		return nil
	}
	if w.group >= w.state.groupBytes {
		w.encoder.NewBufferedRowGroup()
		w.group = 0
	}
	w.group += w.bytes
	w.bytes = 0
	return w.encoder.WriteBuffered(rec)
}

// finish uploads the file, so that a manifest can name it.
func (w *fileWriter) finish(ctx context.Context, of answers.Scope) (_ answerFile, err error) {
	defer func() { err = errors.Join(err, w.abort()) }()
	if err := errors.Join(w.flush(), w.encoder.Close(), w.buffered.Flush()); err != nil {
		return answerFile{}, err
	}
	c := objects.Content{ReaderAt: w.temp, Size: w.size, SHA256: [sha256.Size]byte(w.sum.Sum(nil)), Type: "application/vnd.apache.parquet"}
	w.about.Bytes, w.about.SHA256 = w.size, hex.EncodeToString(c.SHA256[:])
	w.about.Name = "f/" + w.about.SHA256[:32] + ".parquet"
	_, err = w.state.store.Put(ctx, w.state.folder(of).Below(w.about.Name), c)
	return w.about, err
}

// writeGeneration writes sorted answers as the files of one generation.
func (s *State) writeGeneration(ctx context.Context, of answers.Scope, number int64, items iter.Seq2[answers.Item, error]) (files []answerFile, err error) {
	var w *fileWriter
	defer func() {
		if w != nil {
			err = errors.Join(err, w.abort())
		}
	}()
	finish := func() error {
		f, err := w.finish(ctx, of)
		w, files = nil, append(files, f)
		return err
	}
	for i, err := range items {
		if err == nil && w == nil {
			w, err = s.newFileWriter(number)
		}
		if err == nil {
			err = w.add(i)
		}
		if err == nil && w.about.Rows == int64(s.rowsPerFile) {
			err = finish()
		}
		if err != nil {
			return nil, err
		}
	}
	if w != nil {
		if err := finish(); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// readFile reads a file of answers in hash order, one row group at a time.
func (s *State) readFile(ctx context.Context, of answers.Scope, f answerFile, bodies bool) iter.Seq2[answers.Item, error] {
	return func(yield func(answers.Item, error) bool) {
		at := s.folder(of).Below(f.Name)
		o, err := s.store.Open(ctx, objects.Info{Location: at})
		if err != nil {
			yield(answers.Item{}, s.missing(at, err))
			return
		}
		defer o.Close()
		if o.Size != f.Bytes || o.SHA256 != "" && o.SHA256 != f.SHA256 {
			yield(answers.Item{}, fmt.Errorf("%w: %s has another checksum", ErrDamaged, at))
			return
		}
		if err := readParquet(ctx, io.NewSectionReader(o, 0, o.Size), bodies, func(i answers.Item) bool {
			i.Scope = of
			return yield(i, nil)
		}); err != nil {
			yield(answers.Item{}, fmt.Errorf("read %s: %w", at, err))
		}
	}
}

func readParquet(ctx context.Context, from parquet.ReaderAtSeeker, bodies bool, yield func(answers.Item) bool) error {
	r, err := file.NewParquetReader(from)
	if err != nil {
		return err
	}
	defer r.Close()
	rows, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{BatchSize: recordRows}, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	if schema, err := rows.Schema(); err != nil || schema.NumFields() != answerSchema.NumFields() {
		return errors.Join(err, ErrDamaged)
	}
	n := answerSchema.NumFields()
	if !bodies {
		n -= bodyColumns
	}
	columns := make([]int, n)
	for i := range columns {
		columns[i] = i
	}
	for group := range r.NumRowGroups() { // one by one: a record never spans two row groups
		if more, err := readGroup(ctx, rows, columns, group, yield); !more || err != nil {
			return err
		}
	}
	return nil
}

func readGroup(ctx context.Context, rows *pqarrow.FileReader, columns []int, group int, yield func(answers.Item) bool) (more bool, err error) {
	records, err := rows.GetRecordReader(ctx, columns, []int{group})
	if err != nil {
		return false, err
	}
	defer records.Release()
	for records.Next() {
		rec := records.Record()
		for row := range int(rec.NumRows()) {
			if !yield(itemOf(rec, row)) {
				return false, nil
			}
		}
	}
	if err := records.Err(); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return true, nil
}

func itemOf(rec arrow.Record, row int) (i answers.Item) {
	text := func(column int) string { return rec.Column(column).(*array.String).Value(row) }
	copy(i.Hash[:], rec.Column(0).(*array.FixedSizeBinary).Value(row))
	i.Key, i.Outcome, i.Reason, i.Status = text(1), answers.Outcome(text(2)), text(3), int(rec.Column(4).(*array.Int32).Value(row))
	if credits := rec.Column(5).(*array.Int64); credits.IsValid(row) {
		value := credits.Value(row)
		i.Credits = &value
	}
	i.Received = time.UnixMilli(int64(rec.Column(6).(*array.Timestamp).Value(row))).UTC()
	i.Run, i.Resolution, i.Request = text(7), text(8), text(9)
	if rec.NumCols() <= 10 {
		return i
	}
	if body := rec.Column(10).(*array.String); body.IsValid(row) {
		i.Body = []byte(body.Value(row))
	} else if binary := rec.Column(11).(*array.Binary); binary.IsValid(row) {
		i.Body = binary.Value(row)
	}
	return i
}
