package typed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"

	"github.com/leadetl/leadetl/sinks/schema"
)

// columns are one of each type that datasets have.
func columns() []schema.Column {
	text := arrow.BinaryTypes.String
	return []schema.Column{
		schema.New("key", text, false), schema.New("city", text, true), schema.New("rows", arrow.PrimitiveTypes.Int64, false),
		schema.New("year", arrow.PrimitiveTypes.Int32, true), schema.New("day", arrow.FixedWidthTypes.Date32, true),
		schema.New("at", schema.Instant, true), schema.New("share", arrow.PrimitiveTypes.Float64, true),
		schema.New("valid", arrow.FixedWidthTypes.Boolean, true), schema.New("words", schema.Words, true),
		schema.New("always", schema.Words, false), schema.New("emails", schema.Emails, true),
	}
}

// fill appends a value, of a row or of a list.
func fill(b array.Builder, random *rand.Rand, nullable bool) {
	if nullable && random.IntN(3) == 0 {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(strings.Repeat("ü", random.IntN(3)) + fmt.Sprint(random.IntN(50)))
	case *array.Int64Builder:
		b.Append(random.Int64())
	case *array.Int32Builder:
		b.Append(-random.Int32N(100))
	case *array.Date32Builder:
		b.Append(arrow.Date32(random.Int32N(20_000)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(random.Int64N(1 << 50)))
	case *array.Float64Builder:
		b.Append(random.Float64())
	case *array.BooleanBuilder:
		b.Append(random.IntN(2) == 0)
	case *array.ListBuilder:
		b.Append(true)
		for range random.IntN(4) {
			fill(b.ValueBuilder(), random, true)
		}
	case *array.StructBuilder:
		b.Append(true)
		for m := range b.NumField() {
			fill(b.FieldBuilder(m), random, true)
		}
	}
}

// written is a file of two row groups and its rows.
func written(t testing.TB, seed uint64, rows int) ([]byte, []arrow.Record) {
	t.Helper()
	random, s := rand.New(rand.NewPCG(seed, 1)), schema.Arrow(columns())
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(s, &out, parquet.NewWriterProperties(
		parquet.WithDataPageSize(int64(200+random.IntN(2000))), parquet.WithBatchSize(64), parquet.WithCompression(compress.Codecs.Zstd)), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	var records []arrow.Record
	for range 2 {
		b := array.NewRecordBuilder(memory.DefaultAllocator, s)
		for i, c := range columns() {
			for range rows {
				fill(b.Field(i), random, c.Nullable)
			}
		}
		records = append(records, b.NewRecord())
		if err := w.Write(records[len(records)-1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), records
}

func TestColumns(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 2))
		data, records := written(t, seed, 1+random.IntN(400))
		f, err := Open("f", bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Expect(2*records[0].NumRows(), columns()); err != nil {
			t.Fatal(err)
		}
		for i, e := range f.Root {
			if !e.Column().Equal(columns()[i]) {
				t.Errorf("%+v, want %+v", e.Column(), columns()[i])
			}
		}
		for group, record := range records {
			c, err := f.Columns(group, columns())
			if err != nil {
				t.Fatal(err)
			}
			for at := int64(0); c.Left() > 0; {
				n := min(c.Left(), 1+random.Int64N(200))
				var keep []int
				for i := range int(n) {
					if random.IntN(2) == 0 {
						keep = append(keep, i)
					}
				}
				if random.IntN(2) == 0 {
					keep = nil
				}
				arrays, err := c.Next(int(n), keep)
				if err != nil {
					t.Fatal(err)
				}
				for i, a := range arrays {
					if keep == nil {
						want := array.NewSlice(record.Column(i), at, at+n)
						if !array.Equal(a, want) {
							t.Fatalf("seed %d, %s: %v, want %v", seed, columns()[i].Name, a, want)
						}
						continue
					}
					for k, row := range keep {
						if got, want := a.ValueStr(k), record.Column(i).ValueStr(int(at)+row); got != want {
							t.Fatalf("seed %d, %s, row %d: %v, want %v", seed, columns()[i].Name, int(at)+row, got, want)
						}
					}
				}
				Release(arrays)
				at += n
			}
		}
	}
}

// TestDamaged: a damaged file is read, or an error that names it; never a panic.
func TestDamaged(t *testing.T) {
	good, _ := written(t, 1, 300)
	refused := 0
	for at := 0; at < len(good); at += 97 {
		data := bytes.Clone(good)
		for i := at; i < min(at+1+at%5, len(data)); i++ {
			data[i] ^= byte(1 + at%255)
		}
		err := readAll(data, 600)
		placed, named := errors.AsType[*Error](err)
		if err != nil && (!named || placed.File != "f" || !strings.HasPrefix(err.Error(), "f") || !strings.HasSuffix(err.Error(), "; check the dataset with leadetl verify")) {
			t.Errorf("damage at %d: %v", at, err)
		}
		if err != nil {
			refused++
		}
	}
	if refused < len(good)/97/2 {
		t.Errorf("%d of %d damages were found", refused, len(good)/97)
	}
}

func readAll(data []byte, rows int64) error {
	f, err := Open("f", bytes.NewReader(data), int64(len(data)))
	if err == nil {
		err = f.Expect(rows, columns())
	}
	if err != nil {
		return err
	}
	for group := range f.Groups() {
		c, err := f.Columns(group, columns())
		if err != nil {
			return err
		}
		for c.Left() > 0 {
			arrays, err := c.Next(int(min(c.Left(), 100)), nil)
			if err != nil {
				return err
			}
			Release(arrays)
		}
	}
	return nil
}

// TestUnreadable: a store that fails is named, and the dataset is not blamed.
func TestUnreadable(t *testing.T) {
	good, _ := written(t, 1, 300)
	in := &failing{bytes.NewReader(good), nil}
	f, err := Open("s3://b/f", in, int64(len(good)))
	if err != nil {
		t.Fatal(err)
	}
	in.err = errors.New("out of reach")
	c, err := f.Chunk(0, 0)
	if err == nil {
		_, err = c.Read(new(Values), 10)
	}
	if !errors.Is(err, in.err) || err.Error() != "s3://b/f, row group 1, column key: out of reach" {
		t.Error(err)
	}
}

type failing struct {
	io.ReaderAt
	err error
}

func (f *failing) ReadAt(to []byte, at int64) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.ReaderAt.ReadAt(to, at)
}
