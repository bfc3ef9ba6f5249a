package parquet

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/metadata"

	"github.com/leadetl/leadetl/sinks/schema"
)

// Each group of values becomes a row group with its own statistics.
func TestStatistics(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name   string
		of     arrow.DataType
		groups [][]any
		want   []string // smallest and largest by group, and nulls
	}{
		{"int32", arrow.PrimitiveTypes.Int32, [][]any{{int32(5), int32(-7), nil, int32(300)}, {int32(1)}}, []string{"-7 300, 1 null", "1 1, 0 null"}},
		{"day", arrow.FixedWidthTypes.Date32, [][]any{{int32(20_000), nil, int32(-1)}}, []string{"-1 20000, 1 null"}},
		{"int64", arrow.PrimitiveTypes.Int64, [][]any{{int64(math.MaxInt64), int64(math.MinInt64)}, {nil, int64(256), int64(255)}}, []string{fmt.Sprint(math.MinInt64, math.MaxInt64) + ", 0 null", "255 256, 1 null"}},
		{"instant", instantType, [][]any{{int64(-1), int64(1)}}, []string{"-1 1, 0 null"}},
		{"float64", arrow.PrimitiveTypes.Float64, [][]any{{-0.5, 1.5, nan, 1e300}, {nan}, {nan, 2.0}}, []string{"-0.5 1e+300, 0 null", "none, 0 null", "2 2, 0 null"}},
		{"nulls alone", arrow.PrimitiveTypes.Int64, [][]any{{nil, nil}, {int64(3)}, {nil}}, []string{"none, 2 null", "3 3, 0 null", "none, 1 null"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := Table{Columns: []schema.Column{withStatistics(schema.New("n", c.of, true))}}
			var groups [][]arrow.Record
			for _, values := range c.groups {
				groups = append(groups, []arrow.Record{record(spec.Schema(), values)})
			}
			f, err := file.NewParquetReader(bytes.NewReader(encode(t, spec, smallPages, new(PagePool), groups...)))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for g, want := range c.want {
				chunk, err := f.RowGroup(g).MetaData().ColumnChunk(0)
				if err != nil {
					t.Fatal(err)
				}
				s, err := chunk.Statistics()
				if err != nil {
					t.Fatal(err)
				}
				if got := fmt.Sprintf("%s, %d null", boundsOf(s), s.NullCount()); !s.HasNullCount() || got != want {
					t.Errorf("group %d: %s, want %s", g, got, want)
				}
			}
		})
	}
}

func boundsOf(s metadata.TypedStatistics) string {
	if !s.HasMinMax() {
		return "none"
	}
	switch s := s.(type) {
	case *metadata.Int32Statistics:
		return fmt.Sprint(s.Min(), s.Max())
	case *metadata.Int64Statistics:
		return fmt.Sprint(s.Min(), s.Max())
	case *metadata.Float64Statistics:
		return fmt.Sprint(s.Min(), s.Max())
	}
	return "none"
}
