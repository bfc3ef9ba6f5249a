package objectstate

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"

	"github.com/leadetl/leadetl/internal/atomicfile"
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
	if w.temp, err = atomicfile.Nameless(s.Scratch); err != nil {
		return nil, err
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

func (w *fileWriter) write(i answers.Item) error {
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
	w.about.Name = fileName(w.about.SHA256)
	_, err = w.state.store.Put(ctx, w.state.folder(of).Below(w.about.Name), c)
	return w.about, err
}

// fileName is the name of a file of answers with a checksum.
func fileName(sha256 string) string { return "f/" + sha256[:32] + ".parquet" }

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
			err = w.write(i)
		}
		if err == nil && w.about.Rows == int64(s.RowsPerFile) {
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
func (s *State) readFile(ctx context.Context, of answers.Scope, f answerFile, bodies bool) items {
	return func(yield func(answers.Item, error) bool) {
		file, err := s.openFile(ctx, of, f)
		if err != nil {
			yield(answers.Item{}, err)
			return
		}
		defer file.close()
		more := true
		for group := 0; more && group < file.groups(); group++ {
			err := file.readGroup(ctx, group, allColumns(bodies), func(i answers.Item) bool {
				i.Scope = of
				more = yield(i, nil)
				return more
			})
			if err != nil {
				yield(answers.Item{}, err)
				return
			}
		}
	}
}

// openFile is a file of answers on S3 that is being read.
type openFile struct {
	at      objects.Location
	object  *objects.Object
	parquet *file.Reader
	rows    *pqarrow.FileReader
}

func (s *State) openFile(ctx context.Context, of answers.Scope, about answerFile) (_ *openFile, err error) {
	f := &openFile{at: s.folder(of).Below(about.Name)}
	err = s.awaitOf(ctx, of, f.at, func() error {
		f.object, err = s.store.Open(ctx, objects.Info{Location: f.at})
		return err
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	if o := f.object; o.Size != about.Bytes || o.SHA256 != "" && o.SHA256 != about.SHA256 {
		return nil, fmt.Errorf("%w: %s has another checksum", ErrDamaged, f.at)
	}
	if f.parquet, err = file.NewParquetReader(io.NewSectionReader(f.object, 0, f.object.Size)); err != nil {
		return nil, fmt.Errorf("read %s: %w", f.at, err)
	}
	if f.rows, err = pqarrow.NewFileReader(f.parquet, pqarrow.ArrowReadProperties{BatchSize: recordRows}, memory.DefaultAllocator); err != nil {
		return nil, fmt.Errorf("read %s: %w", f.at, err)
	}
	if schema, err := f.rows.Schema(); err != nil || schema.NumFields() != answerSchema.NumFields() {
		return nil, fmt.Errorf("read %s: %w", f.at, errors.Join(err, ErrDamaged))
	}
	return f, nil
}

// close ends the reading. Errors do not matter then.
func (f *openFile) close() {
	if f.parquet != nil {
		_ = f.parquet.Close()
	}
	_ = f.object.Close()
}

func (f *openFile) groups() int { return f.parquet.NumRowGroups() }

// allColumns returns the numbers of the columns, with or without bodies.
func allColumns(bodies bool) []int {
	n := answerSchema.NumFields()
	if !bodies {
		n -= bodyColumns
	}
	columns := make([]int, n)
	for i := range columns {
		columns[i] = i
	}
	return columns
}

// readGroup reads some columns of a row group, until yield returns false.
func (f *openFile) readGroup(ctx context.Context, group int, columns []int, yield func(answers.Item) bool) error {
	at := positionsOf(columns)
	return f.readRecords(ctx, group, columns, func(rec arrow.Record) bool {
		for row := range int(rec.NumRows()) {
			if !yield(itemOf(rec, row, at)) {
				return false
			}
		}
		return true
	})
}

// readRecords is readGroup for many rows at a time. yield retains what it keeps.
func (f *openFile) readRecords(ctx context.Context, group int, columns []int, yield func(arrow.Record) bool) error {
	records, err := f.rows.GetRecordReader(ctx, columns, []int{group})
	if err != nil {
		return fmt.Errorf("read %s: %w", f.at, err)
	}
	defer records.Release()
	for records.Next() {
		if !yield(records.Record()) {
			return nil
		}
	}
	if err := records.Err(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", f.at, err)
	}
	return nil
}

// positions are where the columns of a file are in a record; -1 for those that
// were not read.
type positions [12]int

func positionsOf(columns []int) (at positions) {
	for i := range at {
		at[i] = slices.Index(columns, i)
	}
	return at
}

// itemOf returns a row. Columns that were skipped stay empty.
func itemOf(rec arrow.Record, row int, at positions) (i answers.Item) {
	column := func(number int) arrow.Array {
		if at[number] < 0 {
			return nil
		}
		return rec.Column(at[number])
	}
	text := func(number int) string {
		c, read := column(number).(*array.String)
		if !read || c.IsNull(row) {
			return ""
		}
		return c.Value(row)
	}
	if c, read := column(0).(*array.FixedSizeBinary); read {
		copy(i.Hash[:], c.Value(row))
	}
	i.Key, i.Outcome, i.Reason = text(1), answers.Outcome(text(2)), text(3)
	if c, read := column(4).(*array.Int32); read {
		i.Status = int(c.Value(row))
	}
	if c, read := column(5).(*array.Int64); read && c.IsValid(row) {
		i.Credits = new(c.Value(row))
	}
	if c, read := column(6).(*array.Timestamp); read {
		i.Received = time.UnixMilli(int64(c.Value(row))).UTC()
	}
	i.Run, i.Resolution, i.Request = text(7), text(8), text(9)
	if body := text(10); body != "" {
		i.Body = []byte(body)
	} else if c, read := column(11).(*array.Binary); read && c.IsValid(row) {
		i.Body = bytes.Clone(c.Value(row))
	}
	return i
}
