package verify

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	arrowparquet "github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"
	"github.com/xitongsys/parquet-go/layout"
	"github.com/xitongsys/parquet-go/parquet"

	"github.com/leadetl/leadetl/sinks/typed"
)

// TestComparison gives the two implementations different things to say.
func TestComparison(t *testing.T) {
	values := func(words ...string) (all []arrowparquet.ByteArray) {
		for _, w := range words {
			all = append(all, arrowparquet.ByteArray(w))
		}
		return all
	}
	flat := func() *leaf {
		return &leaf{typed.Values{MaxDefinition: 1, Count: 3, Definition: []int16{1, 0, 1}, Texts: values("a", "b")}}
	}
	list := func() *leaf { // ["a", "b"], []
		return &leaf{typed.Values{MaxDefinition: 3, MaxRepetition: 1, Count: 3, Definition: []int16{3, 3, 1}, Repetition: []int16{0, 1, 0}, Texts: values("a", "b")}}
	}
	numbers := func() *leaf { return &leaf{typed.Values{Count: 2, Numbers: []int64{1, 2}}} }
	for _, c := range []struct {
		name string
		leaf *leaf
		page layout.Table
		want string
		row  int64
	}{
		{"the same", flat(), layout.Table{Values: []any{"a", nil, "b"}, DefinitionLevels: []int32{1, 0, 1}}, "", 0},
		{"another value", flat(), layout.Table{Values: []any{"a", nil, "c"}, DefinitionLevels: []int32{1, 0, 1}}, "different values", 3},
		{"a longer value", flat(), layout.Table{Values: []any{"ab", nil, "b"}, DefinitionLevels: []int32{1, 0, 1}}, "different values", 1},
		{"a null less", flat(), layout.Table{Values: []any{"a", "x", "b"}, DefinitionLevels: []int32{1, 1, 1}}, "what is null", 2},
		{"a null more", flat(), layout.Table{Values: []any{"a", nil, nil}, DefinitionLevels: []int32{1, 0, 0}}, "what is null", 3},
		{"a value more", flat(), layout.Table{Values: []any{"a", nil, "b", "c"}, DefinitionLevels: []int32{1, 0, 1, 1}}, "more values", 0},
		{"the same list", list(), layout.Table{Values: []any{"a", "b", nil}, DefinitionLevels: []int32{3, 3, 1}, RepetitionLevels: []int32{0, 1, 0}}, "", 0},
		{"a list cut in two", list(), layout.Table{Values: []any{"a", "b", nil}, DefinitionLevels: []int32{3, 3, 1}, RepetitionLevels: []int32{0, 0, 0}}, "where a list ends", 1},
		{"a null for an empty list", list(), layout.Table{Values: []any{"a", "b", nil}, DefinitionLevels: []int32{3, 3, 0}, RepetitionLevels: []int32{0, 1, 0}}, "what is null", 2},
		{"the same numbers", numbers(), layout.Table{Values: []any{int64(1), int64(2)}, DefinitionLevels: []int32{0, 0}}, "", 0},
		{"another number", numbers(), layout.Table{Values: []any{int64(1), int64(3)}, DefinitionLevels: []int32{0, 0}}, "different values", 2},
		{"a number that Arrow does not find", &leaf{typed.Values{Count: 2, Numbers: []int64{1}}}, layout.Table{Values: []any{int64(1), int64(2)}, DefinitionLevels: []int32{0, 0}}, "different values", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			kind := parquet.Type_BYTE_ARRAY
			if c.leaf.Numbers != nil {
				kind = parquet.Type_INT64
			}
			// The second implementation writes the page, too.
			p := layout.NewDataPage()
			p.Schema, p.DataTable = &parquet.SchemaElement{Type: &kind}, &c.page
			c.page.MaxDefinitionLevel, c.page.MaxRepetitionLevel = int32(c.leaf.MaxDefinition), int32(c.leaf.MaxRepetition)
			p.DataPageCompress(parquet.CompressionCodec_UNCOMPRESSED)
			data := p.RawData[len(p.RawData)-int(p.Header.CompressedPageSize):]

			compared := &comparison{leaf: c.leaf, kind: kind}
			err := compared.page(p.Header, data)
			if found, row := problemOf(err); (c.want == "") != (err == nil) || !strings.Contains(found, c.want) || row != c.row {
				t.Errorf("%q in row %d, want %q in row %d", found, row, c.want, c.row)
			}
		})
	}
}

// problemOf returns the text and the row of a differError, or the text of another error.
func problemOf(err error) (problem string, row int64) {
	var differs *differError
	switch {
	case err == nil:
		return "", 0
	case errors.As(err, &differs):
		return differs.problem, differs.row
	}
	return err.Error(), 0
}

// FuzzComparison compares columns of random values by value and by bytes: as they are, and
// after one thing in what Arrow read is changed. Both find the same.
func FuzzComparison(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 1))
		opened := inMemoryFile(randomFile(t, random))
		one, err := typed.Open("", opened, opened.Size)
		if err != nil {
			t.Fatal(err)
		}
		two, foot, err := openSecond(opened)
		if err != nil {
			t.Fatal(err)
		}
		for i, g := range foot.groups {
			for j, chunk := range g.chunks {
				l, err := readers{one, two}.leaf(i, j, g.rows, nil)
				if err != nil {
					t.Fatalf("row group %d, %s: %v", i, chunk.path, err)
				}
				if err := compareDecoded(l, two, i, j, math.MaxInt); err != nil {
					t.Fatalf("row group %d, %s, by value: %v", i, chunk.path, err)
				}
				for range 4 {
					undo := change(l, random)
					if undo == nil {
						continue
					}
					got, row := problemOf(compare(l, two, i, j))
					want, wantRow := problemOf(compareDecoded(l, two, i, j, math.MaxInt))
					if got == "" || got != want || row != wantRow {
						t.Fatalf("row group %d, %s: %q in row %d; by value %q in row %d", i, chunk.path, got, row, want, wantRow)
					}
					undo()
				}
			}
		}
	})
}

// change changes a value or a level of a leaf. It returns nil if there is nothing to change.
func change(l *leaf, random *rand.Rand) (undo func()) {
	set := func(value *int16) func() {
		before := *value
		*value ^= 1
		return func() { *value = before }
	}
	switch kind := random.IntN(4); {
	case kind == 0 && len(l.Definition) > 0:
		return set(&l.Definition[random.IntN(len(l.Definition))])
	case kind == 1 && len(l.Repetition) > 0:
		return set(&l.Repetition[random.IntN(len(l.Repetition))])
	case kind == 2 && l.Count > 0:
		l.Count--
		return func() { l.Count++ }
	case len(l.Texts) > 0:
		text := &l.Texts[random.IntN(len(l.Texts))]
		before := *text
		*text = append(slices.Clone(before), 'x')
		if n := len(before); n > 0 && random.IntN(2) == 0 {
			*text = slices.Clone(before)
			(*text)[n-1] ^= 1
		}
		return func() { *text = before }
	case len(l.Numbers) > 0:
		number := &l.Numbers[random.IntN(len(l.Numbers))]
		before := *number
		*number ^= 1 << random.IntN(31)
		return func() { *number = before }
	case len(l.Floats) > 0:
		number := &l.Floats[random.IntN(len(l.Floats))]
		before := *number
		*number++
		return func() { *number = before }
	case len(l.Booleans) > 0:
		is := &l.Booleans[random.IntN(len(l.Booleans))]
		*is = !*is
		return func() { *is = !*is }
	}
	return nil
}

// randomFile writes a file with columns of every type that datasets have. Some have a
// dictionary, and of some of these the later pages have none.
func randomFile(t testing.TB, random *rand.Rand) []byte {
	t.Helper()
	members := arrow.StructOf(arrow.Field{Name: "first", Type: text, Nullable: true}, arrow.Field{Name: "second", Type: text, Nullable: true})
	s := arrow.NewSchema([]arrow.Field{
		{Name: "text", Type: text}, {Name: "maybe_text", Type: text, Nullable: true},
		{Name: "number", Type: number}, {Name: "maybe_number", Type: number, Nullable: true},
		{Name: "small", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
		{Name: "fraction", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, {Name: "is", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "words", Type: arrow.ListOf(text), Nullable: true}, {Name: "pairs", Type: arrow.ListOf(members), Nullable: true},
	}, nil)
	codec := []compress.Compression{compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Zstd}[random.IntN(3)]
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(s, &out, arrowparquet.NewWriterProperties(
		arrowparquet.WithDictionaryDefault(random.IntN(4) > 0), arrowparquet.WithDictionaryPageSizeLimit(int64(1+random.IntN(2000))),
		arrowparquet.WithDataPageSize(int64(1+random.IntN(3000))), arrowparquet.WithBatchSize(int64(1+random.IntN(300))), arrowparquet.WithCompression(codec),
	), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	for range 1 + random.IntN(3) {
		b := array.NewRecordBuilder(memory.DefaultAllocator, s)
		rows, distinct, nulls := random.IntN(1000)*random.IntN(2), 1+random.IntN(300), random.IntN(5)
		for i, f := range s.Fields() {
			for range rows {
				appendRandom(b.Field(i), random, distinct, f.Nullable, nulls)
			}
		}
		rec := b.NewRecord()
		if err := errors.Join(w.WriteBuffered(rec)); err != nil {
			t.Fatal(err)
		}
		w.NewBufferedRowGroup()
		rec.Release()
		b.Release()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// appendRandom appends a value of a number of distinct ones. Of nullable values, so many of
// four are null.
func appendRandom(b array.Builder, random *rand.Rand, distinct int, nullable bool, nulls int) {
	n := random.IntN(distinct)
	if nullable && random.IntN(4) < nulls {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(strings.Repeat(fmt.Sprint(n), n%4))
	case *array.Date32Builder:
		b.Append(arrow.Date32(n))
	case *array.ListBuilder:
		b.Append(true)
		for range random.IntN(4) {
			appendRandom(b.ValueBuilder(), random, distinct, true, nulls)
		}
	case *array.StructBuilder:
		b.Append(true)
		appendRandom(b.FieldBuilder(0), random, distinct, true, nulls)
		appendRandom(b.FieldBuilder(1), random, distinct, true, nulls)
	case *array.Int32Builder:
		b.Append(int32(n - distinct/2))
	case *array.Int64Builder:
		b.Append(int64(n-distinct/2) << random.IntN(40))
	case *array.Float64Builder:
		b.Append(float64(n) / 7)
	case *array.BooleanBuilder:
		b.Append(n%2 == 0)
	}
}
