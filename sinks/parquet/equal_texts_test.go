package parquet

import (
	"bytes"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/sinks/schema"
)

// Text columns that share the pages of an earlier one, for a whole row group or until a
// record differs, give the same bytes as with pages of their own, and readers read them.
func TestEqualTexts(t *testing.T) {
	pool := new(PagePool) // pages that were shared come again
	rapid.Check(t, func(t *rapid.T) {
		spec := Table{Compression: rapid.SampledFrom([]Compression{Snappy, Zstd, Uncompressed}).Draw(t, "compression")}
		for _, name := range []string{"a", "b", "c", "d"} {
			c := schema.New(name, arrow.BinaryTypes.String, rapid.IntRange(0, 4).Draw(t, "nullable") > 0)
			c.Random = rapid.IntRange(0, 5).Draw(t, "random") == 0
			spec.Columns = append(spec.Columns, c)
		}
		limit := pageLimit{bytes: levelRoom + rapid.IntRange(1, 200).Draw(t, "page bytes"), values: rapid.IntRange(1, 40).Draw(t, "page rows")}
		var groups [][]arrow.Record
		var all []arrow.Record
		for range rapid.IntRange(1, 3).Draw(t, "row groups") {
			var group []arrow.Record
			for range rapid.IntRange(1, 4).Draw(t, "records") {
				rec := anyEqualTexts(t, spec)
				group, all = append(group, rec), append(all, rec)
			}
			groups = append(groups, group)
		}
		var shared, alone bytes.Buffer
		var held [2][]int64
		for i, out := range []*bytes.Buffer{&shared, &alone} {
			e, err := NewEncoder(out, spec, pool)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range e.columns {
				c.(*textColumn).limit = limit
			}
			if i == 1 {
				e.texts = nil // no column is compared
			}
			for _, group := range groups {
				for _, rec := range group {
					e.Add(rec)
				}
				e.count() // records without rows are not counted
				held[i] = append(held[i], e.Held())
				if err := e.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(held[0], held[1]) {
			t.Fatalf("%d bytes held with shared pages, %d without", held[0], held[1])
		}
		if !bytes.Equal(shared.Bytes(), alone.Bytes()) {
			t.Fatal("the same rows gave other bytes with shared pages")
		}
		if err := readable(shared.Bytes(), tableOf(spec.Schema(), all)); err != nil {
			t.Fatal(err)
		}
	})
}

// anyEqualTexts is a record whose columns often have the values of the first.
func anyEqualTexts(t *rapid.T, spec Table) arrow.Record {
	rows := rapid.IntRange(0, 30).Draw(t, "rows")
	some := func(nullable bool) []any {
		values := make([]any, rows)
		for i := range values {
			if !nullable || rapid.IntRange(0, 3).Draw(t, "there") > 0 {
				values[i] = rapid.SampledFrom([]string{"", "a", "bc", "192.0.2.1", "198.51.100.77"}).Draw(t, "value")
			}
		}
		return values
	}
	first := some(!slices.ContainsFunc(spec.Columns, func(c schema.Column) bool { return !c.Nullable }))
	var columns [][]any
	for _, c := range spec.Columns {
		values := first
		switch rapid.IntRange(0, 7).Draw(t, "another") {
		case 0:
			values = some(c.Nullable)
		case 1: // as many nulls and the same bytes, in other rows
			null, empty := slices.Index(first, nil), slices.Index(first, any(""))
			if null >= 0 && empty >= 0 {
				values = slices.Clone(first)
				values[null], values[empty] = "", nil
			}
		}
		columns = append(columns, values)
	}
	rec := record(spec.Schema(), columns...)
	if rows == 0 {
		return rec
	}
	return rec.NewSlice(int64(rapid.IntRange(0, rows-1).Draw(t, "from")), int64(rows))
}

// A column with the values of another holds no pages, until a record differs.
func TestEqualTextsHoldNothing(t *testing.T) {
	spec := Table{Columns: []schema.Column{schema.New("ip", arrow.BinaryTypes.String, true), schema.New("key", arrow.BinaryTypes.String, true)}, Compression: Snappy}
	e, err := NewEncoder(new(bytes.Buffer), spec, new(PagePool))
	if err != nil {
		t.Fatal(err)
	}
	key := e.columns[1].(*textColumn)
	for i, want := range []struct {
		key   any
		pages int
	}{{"192.0.2.1", 0}, {nil, 1}, {"192.0.2.1", 1}} {
		e.Add(record(spec.Schema(), []any{"192.0.2.1"}, []any{want.key}))
		if len(key.pages) != want.pages {
			t.Errorf("after record %d the key holds %d pages, want %d", i+1, len(key.pages), want.pages)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}
