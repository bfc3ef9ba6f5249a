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
// same rows given by value, numbers with their statistics.
func TestAnyCodes(t *testing.T) {
	fewerChecks(200)
	pool := new(PagePool) // columns of all types use its memory
	rapid.Check(t, func(t *rapid.T) {
		column := withStatistics(schema.New("n", arrow.PrimitiveTypes.Int64, true))
		if rapid.Bool().Draw(t, "text") {
			column = schema.New("n", arrow.BinaryTypes.String, true)
		}
		column.Repeats = true
		spec := Table{Columns: []schema.Column{column}, Compression: Snappy}
		limit := pageLimit{bytes: levelRoom + rapid.IntRange(1, 200).Draw(t, "page bytes"), values: pageNulls}
		most := dictionaryLimit{rapid.IntRange(1, 400).Draw(t, "bytes"), rapid.IntRange(1, 30).Draw(t, "tried")}
		var plain, coded bytes.Buffer
		var encoders [2]*Encoder
		for i, out := range []*bytes.Buffer{&plain, &coded} {
			e, err := NewEncoder(out, spec, pool)
			if err != nil {
				t.Fatal(err)
			}
			c := e.columns[0].(*repeatingColumn)
			c.plain.limit, c.most, encoders[i] = limit, most, e
		}
		// Two tables of one type: parts hand records of both to one file.
		tables := make([][]any, 2)
		kinds := make([]*arrow.DictionaryType, 2)
		for range rapid.IntRange(1, 12).Draw(t, "records") {
			which := rapid.IntRange(0, 1).Draw(t, "table")
			if kinds[which] == nil || rapid.IntRange(0, 5).Draw(t, "replaced") == 0 {
				tables[which], kinds[which] = nil, &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: column.Arrow}
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
			codes := rapid.SliceOfN(rapid.Int32Range(0, int32(len(tables[which])-1)), 1, 40).Draw(t, "codes")
			rows := make([]any, len(codes))
			for i, code := range codes {
				rows[i] = tables[which][code]
			}
			encoders[0].Add(record(spec.Schema(), rows))
			if rapid.IntRange(0, 5).Draw(t, "by value") == 0 {
				encoders[1].Add(record(spec.Schema(), rows))
				continue
			}
			encoders[1].Add(codedRecord(kinds[which], codes, record(spec.Schema(), tables[which]).Column(0)))
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
	})
}

func codedRecord(kind *arrow.DictionaryType, codes []int32, values arrow.Array) arrow.Record {
	b := array.NewInt32Builder(memory.DefaultAllocator)
	b.AppendValues(codes, nil)
	fields := []arrow.Field{{Name: "n", Type: kind, Nullable: true}}
	return array.NewRecord(arrow.NewSchema(fields, nil), []arrow.Array{array.NewDictionaryArray(kind, b.NewArray(), values)}, int64(len(codes)))
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
