package parquet

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/sinks/schema"
)

// Rows given by codes of tables that grow and are replaced have the bytes of the
// same rows given by value, numbers with their statistics. So have rows whose codes two
// columns share.
func TestAnyCodes(t *testing.T) {
	pool := new(PagePool) // columns of all types use its memory
	rapid.Check(t, func(t *rapid.T) {
		column := withStatistics(schema.New("n", arrow.PrimitiveTypes.Int64, true))
		if rapid.Bool().Draw(t, "text") {
			column = schema.New("n", arrow.BinaryTypes.String, true)
		}
		column.Repeats = true
		second := column
		second.Name = "m"
		spec := Table{Columns: []schema.Column{column, second}, Compression: Snappy}
		limit := pageLimit{bytes: levelRoom + rapid.IntRange(1, 200).Draw(t, "page bytes"), values: pageNulls}
		most := dictionaryLimit{rapid.IntRange(1, 400).Draw(t, "bytes"), rapid.IntRange(1, 30).Draw(t, "tried")}
		var plain, coded, shared bytes.Buffer
		var encoders [3]*Encoder
		for i, out := range []*bytes.Buffer{&plain, &coded, &shared} {
			e, err := NewEncoder(out, spec, pool)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range e.columns {
				c.(*repeatingColumn).plain.limit, c.(*repeatingColumn).most = limit, most
			}
			encoders[i] = e
		}
		// Two tables of one type: parts hand records of both to one file.
		tables := make([][]any, 2)
		kinds, outer := make([]*arrow.DictionaryType, 2), make([]*arrow.DictionaryType, 2)
		companies := make([][]int32, 2) // the code of the value of each code that is shared
		for range rapid.IntRange(1, 12).Draw(t, "records") {
			which := rapid.IntRange(0, 1).Draw(t, "table")
			if kinds[which] == nil || rapid.IntRange(0, 5).Draw(t, "replaced") == 0 {
				tables[which], kinds[which] = nil, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: column.Arrow}
				companies[which], outer[which] = nil, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: kinds[which]}
			}
			for range rapid.IntRange(0, 20).Draw(t, "new") {
				n := rapid.IntRange(-1, 25).Draw(t, "value")
				var value any
				switch {
				case n < 0:
				case column.Arrow.ID() == arrow.STRING:
					value = fmt.Sprintf("%0*d", n%7+1, n)
				default:
					value = int64(n - 9)
				}
				if !slices.Contains(tables[which], value) {
					tables[which] = append(tables[which], value)
				}
			}
			if len(tables[which]) == 0 {
				continue
			}
			code := rapid.Int32Range(0, int32(len(tables[which])-1))
			companies[which] = append(companies[which], rapid.SliceOfN(code, 1, 20).Draw(t, "companies")...)
			of := companies[which]
			rows := rapid.SliceOfN(rapid.Int32Range(0, int32(len(of)-1)), 1, 40).Draw(t, "codes")
			codes, values := make([]int32, len(rows)), make([]any, len(rows))
			for i, row := range rows {
				codes[i], values[i] = of[row], tables[which][of[row]]
			}
			byValue := twice(record(arrow.NewSchema(spec.Schema().Fields()[:1], nil), values).Column(0))
			table := record(arrow.NewSchema(spec.Schema().Fields()[:1], nil), tables[which]).Column(0)
			add(encoders[0], byValue)
			for i, coded := range []arrow.Record{
				twice(array.NewDictionaryArray(kinds[which], numbers(codes), table)),
				twice(array.NewDictionaryArray(outer[which], numbers(rows), array.NewDictionaryArray(kinds[which], numbers(of), table))),
			} {
				if rapid.IntRange(0, 5).Draw(t, "by value") == 0 {
					coded = byValue
				}
				add(encoders[i+1], coded)
			}
			if rapid.IntRange(0, 9).Draw(t, "apart") == 0 { // one column by shared codes, the other with codes of its own
				add(encoders[0], byValue)
				add(encoders[1], byValue)
				one := array.NewDictionaryArray(outer[which], numbers(rows), array.NewDictionaryArray(kinds[which], numbers(of), table))
				two := array.NewDictionaryArray(outer[which], numbers(slices.Clone(rows)), array.NewDictionaryArray(kinds[which], numbers(of), table))
				add(encoders[2], columnsOf(one, two))
			}
			for i, e := range encoders {
				if e.Held() != encoders[0].Held() {
					t.Fatalf("%d bytes held of rows by value, %d by codes (%d)", encoders[0].Held(), e.Held(), i)
				}
			}
			if rapid.IntRange(0, 4).Draw(t, "flush") == 0 {
				for _, e := range encoders {
					if err := e.Flush(); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		for _, e := range encoders {
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(plain.Bytes(), coded.Bytes()) {
			t.Fatal("the same rows gave other bytes by codes")
		}
		if !bytes.Equal(plain.Bytes(), shared.Bytes()) {
			t.Fatal("the same rows gave other bytes by shared codes")
		}
	})
}

func numbers(n []int32) arrow.Array {
	b := array.NewInt32Builder(memory.DefaultAllocator)
	b.AppendValues(n, nil)
	return b.NewArray()
}

// twice is a record of a column that is there twice.
func twice(a arrow.Array) arrow.Record { return columnsOf(a, a) }

func columnsOf(columns ...arrow.Array) arrow.Record {
	var fields []arrow.Field
	for i, c := range columns {
		fields = append(fields, arrow.Field{Name: []string{"n", "m"}[i], Type: c.DataType(), Nullable: true})
	}
	return array.NewRecord(arrow.NewSchema(fields, nil), columns, int64(columns[0].Len()))
}

// Lists without any type have no dictionary: a page of codes of no words is what
// some readers refuse.
func TestPairsWithoutTypes(t *testing.T) {
	spec := Table{Columns: []schema.Column{schema.New("pairs", pairType, true)}, Compression: Snappy}
	data := encode(t, spec, realPages, new(PagePool), []arrow.Record{record(spec.Schema(), []any{pairs{{"a", nil}, {nil, nil}}, nil, pairs{}})})
	if got := fmt.Sprint(dictionaries(t, data, 1)); got != "[false]" {
		t.Errorf("dictionaries %s, want none", got)
	}
}

// Codes of a table that is larger than the processor's cache give the bytes of their values.
func TestCodesOfALargeTable(t *testing.T) {
	column := schema.New("n", arrow.BinaryTypes.String, true)
	column.Repeats = true
	spec := Table{Columns: []schema.Column{column}, Compression: Snappy}
	table := []any{nil, ""}
	for i := range cachedCodes {
		table = append(table, fmt.Sprint("+1555", i))
	}
	codes, values := make([]int32, 3*len(table)), make([]any, 3*len(table))
	for i := range codes {
		codes[i] = int32(i * 7919 % len(table))
		values[i] = table[codes[i]]
	}
	byValue := record(spec.Schema(), values)
	kind := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	byCode := columnsOf(array.NewDictionaryArray(kind, numbers(codes), record(spec.Schema(), table).Column(0)))
	want := encode(t, spec, realPages, new(PagePool), []arrow.Record{byValue, byValue})
	got := encode(t, spec, realPages, new(PagePool), []arrow.Record{byCode, byCode})
	if fmt.Sprint(dictionaries(t, got, 0)) != "[true]" {
		t.Error("the column has no dictionary")
	}
	if !bytes.Equal(got, want) {
		t.Error("the same rows gave other bytes by codes")
	}
}
