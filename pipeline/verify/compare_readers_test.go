package verify

import (
	"errors"
	"strings"
	"testing"

	arrowparquet "github.com/apache/arrow/go/v17/parquet"
	"github.com/xitongsys/parquet-go/layout"
	"github.com/xitongsys/parquet-go/parquet"
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
		return &leaf{maxDefinition: 1, count: 3, definition: []int16{1, 0, 1}, texts: values("a", "b")}
	}
	list := func() *leaf { // ["a", "b"], []
		return &leaf{maxDefinition: 3, maxRepetition: 1, count: 3, definition: []int16{3, 3, 1}, repetition: []int16{0, 1, 0}, texts: values("a", "b")}
	}
	numbers := func() *leaf { return &leaf{count: 2, numbers: []int64{1, 2}} }
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
		{"a number that Arrow does not find", &leaf{count: 2, numbers: []int64{1}}, layout.Table{Values: []any{int64(1), int64(2)}, DefinitionLevels: []int32{0, 0}}, "different values", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			kind := parquet.Type_BYTE_ARRAY
			if c.leaf.numbers != nil {
				kind = parquet.Type_INT64
			}
			// The second implementation writes the page, too.
			p := layout.NewDataPage()
			p.Schema, p.DataTable = &parquet.SchemaElement{Type: &kind}, &c.page
			c.page.MaxDefinitionLevel, c.page.MaxRepetitionLevel = int32(c.leaf.maxDefinition), int32(c.leaf.maxRepetition)
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
