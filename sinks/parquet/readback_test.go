package parquet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"reflect"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"
	"github.com/xitongsys/parquet-go/common"
	"github.com/xitongsys/parquet-go/reader"
	"github.com/xitongsys/parquet-go/source"
)

// The tests of the encoder compare a table that went in with what two
// independent readers make of the file. A table is columns of plain values:
// nil, string, int32, int64, float64, bool, words for a LIST<STRING> and pairs
// for a LIST<STRUCT>. A day is the int32 of days since 1970.

type (
	table struct {
		names   []string
		columns [][]any
	}
	words []any
	pairs []pair
	pair  struct{ first, second any }
)

// put adds rows of a column at its end.
func (t *table) put(column int, values ...any) {
	for len(t.columns) <= column {
		t.columns = append(t.columns, nil)
	}
	t.columns[column] = append(t.columns[column], values...)
}

// tableOf is what a writer was given.
func tableOf(schema *arrow.Schema, records []arrow.Record) table {
	t := table{columns: make([][]any, schema.NumFields())}
	for i, f := range schema.Fields() {
		t.names = append(t.names, f.Name)
		for _, rec := range records {
			t.put(i, valuesOf(rec.Column(i))...)
		}
	}
	return t
}

func valuesOf(a arrow.Array) []any {
	values := make([]any, a.Len())
	for i := range values {
		values[i] = valueAt(a, i)
	}
	return values
}

func valueAt(a arrow.Array, i int) any {
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.String:
		return a.Value(i)
	case *array.Dictionary:
		return valueAt(a.Dictionary(), a.GetValueIndex(i))
	case *array.Int32:
		return a.Value(i)
	case *array.Date32:
		return int32(a.Value(i))
	case *array.Int64:
		return a.Value(i)
	case *array.Float64:
		return a.Value(i)
	case *array.Boolean:
		return a.Value(i)
	case *array.Timestamp:
		return int64(a.Value(i))
	case *array.List:
		members, ok := a.ListValues().(*array.Struct)
		if !ok {
			list := words{}
			for from, to := a.ValueOffsets(i); from < to; from++ {
				list = append(list, valueAt(a.ListValues(), int(from)))
			}
			return list
		}
		list := pairs{}
		for from, to := a.ValueOffsets(i); from < to; from++ {
			list = append(list, pair{valueAt(members.Field(0), int(from)), valueAt(members.Field(1), int(from))})
		}
		return list
	}
	panic(fmt.Sprintf("a column of %s", a.DataType()))
}

// readArrow reads a file with the Arrow project's reader.
func readArrow(data []byte) (table, error) {
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		return table{}, err
	}
	defer f.Close()
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{BatchSize: 1000}, memory.DefaultAllocator)
	if err != nil {
		return table{}, err
	}
	read, err := r.ReadTable(context.Background())
	if err != nil {
		return table{}, err
	}
	defer read.Release()
	t := table{columns: make([][]any, read.NumCols())}
	for i := range int(read.NumCols()) {
		t.names = append(t.names, read.Column(i).Name())
		for _, chunk := range read.Column(i).Data().Chunks() {
			t.put(i, valuesOf(chunk)...)
		}
	}
	return t, nil
}

// readOther reads a file with xitongsys/parquet-go, leaf by leaf, and puts
// lists together from their levels.
func readOther(data []byte) (t table, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	r, err := reader.NewParquetColumnReader(memoryFile{bytes.NewReader(data)}, 1)
	if err != nil {
		return table{}, err
	}
	rows := r.GetNumRows()
	for _, path := range r.SchemaHandler.ValueColumns {
		var leaf leafValues
		if rows > 0 {
			values, repetition, definition, err := r.ReadColumnByPath(path, rows)
			if err != nil {
				return table{}, err
			}
			leaf = leafValues{values, repetition, definition}
		}
		external := common.StrToPath(r.SchemaHandler.InPathToExPath[path])[1:]
		switch {
		case len(external) == 1:
			t.names = append(t.names, external[0])
			t.columns = append(t.columns, leaf.flat())
		case len(external) == 3: // NAME.list.element
			t.names = append(t.names, external[0])
			t.columns = append(t.columns, leaf.words())
		case len(t.names) == 0 || t.names[len(t.names)-1] != external[0]:
			t.names = append(t.names, external[0])
			t.columns = append(t.columns, leaf.lists())
		default: // the second member of the pairs
			last := t.columns[len(t.columns)-1]
			for row, second := range leaf.lists() {
				if list, ok := last[row].(pairs); ok {
					for i := range list {
						list[i].second = second.(pairs)[i].first
					}
				}
			}
		}
	}
	return t, nil
}

type leafValues struct {
	values                 []any
	repetition, definition []int32
}

func (l leafValues) flat() []any { return l.values }

// lists are the rows of one leaf below a nullable list, each value as the first
// of a pair.
func (l leafValues) lists() []any {
	var rows []any
	for i, value := range l.values {
		if l.repetition[i] == 0 {
			switch l.definition[i] {
			case listNull:
				rows = append(rows, nil)
				continue
			case listEmpty:
				rows = append(rows, pairs{})
				continue
			}
			rows = append(rows, pairs{})
		}
		rows[len(rows)-1] = append(rows[len(rows)-1].(pairs), pair{first: value})
	}
	return rows
}

// words are the rows of a nullable list of nullable values.
func (l leafValues) words() []any {
	rows := l.lists()
	for row, list := range rows {
		if list, ok := list.(pairs); ok {
			flat := words{}
			for _, p := range list {
				flat = append(flat, p.first)
			}
			rows[row] = flat
		}
	}
	return rows
}

type memoryFile struct{ *bytes.Reader }

func (memoryFile) Write([]byte) (int, error)                 { return 0, io.ErrClosedPipe }
func (memoryFile) Close() error                              { return nil }
func (memoryFile) Create(string) (source.ParquetFile, error) { return nil, io.ErrClosedPipe }
func (f memoryFile) Open(string) (source.ParquetFile, error) {
	copied := *f.Reader
	return memoryFile{&copied}, nil
}

// requireReadable fails unless both readers make want of the file.
func requireReadable(t testing.TB, data []byte, want table) {
	t.Helper()
	if err := readable(data, want); err != nil {
		t.Fatal(err)
	}
}

func readable(data []byte, want table) error {
	for _, r := range []struct {
		name string
		read func([]byte) (table, error)
	}{{"arrow", readArrow}, {"xitongsys", readOther}} {
		got, err := r.read(data)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		if err := differ(got, want); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

func differ(got, want table) error {
	if !reflect.DeepEqual(got.names, want.names) {
		return fmt.Errorf("columns %q, want %q", got.names, want.names)
	}
	for i, name := range want.names {
		if len(got.columns[i]) != len(want.columns[i]) {
			return fmt.Errorf("column %s has %d rows, want %d", name, len(got.columns[i]), len(want.columns[i]))
		}
		for row, value := range want.columns[i] {
			if !reflect.DeepEqual(got.columns[i][row], value) {
				return fmt.Errorf("column %s, row %d: %s, want %s", name, row, short(got.columns[i][row]), short(value))
			}
		}
	}
	return nil
}

func short(v any) string {
	if s := fmt.Sprintf("%#v", v); len(s) > 80 {
		return fmt.Sprintf("%s… (%d characters)", s[:80], len(s))
	} else {
		return s
	}
}
