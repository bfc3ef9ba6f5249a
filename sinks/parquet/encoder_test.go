package parquet

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	parquetschema "github.com/apache/arrow/go/v17/parquet/schema"
	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/internal/testkit/rapidtest"
	"github.com/leadetl/leadetl/sinks/schema"
)

var compressions = []Compression{Snappy, Zstd, Uncompressed}

var (
	pairType = arrow.ListOfField(arrow.Field{Name: "element", Nullable: true, Type: arrow.StructOf(
		arrow.Field{Name: "email", Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "type", Type: arrow.BinaryTypes.String, Nullable: true},
	)})
	wordListType = arrow.ListOfField(arrow.Field{Name: "element", Nullable: true, Type: arrow.BinaryTypes.String})
	instantType  = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
)

// everyKind has a column of every kind a dataset has.
var everyKind = Table{
	Columns: []schema.Column{
		schema.New("text", arrow.BinaryTypes.String, true),
		schema.New("required_text", arrow.BinaryTypes.String, false),
		random(schema.New("random", arrow.BinaryTypes.String, true)),
		repeating(schema.New("word", arrow.BinaryTypes.String, false)),
		repeating(schema.New("maybe_word", arrow.BinaryTypes.String, true)),
		withStatistics(schema.New("row", arrow.PrimitiveTypes.Int64, false)),
		withStatistics(schema.New("bound", arrow.PrimitiveTypes.Int64, true)),
		schema.New("year", arrow.PrimitiveTypes.Int32, true),
		schema.New("share", arrow.PrimitiveTypes.Float64, true),
		schema.New("valid", arrow.FixedWidthTypes.Boolean, true),
		schema.New("at", instantType, true),
		schema.New("pairs", pairType, true),
		schema.New("words", wordListType, true),
		schema.New("day", arrow.FixedWidthTypes.Date32, true),
		schema.New("required_day", arrow.FixedWidthTypes.Date32, false),
		repeating(schema.New("city", arrow.BinaryTypes.String, true)),
		repeating(schema.New("required_city", arrow.BinaryTypes.String, false)),
	},
	Metadata: map[string]string{"leadetl.operation": "test", "leadetl.rules_version": "1", "a": "b"},
}

// text is a table of one text column.
func text(nullable bool, c Compression, random bool) Table {
	column := schema.New("text", arrow.BinaryTypes.String, nullable)
	column.Random = random
	return Table{Columns: []schema.Column{column}, Compression: c}
}

func random(c schema.Column) schema.Column         { c.Random = true; return c }
func repeating(c schema.Column) schema.Column      { c.Repeats = true; return c }
func withStatistics(c schema.Column) schema.Column { c.Statistics = true; return c }

// textRecord is a record of one text column; nil is null.
func textRecord(of *arrow.Schema, values ...any) arrow.Record {
	return record(of, values)
}

// record makes a record from columns of plain values.
func record(of *arrow.Schema, columns ...[]any) arrow.Record {
	arrays := make([]arrow.Array, len(columns))
	for i, values := range columns {
		arrays[i] = arrayOf(of.Field(i).Type, values)
	}
	return array.NewRecord(of, arrays, int64(len(columns[0])))
}

func arrayOf(t arrow.DataType, values []any) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, t)
	defer b.Release()
	for _, v := range values {
		if v == nil {
			b.AppendNull()
			continue
		}
		switch b := b.(type) {
		case *array.StringBuilder:
			b.Append(v.(string))
		case *array.Int32Builder:
			b.Append(v.(int32))
		case *array.Int64Builder:
			b.Append(v.(int64))
		case *array.Float64Builder:
			b.Append(v.(float64))
		case *array.BooleanBuilder:
			b.Append(v.(bool))
		case *array.TimestampBuilder:
			b.Append(arrow.Timestamp(v.(int64)))
		case *array.Date32Builder:
			b.Append(arrow.Date32(v.(int32)))
		case *array.ListBuilder:
			switch v := v.(type) {
			case pairs:
				appendPairs(b, v)
			case words:
				appendWords(b, v)
			}
		}
	}
	return b.NewArray()
}

func appendPairs(b *array.ListBuilder, list pairs) {
	b.Append(true)
	member := b.ValueBuilder().(*array.StructBuilder)
	for _, p := range list {
		member.Append(true)
		for i, v := range []any{p.first, p.second} {
			if v == nil {
				member.FieldBuilder(i).AppendNull()
			} else {
				member.FieldBuilder(i).(*array.StringBuilder).Append(v.(string))
			}
		}
	}
}

func appendWords(b *array.ListBuilder, list words) {
	b.Append(true)
	for _, v := range list {
		if v == nil {
			b.ValueBuilder().AppendNull()
		} else {
			b.ValueBuilder().(*array.StringBuilder).Append(v.(string))
		}
	}
}

// fataler is a testing.T or a rapid.T.
type fataler interface{ Fatal(args ...any) }

// encode writes records, each group of them as one row group, with pages that
// end at limit.
func encode(t fataler, spec Table, limit pageLimit, pool *PagePool, groups ...[]arrow.Record) []byte {
	var out bytes.Buffer
	e, err := NewEncoder(&out, spec, pool)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range e.columns {
		switch c := c.(type) {
		case *textColumn:
			c.limit = limit
		case *repeatingColumn:
			c.plain.limit = limit
		}
	}
	for _, records := range groups {
		for _, rec := range records {
			add(e, rec)
		}
		if err := e.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var (
	realPages  = pageLimit{pageBytes, pageNulls}
	smallPages = pageLimit{bytes: levelRoom + 40, values: 10}
)

func TestTextOfEveryPattern(t *testing.T) {
	for _, c := range []struct {
		name   string
		values func(i int) any
	}{
		{"all values", func(i int) any { return fmt.Sprint("value ", i) }},
		{"all null", func(int) any { return nil }},
		{"all empty", func(int) any { return "" }},
		{"alternating", func(i int) any { return oneIf(i%2 == 0, i) }},
		{"alternating from null", func(i int) any { return oneIf(i%2 == 1, i) }},
		{"first null", func(i int) any { return oneIf(i > 0, i) }},
		{"first value", func(i int) any { return oneIf(i == 0, i) }},
		{"last null", func(i int) any { return oneIf(i < 63, i) }},
		{"last value", func(i int) any { return oneIf(i == 63, i) }},
		{"null at page borders", func(i int) any { return oneIf(i%10 != 0 && i%10 != 9, i) }},
		{"value at page borders", func(i int) any { return oneIf(i%10 == 0 || i%10 == 9, i) }},
		{"runs as long as pages", func(i int) any { return oneIf(i/10%2 == 0, i) }},
		{"runs across pages", func(i int) any { return oneIf(i/15%2 == 0, i) }},
		{"empty and null", func(i int) any { return []any{"", nil, "x"}[i%3] }},
		{"longer than a page", func(i int) any { return strings.Repeat("ä", i*7) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, rows := range []int{0, 1, 2, 7, 8, 9, 10, 11, 64} {
				for _, recordRows := range []int{1, 3, 64} {
					spec := text(true, Snappy, false)
					var records []arrow.Record
					for from := 0; from < rows; from += recordRows {
						var values []any
						for i := from; i < min(rows, from+recordRows); i++ {
							values = append(values, c.values(i))
						}
						records = append(records, textRecord(spec.Schema(), values...))
					}
					data := encode(t, spec, smallPages, new(PagePool), records)
					if err := readable(data, tableOf(spec.Schema(), records)); err != nil {
						t.Errorf("%d rows in records of %d: %v", rows, recordRows, err)
					}
				}
			}
		})
	}
}

func oneIf(valid bool, i int) any {
	if valid {
		return fmt.Sprint("v", i)
	}
	return nil
}

func TestTextOfEveryCodec(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 75_000) // longer than a page
	for _, compression := range compressions {
		for _, random := range []bool{false, true} {
			for _, nullable := range []bool{true, false} {
				spec := text(nullable, compression, random)
				records := []arrow.Record{
					textRecord(spec.Schema(), "a", "", long, "a"),
					textRecord(spec.Schema(), long[1:], "b"),
				}
				if nullable {
					records = append(records, textRecord(spec.Schema(), nil, "c", nil, long[2:], nil))
				}
				data := encode(t, spec, realPages, new(PagePool), records, records[:1])
				if err := readable(data, tableOf(spec.Schema(), append(records, records[0]))); err != nil {
					t.Errorf("%s random %v nullable %v: %v", compression, random, nullable, err)
				}
			}
		}
	}
}

func TestPagesOfRealSize(t *testing.T) {
	spec := text(true, Snappy, false)
	values := make([]any, pageNulls+100)
	for i := range values {
		if i >= pageNulls-2 {
			values[i] = strings.Repeat("x", 40_000)
		}
	}
	records := []arrow.Record{textRecord(spec.Schema(), values...)}
	requireReadable(t, encode(t, spec, realPages, new(PagePool), records), tableOf(spec.Schema(), records))
}

func TestSlicedRecords(t *testing.T) {
	rec := record(everyKind.Schema(), someRows(20)...)
	records := []arrow.Record{rec.NewSlice(3, 7), rec.NewSlice(0, 1), rec.NewSlice(11, 20), rec.NewSlice(5, 5)}
	data := encode(t, everyKind, smallPages, new(PagePool), records)
	requireReadable(t, data, tableOf(everyKind.Schema(), records))
}

// someRows are columns of everyKind.
func someRows(n int) [][]any {
	columns := make([][]any, everyKind.Schema().NumFields())
	for i := range n {
		for c, v := range []any{
			oneIf(i%3 > 0, i), fmt.Sprint("r", i%4), fmt.Sprintf("%032x", i), fmt.Sprint("w", i%2), oneIf(i%4 > 0, i%3),
			int64(i + 1), int64(i * 1000), int32(1900 + i%7), float64(i) / 8, i%2 == 0, int64(1_700_000_000_000_000 + i),
			[]any{nil, pairs{}, pairs{{"a", "md5"}}, pairs{{"b", nil}, {nil, "sha1"}, {"", ""}}}[i%4],
			[]any{words{"crm", "", nil}, nil, words{"sales software"}, words{}, words{nil}}[i%5], []any{nil, int32(20_000 + i)}[i%2], int32(-i),
			[]any{nil, "Springfield", "Riverton", ""}[i%4], fmt.Sprint("a city with a long name ", i%3),
		} {
			columns[c] = append(columns[c], v)
		}
	}
	return columns
}

// A part's source column has one dictionary a file; a part may run over many.
func TestDictionaryThatChanges(t *testing.T) {
	spec := Table{Columns: []schema.Column{
		repeating(schema.New("word", arrow.BinaryTypes.String, false)), repeating(schema.New("maybe", arrow.BinaryTypes.String, true)),
	}}
	of := func(word string, n int) arrow.Record {
		words, maybe := make([]any, n), make([]any, n)
		for i := range words {
			words[i] = word
			if i%2 == 1 {
				maybe[i] = word
			}
		}
		return record(spec.Schema(), words, maybe)
	}
	for name, group := range map[string][]arrow.Record{
		"one":              {of("a.csv", 5), of("a.csv", 3)},
		"another":          {of("a.csv", 5), of("b.csv", 3)},
		"there and back":   {of("a.csv", 5), of("b.csv", 3), of("a.csv", 2)},
		"a file a record":  {of("a.csv", 1), of("b.csv", 1), of("c.csv", 1), of("d.csv", 1)},
		"many rows":        {of("a.csv", 3000), of("b.csv", 3000)},
		"nothing but null": {record(spec.Schema(), []any{"a.csv"}, []any{nil}), record(spec.Schema(), []any{"b.csv"}, []any{nil})},
	} {
		data := encode(t, spec, realPages, new(PagePool), group, group)
		if err := readable(data, tableOf(spec.Schema(), append(slices.Clone(group), group...))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A dictionary that grows too large for its page ends, and plain pages follow.
func TestDictionaryThatOverflows(t *testing.T) {
	spec := text(true, Snappy, false)
	values := make([]any, 3000)
	for i := range values {
		values[i] = fmt.Sprintf("%0600d", i)
	}
	values[7], values[2999] = nil, nil
	records := []arrow.Record{textRecord(spec.Schema(), values[:1000]...), textRecord(spec.Schema(), values[1000:]...)}
	requireReadable(t, encode(t, spec, realPages, new(PagePool), records), tableOf(spec.Schema(), records))
}

// A footer lists a chunk's pages by encoding; a chunk that left its dictionary
// has two.
func TestSameRowsSameBytes(t *testing.T) {
	rec := record(everyKind.Schema(), someRows(50)...)
	other := record(everyKind.Schema(), someRows(20)...)
	pool := new(PagePool)
	first := encode(t, everyKind, smallPages, pool, []arrow.Record{rec, other}, []arrow.Record{other, rec})
	for range 20 {
		if !bytes.Equal(first, encode(t, everyKind, smallPages, pool, []arrow.Record{rec, other}, []arrow.Record{other, rec})) {
			t.Fatal("the same rows gave other bytes")
		}
	}
}

// Arrow hands values on in batches of its own, of about a thousand.
func TestManyRows(t *testing.T) {
	rec := record(everyKind.Schema(), someRows(3000)...)
	data := encode(t, everyKind, realPages, new(PagePool), []arrow.Record{rec, rec.NewSlice(0, 1023)}, []arrow.Record{rec})
	requireReadable(t, data, tableOf(everyKind.Schema(), []arrow.Record{rec, rec.NewSlice(0, 1023), rec}))
}

func TestNoRows(t *testing.T) {
	data := encode(t, everyKind, realPages, new(PagePool))
	requireReadable(t, data, tableOf(everyKind.Schema(), nil))
}

// Any table, cut into any records, row groups and pages, comes back from both
// readers, and writing it again through used buffers gives the same bytes.
func TestAnyTable(t *testing.T) {
	pool := new(PagePool)
	rapidtest.Checks(t, 40)
	rapid.Check(t, func(t *rapid.T) {
		spec := everyKind
		spec.Compression = rapid.SampledFrom(compressions).Draw(t, "compression")
		spec.Columns = slices.Clone(spec.Columns)
		spec.Columns[slices.IndexFunc(spec.Columns, func(c schema.Column) bool { return c.Name == "pairs" })].Random = rapid.Bool().Draw(t, "random pairs")
		limit := pageLimit{bytes: levelRoom + rapid.IntRange(1, 200).Draw(t, "page bytes"), values: rapid.IntRange(1, 40).Draw(t, "page values")}
		var groups [][]arrow.Record
		var all []arrow.Record
		for range rapid.IntRange(0, 3).Draw(t, "groups") {
			var group []arrow.Record
			for range rapid.IntRange(0, 3).Draw(t, "records") {
				rec := anyRecord(t)
				group, all = append(group, rec), append(all, rec)
			}
			groups = append(groups, group)
		}
		data := encode(t, spec, limit, pool, groups...)
		if err := readable(data, tableOf(spec.Schema(), all)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, encode(t, spec, limit, pool, groups...)) {
			t.Fatal("the same rows gave other bytes")
		}
	})
}

func anyRecord(t *rapid.T) arrow.Record {
	rows := rapid.IntRange(0, 18).Draw(t, "rows")
	dictionary := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c]{1,2}`), 1, 3, rapid.ID).Draw(t, "dictionary")
	columns := make([][]any, everyKind.Schema().NumFields())
	anyText := rapid.OneOf(rapid.Just(""), rapid.String(), rapid.StringMatching(`[a-z]{0,80}`)).AsAny()
	anyPairs := rapid.Map(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pair {
		return pair{maybe(anyText).Draw(t, "first"), maybe(anyText).Draw(t, "second")}
	}), 0, 4), func(list []pair) any { return append(pairs{}, list...) })
	anyWords := rapid.Map(rapid.SliceOfN(maybe(anyText), 0, 4), func(list []any) any { return append(words{}, list...) })
	for i, f := range everyKind.Schema().Fields() {
		var one *rapid.Generator[any]
		switch f.Type.ID() {
		case arrow.STRING:
			one = anyText
			if strings.HasSuffix(f.Name, "word") {
				one = rapid.SampledFrom(dictionary).AsAny()
			}
		case arrow.INT32, arrow.DATE32:
			one = rapid.Int32().AsAny()
		case arrow.INT64, arrow.TIMESTAMP:
			one = rapid.Int64().AsAny()
		case arrow.FLOAT64:
			one = rapid.Float64().AsAny()
		case arrow.BOOL:
			one = rapid.Bool().AsAny()
		case arrow.LIST:
			one = anyWords
			if f.Name == "pairs" {
				one = anyPairs
			}
		}
		if f.Nullable {
			one = maybe(one)
		}
		columns[i] = rapid.SliceOfN(one, rows, rows).Draw(t, f.Name)
	}
	return record(everyKind.Schema(), columns...)
}

func maybe(g *rapid.Generator[any]) *rapid.Generator[any] {
	return rapid.OneOf(g, rapid.Just[any](nil))
}

func TestFileIsWhatWarehousesLoad(t *testing.T) {
	for _, compression := range compressions {
		spec := everyKind
		spec.Compression = compression
		rec := record(spec.Schema(), someRows(50)...)
		data := encode(t, spec, smallPages, new(PagePool), []arrow.Record{rec}, []arrow.Record{rec})
		f, err := file.NewParquetReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if f.NumRowGroups() != 2 || f.NumRows() != 100 {
			t.Errorf("%d row groups, %d rows", f.NumRowGroups(), f.NumRows())
		}
		if got := f.MetaData().Version(); got != parquet.V1_0 {
			t.Errorf("format version %v", got)
		}
		if got := f.MetaData().Schema.Root().RepetitionType(); got != parquet.Repetitions.Required {
			t.Errorf("the root of the schema is %v", got)
		}
		keyValues := map[string]string{}
		for i, key := range f.MetaData().KeyValueMetadata().Keys() {
			keyValues[key] = f.MetaData().KeyValueMetadata().Values()[i]
		}
		if !maps.Equal(keyValues, spec.Metadata) {
			t.Errorf("metadata %v, want %v", keyValues, spec.Metadata)
		}
		for g := range f.NumRowGroups() {
			group := f.RowGroup(g)
			for i := range group.NumColumns() {
				chunk, err := group.MetaData().ColumnChunk(i)
				if err != nil {
					t.Fatal(err)
				}
				name := chunk.PathInSchema().String()
				var column schema.Column // zero for the leaves of lists
				if i := slices.IndexFunc(spec.Columns, func(c schema.Column) bool { return c.Name == name }); i >= 0 {
					column = spec.Columns[i]
				}
				if set, err := chunk.StatsSet(); err != nil || set != column.Statistics {
					t.Errorf("%s: statistics %v, %v; want %v", name, set, err, column.Statistics)
				}
				want := compression.codec()
				if column.Random && compression == Snappy {
					want = Uncompressed.codec()
				}
				if chunk.Compression() != want {
					t.Errorf("%s: %v, want %v", name, chunk.Compression(), want)
				}
				for _, e := range chunk.Encodings() {
					if e != parquet.Encodings.Plain && e != parquet.Encodings.RLE && e != parquet.Encodings.PlainDict && e != parquet.Encodings.RLEDict {
						t.Errorf("%s: encoding %v", name, e)
					}
				}
				pages, err := group.GetColumnPageReader(i)
				if err != nil {
					t.Fatal(err)
				}
				for pages.Next() {
					switch p := pages.Page().(type) {
					case *file.DictionaryPage:
						if !isWord(name) && name != "pairs.list.element.type" {
							t.Errorf("%s: a dictionary", name)
						}
					case *file.DataPageV1:
						want := parquet.Encodings.Plain
						if isWord(name) || name == "pairs.list.element.type" {
							want = parquet.Encodings.PlainDict
						}
						if parquet.Encoding(p.Encoding()) != want {
							t.Errorf("%s: page encoding %v, want %v", name, p.Encoding(), want)
						}
					default:
						t.Errorf("%s: page %T", name, p)
					}
				}
				if err := pages.Err(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		f.Close()
	}
}

// The types as a reader that knows nothing of Arrow sees them: three-level
// lists, strings, days and instants by their logical types, with the numbers
// that a new Iceberg table of iceberg-go gives to such columns.
func TestTypesInTheFile(t *testing.T) {
	data := encode(t, everyKind, realPages, new(PagePool))
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var text strings.Builder
	parquetschema.PrintSchema(f.MetaData().Schema.Root(), &text, 1)
	got := text.String()
	for _, want := range []string{
		"required group field_id=-1 schema {",
		"optional byte_array field_id=1 text (String);",
		"required byte_array field_id=4 word (String);",
		"optional int32 field_id=8 year (Int(bitWidth=32, isSigned=true));",
		"required int64 field_id=6 row (Int(bitWidth=64, isSigned=true));",
		"optional double field_id=9 share;",
		"optional boolean field_id=10 valid;",
		"optional int64 field_id=11 at (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds,",
		"optional int32 field_id=18 day (Date);",
		"required int32 field_id=19 required_day (Date);",
		"optional group field_id=12 pairs (List) { repeated group field_id=-1 list { optional group field_id=13 element " +
			"{ optional byte_array field_id=14 email (String); optional byte_array field_id=15 type (String); } } }",
		"optional group field_id=16 words (List) { repeated group field_id=-1 list { optional byte_array field_id=17 element (String); } }",
	} {
		if !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

// isWord reports whether a column of everyKind has a dictionary: its arrays
// have, or its values repeat.
func isWord(name string) bool {
	return name == "word" || name == "maybe_word" || name == "city" || name == "required_city"
}

// add adds a record without ending a row group.
func add(e *Encoder, rec arrow.Record) { _ = e.Add(rec, func() error { return nil }) }
