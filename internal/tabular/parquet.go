package tabular

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"
)

// readParquet reads the wanted top-level columns as text. A row is a line.
func readParquet(ctx context.Context, f *os.File, want Columns, each func(Row) error) error {
	pf, err := file.NewParquetReader(f)
	if err != nil {
		return &FileError{err}
	}
	defer pf.Close()
	const batchRows = 8192
	r, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: batchRows}, memory.DefaultAllocator)
	if err != nil {
		return &FileError{err}
	}
	schema, err := r.Schema()
	if err != nil {
		return &FileError{err}
	}
	header := make([]string, schema.NumFields())
	for i, field := range schema.Fields() {
		header[i] = field.Name
	}
	places, err := want.find(header)
	if err != nil {
		return err
	}
	// Leaf columns are what Parquet reads; a list is one leaf below its field.
	var leaves []int
	for _, p := range places {
		if p < 0 {
			continue
		}
		for leaf := range pf.MetaData().Schema.NumColumns() {
			if pf.MetaData().Schema.Column(leaf).ColumnPath()[0] == header[p] {
				leaves = append(leaves, leaf)
			}
		}
	}
	records, err := r.GetRecordReader(ctx, leaves, nil)
	if err != nil {
		return &FileError{err}
	}
	defer records.Release()
	cells := make([]string, len(places))
	line := int64(0)
	for records.Next() {
		record := records.Record()
		// The record's columns are in file order, not in ours.
		arrays := make([]arrow.Array, len(places))
		for i, p := range places {
			if p >= 0 {
				if at := record.Schema().FieldIndices(header[p]); len(at) > 0 {
					arrays[i] = record.Column(at[0])
				}
			}
		}
		for n := range int(record.NumRows()) {
			for i, a := range arrays {
				cells[i] = text(a, n)
			}
			line++
			if err := each(Row{Line: line, Cells: cells}); err != nil {
				return err
			}
		}
	}
	// The reader reports its end as an error.
	if err := records.Err(); err != nil && !errors.Is(err, io.EOF) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &FileError{err}
	}
	return nil
}

// text is the value at n as a CSV cell would hold it, "" for null.
func text(a arrow.Array, n int) string {
	if a == nil || a.IsNull(n) {
		return ""
	}
	switch a := a.(type) {
	case *array.String:
		return strings.Clone(a.Value(n)) // the value lives in the record's buffer
	case *array.LargeString:
		return strings.Clone(a.Value(n))
	case *array.Binary:
		return string(a.Value(n))
	case *array.Timestamp:
		unit := a.DataType().(*arrow.TimestampType).Unit
		return a.Value(n).ToTime(unit).UTC().Format(time.RFC3339Nano)
	case *array.Date32:
		return a.Value(n).ToTime().Format(time.DateOnly)
	case array.ListLike:
		from, to := a.ValueOffsets(n)
		members := make([]string, 0, to-from)
		for i := from; i < to; i++ {
			members = append(members, text(a.ListValues(), int(i)))
		}
		return strings.Join(members, ";")
	default:
		return a.ValueStr(n)
	}
}
