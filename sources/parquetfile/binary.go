package parquetfile

import (
	"context"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/leadetl/leadetl/internal/rows"
)

// MayBeBinary reports whether a column has values of which the schema does not say
// that they are text. Many programs write texts in this way too. In nested columns
// values that are no text are in hex.
func (r *Reader) MayBeBinary(column int) bool {
	if !r.IsText(column) {
		return false
	}
	e := r.schema.children[column]
	switch e.LogicalType.Value.(type) {
	case *format.StringType, *format.EnumType, *format.JsonType:
		return false
	}
	return !e.converted(deprecated.UTF8) && !e.converted(deprecated.Enum) && !e.converted(deprecated.Json)
}

// sampledRows is how many rows of a row group TextShare reads.
const sampledRows = 8192

// TextShare reads the first rows of the first and the last row group, and returns
// the share of the values of a column that are text; 1 without values. The Reader
// must not be used afterwards.
func (r *Reader) TextShare(ctx context.Context, column int) (share float64, err error) {
	if err := r.Select(ctx, []int{column}); err != nil {
		return 0, err
	}
	texts, others := 0, 0
	for _, group := range []int{0, max(0, len(r.meta.RowGroups)-1)} {
		if group < r.group {
			continue // was read
		}
		r.group, r.left = group, 0
		b := rows.NewBuilder(1, sampledRows)
		if err := r.Fill(ctx, b, sampledRows); err != nil && err != io.EOF {
			b.Discard()
			return 0, err
		}
		batch := b.Batch(r.name, []int{0})
		others += len(batch.Rejects)
		for i := range batch.Len() {
			switch values := batch.Columns[0]; {
			case values.IsNull(i):
			case strings.IndexByte(values.Value(i), 0) >= 0:
				others++
			default:
				texts++
			}
		}
		batch.Release()
	}
	if others == 0 {
		return 1, nil
	}
	return float64(texts) / float64(texts+others), nil
}
