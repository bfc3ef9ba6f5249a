package parquet

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/parquet/file"
	"pgregory.net/rapid"
)

// repeatingText is a table of one text column that may have a dictionary.
func repeatingText(nullable bool, c Compression) Table {
	t := text(nullable, c, false)
	t.Columns[0].Repeats = true
	return t
}

// encodeRepeating writes values, each slice of them as one row group in records
// of recordRows.
func encodeRepeating(t fataler, spec Table, limit pageLimit, most dictionaryLimit, pool *PagePool, recordRows int, groups ...[]any) []byte {
	var out bytes.Buffer
	e, err := NewEncoder(&out, spec, pool)
	if err != nil {
		t.Fatal(err)
	}
	switch c := e.columns[0].(type) {
	case *textColumn:
		c.limit = limit
	case *repeatingColumn:
		c.plain.limit, c.most = limit, most
	}
	for _, values := range groups {
		for from := 0; from < len(values); from += recordRows {
			add(e, textRecord(spec.Schema(), values[from:min(from+recordRows, len(values))]...))
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

// dictionaries says which row groups of a file have one for a leaf.
func dictionaries(t fataler, data []byte, leaf int) (has []bool) {
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for g := range f.NumRowGroups() {
		chunk, err := f.RowGroup(g).MetaData().ColumnChunk(leaf)
		if err != nil {
			t.Fatal(err)
		}
		has = append(has, chunk.HasDictionaryPage())
	}
	return has
}

var realLimit = dictionaryLimit{dictionaryBytes, triedValues}

// valuesOfRows are n values, each by its row.
func valuesOfRows(n int, value func(i int) any) []any {
	values := make([]any, n)
	for i := range values {
		values[i] = value(i)
	}
	return values
}

func TestChoiceOfDictionary(t *testing.T) {
	city := func(i int) any { return fmt.Sprint("city of ", i%50) }
	unique := func(i int) any { return fmt.Sprint("city of ", i) }
	for _, c := range []struct {
		name   string
		most   dictionaryLimit
		groups [][]any
		want   []bool
	}{
		{"all null", realLimit, [][]any{valuesOfRows(100, func(int) any { return nil })}, []bool{false}},
		{"one value", realLimit, [][]any{valuesOfRows(100, func(int) any { return "x" })}, []bool{true}},
		{"one row", realLimit, [][]any{{"x"}}, []bool{false}},
		{"all empty", realLimit, [][]any{valuesOfRows(100, func(int) any { return "" })}, []bool{true}},
		{"one value and nulls", realLimit, [][]any{valuesOfRows(100, func(i int) any { return []any{nil, "x"}[i%2] })}, []bool{true}},
		{"few values", realLimit, [][]any{valuesOfRows(1000, city)}, []bool{true}},
		{"runs", realLimit, [][]any{valuesOfRows(1000, func(i int) any { return city(i / 30) })}, []bool{true}},
		{"unique", realLimit, [][]any{valuesOfRows(1000, unique)}, []bool{false}},
		{"unique and many", realLimit, [][]any{valuesOfRows(triedValues+1000, unique)}, []bool{false}},
		{"few rows", realLimit, [][]any{{"four", "four", "five", "four", "nine"}}, []bool{true}},
		{"each group by itself", realLimit, [][]any{valuesOfRows(500, city), valuesOfRows(500, unique), valuesOfRows(500, city)}, []bool{true, false, true}},
		{"fallback in the middle", dictionaryLimit{dictionaryBytes, 40}, [][]any{append(valuesOfRows(60, unique), valuesOfRows(5000, city)...), valuesOfRows(500, func(i int) any { return city(i % 40) })}, []bool{false, true}},
		{"values at the bound", dictionaryLimit{dictionaryBytes, 50}, [][]any{valuesOfRows(200, city)}, []bool{true}},
		{"values over the bound", dictionaryLimit{dictionaryBytes, 49}, [][]any{valuesOfRows(200, city)}, []bool{false}},
		{"over the bound, but twice", dictionaryLimit{dictionaryBytes, 49}, [][]any{append(valuesOfRows(100, func(i int) any { return city(i % 49) }), valuesOfRows(300, city)...)}, []bool{true}},
		{"bytes at the bound", dictionaryLimit{3 * (lengthBytes + 10), triedValues}, [][]any{valuesOfRows(90, func(i int) any { return fmt.Sprintf("%010d", i%3) })}, []bool{true}},
		{"bytes over the bound", dictionaryLimit{3*(lengthBytes+10) - 1, triedValues}, [][]any{valuesOfRows(90, func(i int) any { return fmt.Sprintf("%010d", i%3) })}, []bool{false}},
		{"longer than a page", realLimit, [][]any{valuesOfRows(90, func(i int) any { return strings.Repeat("ä", 300+i%4) })}, []bool{true}},
	} {
		for _, recordRows := range []int{7, 1 << 20} {
			spec := repeatingText(true, Snappy)
			pages := smallPages
			if len(c.groups[0]) > triedValues {
				pages = realPages // so many small ones take gigabytes
			}
			data := encodeRepeating(t, spec, pages, c.most, new(PagePool), recordRows, c.groups...)
			if got := dictionaries(t, data, 0); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%s: dictionaries %v, want %v", c.name, got, c.want)
			}
			var want []any
			for _, values := range c.groups {
				want = append(want, values...)
			}
			if err := readable(data, table{[]string{"text"}, [][]any{want}}); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

// Any values come back from both readers; the bytes follow from the rows, not
// from how they are cut into records; and without a dictionary they are those
// of a column that is never tried.
func TestAnyRepeatingText(t *testing.T) {
	pool := new(PagePool)
	rapid.Check(t, func(t *rapid.T) {
		nullable := rapid.Bool().Draw(t, "nullable")
		compression := rapid.SampledFrom(compressions).Draw(t, "compression")
		limit := pageLimit{bytes: levelRoom + rapid.IntRange(1, 200).Draw(t, "page bytes"), values: pageNulls}
		most := dictionaryLimit{rapid.IntRange(1, 400).Draw(t, "bytes"), rapid.IntRange(1, 30).Draw(t, "tried")}
		var groups [][]any
		var all []any
		for range rapid.IntRange(1, 3).Draw(t, "groups") {
			distinct := rapid.IntRange(1, 60).Draw(t, "distinct")
			one := rapid.Map(rapid.IntRange(0, distinct-1), func(i int) any { return strings.Repeat(fmt.Sprint(i), i%5) })
			if nullable {
				one = maybe(one)
			}
			var values []any
			for range rapid.IntRange(1, 5).Draw(t, "runs") {
				if rapid.Bool().Draw(t, "equal") {
					v := one.Draw(t, "value")
					values = append(values, valuesOfRows(rapid.IntRange(1, 30).Draw(t, "run"), func(int) any { return v })...)
				} else {
					values = append(values, rapid.SliceOfN(one, 1, 50).Draw(t, "values")...)
				}
			}
			groups, all = append(groups, values), append(all, values...)
		}
		spec := repeatingText(nullable, compression)
		data := encodeRepeating(t, spec, limit, most, pool, rapid.IntRange(1, 40).Draw(t, "record rows"), groups...)
		if err := readable(data, table{[]string{"text"}, [][]any{all}}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, encodeRepeating(t, spec, limit, most, pool, rapid.IntRange(1, 40).Draw(t, "record rows again"), groups...)) {
			t.Fatal("the same rows gave other bytes")
		}
		for _, has := range dictionaries(t, data, 0) {
			if has {
				return
			}
		}
		if !bytes.Equal(data, encodeRepeating(t, text(nullable, compression, false), limit, most, pool, 40, groups...)) {
			t.Fatal("plain pages differ from those of a plain column")
		}
	})
}

// A dictionary of real size, of numbers of every width.
func TestWidthsOfNumbers(t *testing.T) {
	spec := repeatingText(true, Snappy)
	for _, distinct := range []int{1, 2, 3, 4, 5, 255, 256, 257, 511, 70_000} {
		values := valuesOfRows(5*distinct+9, func(i int) any {
			if i%11 == 3 {
				return nil
			}
			return fmt.Sprintf("%08x", uint32(i/3%distinct)*2654435761)
		})
		data := encodeRepeating(t, spec, realPages, realLimit, new(PagePool), 1000, values)
		if err := readable(data, table{[]string{"text"}, [][]any{values}}); err != nil {
			t.Errorf("%d values: %v", distinct, err)
		}
		if distinct > 1 && !dictionaries(t, data, 0)[0] {
			t.Errorf("%d values: no dictionary", distinct)
		}
	}
}

// The files of a part that is cut by a column keep little memory each.
func TestManyFilesKeepNoDictionary(t *testing.T) {
	spec := repeatingText(true, Snappy)
	var records []arrow.Record
	for i := range 10 {
		records = append(records, textRecord(spec.Schema(), valuesOfRows(100, func(j int) any { return fmt.Sprint("city of ", (i+j)%7) })...))
	}
	data := encode(t, spec, realPages, &PagePool{Growing: true}, records, records[:3])
	requireReadable(t, data, tableOf(spec.Schema(), append(records, records[:3]...)))
	if got := dictionaries(t, data, 0); !got[0] || !got[1] {
		t.Errorf("dictionaries %v", got)
	}
}
