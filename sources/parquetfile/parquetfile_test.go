package parquetfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/decimal128"
	"github.com/apache/arrow/go/v17/arrow/float16"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"
	"go.uber.org/goleak"

	"github.com/leadetl/leadetl/internal/rows"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// write makes a Parquet file of a record, groupRows rows to a row group.
func write(t testing.TB, record arrow.Record, groupRows int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := pqarrow.NewFileWriter(record.Schema(), &b,
		parquet.NewWriterProperties(parquet.WithMaxRowGroupLength(groupRows), parquet.WithDataPageSize(4096),
			parquet.WithCompression(compress.Codecs.Snappy)),
		pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(0); at < record.NumRows(); at += groupRows {
		part := record.NewSlice(at, min(at+groupRows, record.NumRows()))
		if err := w.Write(part); err != nil {
			t.Fatal(err)
		}
		part.Release()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// read returns the rows of some columns, a line per row, and what the batches'
// lengths were.
func read(file []byte, pick []int, maxRows int) (lines []string, batches []int, err error) {
	r, err := Open("a.parquet", bytes.NewReader(file))
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	if err := r.Select(context.Background(), pick); err != nil {
		return nil, nil, err
	}
	order := make([]int, len(pick))
	for i := range order {
		order[i] = i
	}
	for err == nil {
		b := rows.NewBuilder(len(pick), maxRows)
		err = r.Fill(context.Background(), b, maxRows)
		batch := b.Batch("a.parquet", order)
		for i := range batch.Len() {
			line := fmt.Sprint(batch.Rows[i], ":")
			for _, c := range batch.Columns {
				if c.IsNull(i) {
					line += " null"
				} else {
					line += " " + c.Value(i)
				}
			}
			lines = append(lines, line)
		}
		for _, x := range batch.Rejects {
			lines = append(lines, fmt.Sprint(x.Row, ": ", x.Reason))
		}
		batches = append(batches, batch.Len())
		batch.Release()
	}
	if err == io.EOF {
		err = nil
	}
	return lines, batches, err
}

func TestText(t *testing.T) {
	mem := memory.DefaultAllocator
	day := time.Date(2024, 2, 29, 13, 4, 5, 678_000_000, time.UTC)
	micros := arrow.Timestamp(day.UnixMicro())
	tests := []struct {
		kind   arrow.DataType
		append func(array.Builder)
		want   string
	}{
		{arrow.BinaryTypes.String, func(b array.Builder) { b.(*array.StringBuilder).Append("ada, é") }, "ada, é"},
		{arrow.BinaryTypes.LargeString, func(b array.Builder) { b.(*array.LargeStringBuilder).Append("ada") }, "ada"},
		{arrow.BinaryTypes.Binary, func(b array.Builder) { b.(*array.BinaryBuilder).Append([]byte("ada")) }, "ada"},
		{&arrow.FixedSizeBinaryType{ByteWidth: 4}, func(b array.Builder) { b.(*array.FixedSizeBinaryBuilder).Append([]byte{0, 0xab, 1, 0xff}) }, "00ab01ff"},
		{arrow.FixedWidthTypes.Boolean, func(b array.Builder) { b.(*array.BooleanBuilder).Append(true) }, "true"},
		{arrow.PrimitiveTypes.Int8, func(b array.Builder) { b.(*array.Int8Builder).Append(-8) }, "-8"},
		{arrow.PrimitiveTypes.Int16, func(b array.Builder) { b.(*array.Int16Builder).Append(-16) }, "-16"},
		{arrow.PrimitiveTypes.Int32, func(b array.Builder) { b.(*array.Int32Builder).Append(-32) }, "-32"},
		{arrow.PrimitiveTypes.Int64, func(b array.Builder) { b.(*array.Int64Builder).Append(math.MinInt64) }, "-9223372036854775808"},
		{arrow.PrimitiveTypes.Uint8, func(b array.Builder) { b.(*array.Uint8Builder).Append(8) }, "8"},
		{arrow.PrimitiveTypes.Uint16, func(b array.Builder) { b.(*array.Uint16Builder).Append(16) }, "16"},
		{arrow.PrimitiveTypes.Uint32, func(b array.Builder) { b.(*array.Uint32Builder).Append(32) }, "32"},
		{arrow.PrimitiveTypes.Uint64, func(b array.Builder) { b.(*array.Uint64Builder).Append(math.MaxUint64) }, "18446744073709551615"},
		{arrow.FixedWidthTypes.Float16, func(b array.Builder) { b.(*array.Float16Builder).Append(float16.New(1.5)) }, "1.5"},
		{arrow.PrimitiveTypes.Float32, func(b array.Builder) { b.(*array.Float32Builder).Append(0.1) }, "0.1"},
		{arrow.PrimitiveTypes.Float64, func(b array.Builder) { b.(*array.Float64Builder).Append(16505551234) }, "16505551234"},
		{arrow.PrimitiveTypes.Float64, func(b array.Builder) { b.(*array.Float64Builder).Append(1e300) }, "1e+300"},
		{arrow.PrimitiveTypes.Date32, func(b array.Builder) { b.(*array.Date32Builder).Append(arrow.Date32FromTime(day)) }, "2024-02-29"},
		{arrow.FixedWidthTypes.Time32ms, func(b array.Builder) { b.(*array.Time32Builder).Append(1500) }, "00:00:01.5"},
		{arrow.FixedWidthTypes.Time64us, func(b array.Builder) { b.(*array.Time64Builder).Append(1) }, "00:00:00.000001"},
		{arrow.FixedWidthTypes.Timestamp_us, func(b array.Builder) { b.(*array.TimestampBuilder).Append(micros) }, "2024-02-29T13:04:05.678Z"},
		{&arrow.TimestampType{Unit: arrow.Microsecond}, func(b array.Builder) { b.(*array.TimestampBuilder).Append(micros) }, "2024-02-29T13:04:05.678"},
		{&arrow.Decimal128Type{Precision: 10, Scale: 2}, func(b array.Builder) { b.(*array.Decimal128Builder).Append(decimal128.FromI64(-12345)) }, "-123.45"},
		{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String},
			func(b array.Builder) { _ = b.(*array.BinaryDictionaryBuilder).AppendString("ada") }, "ada"},
		{arrow.ListOf(arrow.BinaryTypes.String), func(b array.Builder) {
			l := b.(*array.ListBuilder)
			l.Append(true)
			l.ValueBuilder().(*array.StringBuilder).AppendValues([]string{"a", "b"}, nil)
		}, `["a","b"]`},
		{arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, arrow.Field{Name: "y", Type: arrow.BinaryTypes.String, Nullable: true}),
			func(b array.Builder) {
				s := b.(*array.StructBuilder)
				s.Append(true)
				s.FieldBuilder(0).(*array.Int64Builder).Append(1)
				s.FieldBuilder(1).AppendNull()
			}, `{"x":1,"y":null}`},
	}
	for _, test := range tests {
		b := array.NewBuilder(mem, test.kind)
		b.AppendNull()
		test.append(b)
		values := b.NewArray()
		// A nested column before and a plain one behind: places must be right.
		other := array.NewStringBuilder(mem)
		other.AppendValues([]string{"o", "p"}, nil)
		plain := other.NewArray()
		record := array.NewRecord(arrow.NewSchema([]arrow.Field{
			{Name: "v", Type: test.kind, Nullable: true}, {Name: "o", Type: arrow.BinaryTypes.String},
		}, nil), []arrow.Array{values, plain}, 2)
		got, _, err := read(write(t, record, 10), []int{1, 0}, 10)
		if want := "1: o null|2: p " + test.want; err != nil || strings.Join(got, "|") != want {
			t.Errorf("%s: %q, want %q, %v", test.kind, got, want, err)
		}
	}
}

// texts makes a record of an id and a text of n rows.
func texts(n int, text func(i int) string) arrow.Record {
	ids, values := array.NewInt64Builder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator)
	for i := range n {
		ids.Append(int64(i))
		values.Append(text(i))
	}
	return array.NewRecord(arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "text", Type: arrow.BinaryTypes.String},
	}, nil), []arrow.Array{ids.NewArray(), values.NewArray()}, int64(n))
}

func TestBatchBoundaries(t *testing.T) {
	short := texts(2500, func(i int) string { return fmt.Sprint("x", i) })
	wide := texts(25, func(i int) string { return strings.Repeat("x", 1<<20) })
	tests := []struct {
		name    string
		record  arrow.Record
		groups  int64
		maxRows int
		want    string
	}{
		{"by rows", short, 10_000, 1000, "[1000 1000 500]"},
		{"over row groups", short, 300, 1000, "[1000 1000 500]"},
		{"by bytes", wide, 10, 1000, "[8 8 8 1]"},
	}
	for _, test := range tests {
		lines, batches, err := read(write(t, test.record, test.groups), []int{1}, test.maxRows)
		if got := fmt.Sprint(batches); err != nil || got != test.want || len(lines) != int(test.record.NumRows()) {
			t.Errorf("%s: %d rows in batches of %s, want %s, %v", test.name, len(lines), got, test.want, err)
		}
	}
}

// The memory that pages take depends on the pages, and not on the rows or on
// the row group.
func TestMemory(t *testing.T) {
	wide := func(i int) string { return fmt.Sprint(i, strings.Repeat("x", 64<<10)) } // packs well
	for _, c := range []struct {
		name   string
		record arrow.Record
		most   int
	}{
		{"no rows", texts(0, nil), 0},
		{"narrow rows", texts(10_000, func(i int) string { return fmt.Sprint(i) }), 1 << 20},
		{"wide rows", texts(1000, wide), 20 << 20},
		{"one wide row", texts(1, func(int) string { return strings.Repeat("x", 8<<20) }), 16 << 20},
	} {
		r, err := Open("a.parquet", bytes.NewReader(write(t, c.record, 100)))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Select(t.Context(), []int{0, 1}); err != nil {
			t.Fatal(err)
		}
		for err == nil {
			b := rows.NewBuilder(2, 1000)
			err = r.Fill(t.Context(), b, 1000)
			b.Discard()
		}
		if err != io.EOF || r.Row() != c.record.NumRows() || r.memory.taken > c.most {
			t.Errorf("%s: %d rows and %d bytes for pages, at most %d wanted; %v", c.name, r.Row(), r.memory.taken, c.most, err)
		}
		r.Close()
	}
}

func TestColumnsAndCounts(t *testing.T) {
	file := write(t, texts(3, func(i int) string { return fmt.Sprint("x", i) }), 2)
	for _, test := range []struct {
		pick []int
		want string
	}{
		{[]int{0}, "1: 0|2: 1|3: 2"},
		{[]int{1, 0}, "1: x0 0|2: x1 1|3: x2 2"},
		{nil, "1:|2:|3:"},
	} {
		if got, _, err := read(file, test.pick, 10); err != nil || strings.Join(got, "|") != test.want {
			t.Errorf("%v: %q, want %q, %v", test.pick, got, test.want, err)
		}
	}
	empty := write(t, texts(0, nil), 2)
	if got, _, err := read(empty, []int{0}, 10); err != nil || len(got) != 0 {
		t.Errorf("no rows: %q, %v", got, err)
	}
	bad := write(t, texts(3, func(i int) string { return [3]string{"a", "\xff", "c"}[i] }), 2)
	if got, _, err := read(bad, []int{1}, 10); err != nil || strings.Join(got, "|") != "1: a|3: c|2: invalid_utf8" {
		t.Errorf("invalid UTF-8: %q, %v", got, err)
	}
}

// Wherever a file is damaged, it ends in its rows or in an error, and never
// in a panic.
func TestDamaged(t *testing.T) {
	file := write(t, texts(300, func(i int) string { return fmt.Sprint("x", i%7) }), 100)
	check := func(what string, damaged []byte) (failed bool) {
		lines, _, err := read(damaged, []int{0, 1}, 50)
		var format *rows.FormatError
		if err != nil && !errors.As(err, &format) {
			t.Errorf("%s: %v is no FormatError", what, err)
		}
		if err == nil && len(lines) != 300 {
			t.Errorf("%s: %d rows without an error", what, len(lines))
		}
		return err != nil
	}
	for n := 0; n < len(file); n += 97 {
		if !check(fmt.Sprint("cut at ", n), file[:n]) {
			t.Errorf("cut at %d: no error", n)
		}
	}
	for i := 0; i < len(file); i += 13 {
		damaged := bytes.Clone(file)
		damaged[i] ^= 0x55
		check(fmt.Sprint("byte ", i), damaged)
	}
}
