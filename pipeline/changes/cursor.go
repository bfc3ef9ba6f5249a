package changes

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"
	"github.com/sourcegraph/conc/iter"
)

// cursor reads some rows of a dataset, in their order. Row groups without any of them are not
// read, and of the other rows no value is copied.
type cursor struct {
	side    *side
	columns []int // places of the columns that are read
	group   int   // place of the open row group; -1 at first
	next    int64 // the first row that is not read yet
	flat    []flatReader
	nested  pqarrow.RecordReader // of the columns with lists; nil without any
}

// windowRows is how many rows of a row group are read at a time.
const windowRows = 8192

// flatReader reads a column without lists.
type flatReader interface {
	// pick reads n rows, and appends some of them to a builder.
	pick(n int, wanted []int, to array.Builder) error
}

func newCursor(s *side, columns []int) *cursor { return &cursor{side: s, columns: columns, group: -1} }

// windowEnd is the first row behind the window of a row: the rows before it can be picked
// together.
func (c *cursor) windowEnd(row int64) int64 {
	g := &c.side.groups[c.side.groupOf(row)]
	return min(g.from+g.rows, g.from+(row-g.from)/windowRows*windowRows+windowRows)
}

// pick reads rows of one window. The arrays are in the order of all columns; those that are
// not read are nil. The caller releases them.
func (c *cursor) pick(ctx context.Context, rows []int64) (arrays []arrow.Array, err error) {
	end := c.windowEnd(rows[0])
	group := c.side.groupOf(rows[0])
	g := &c.side.groups[group]
	defer contain(g, &err)
	if group != c.group {
		if err := c.open(ctx, group); err != nil {
			return nil, fmt.Errorf("%s: %w", g.file.name, err)
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := min(windowRows, int(g.from+g.rows-c.next))
		var wanted []int
		if c.next+int64(n) == end {
			for _, row := range rows {
				wanted = append(wanted, int(row-c.next))
			}
		}
		if arrays, err = c.window(g, n, wanted); err != nil {
			return nil, fmt.Errorf("%s: %w", g.file.name, err)
		}
		if c.next += int64(n); c.next == end {
			return arrays, nil
		}
	}
}

// picking picks the rows of differences with a cursor, those of a window together.
type picking struct {
	from    *cursor
	row     func(difference) int64
	do      func([]difference, []arrow.Array) error
	waiting []difference // of one window
	rows    []int64
	end     int64 // of the window
}

// add adds differences, in the order of their rows.
func (p *picking) add(ctx context.Context, sorted []difference) error {
	for _, d := range sorted {
		row := p.row(d)
		if row >= p.end || len(p.waiting) == 0 {
			if err := p.flush(ctx); err != nil {
				return err
			}
			p.end = p.from.windowEnd(row)
		}
		p.waiting, p.rows = append(p.waiting, d), append(p.rows, row)
	}
	return nil
}

// flush picks the rows that wait for others of their window. It ends the picking.
func (p *picking) flush(ctx context.Context) error {
	if len(p.waiting) == 0 {
		return nil
	}
	arrays, err := p.from.pick(ctx, p.rows)
	defer release(arrays)
	if err == nil {
		err = p.do(p.waiting, arrays)
	}
	p.waiting, p.rows = p.waiting[:0], p.rows[:0]
	return err
}

// open begins a row group.
func (c *cursor) open(ctx context.Context, group int) (err error) {
	c.close()
	g := &c.side.groups[group]
	c.group, c.next, c.flat = group, g.from, make([]flatReader, len(c.columns))
	var lists []int
	for i, place := range c.columns {
		column := c.side.shape.columns[place]
		leaves := g.file.leaves[column.Name]
		switch {
		case column.Name == c.side.partition:
			c.flat[i] = constant{g.value}
		case arrow.IsNested(column.Arrow.ID()):
			for _, leaf := range leaves {
				lists = append(lists, leaf.index)
			}
		default:
			if c.flat[i], err = g.flat(leaves[0]); err != nil {
				return err
			}
		}
	}
	if len(lists) == 0 {
		return nil
	}
	r, err := pqarrow.NewFileReader(g.file.reader, pqarrow.ArrowReadProperties{Parallel: true, BatchSize: windowRows}, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	c.nested, err = r.GetRecordReader(ctx, lists, []int{g.index})
	return err
}

// window reads n rows, and returns those that are wanted.
func (c *cursor) window(g *rowGroup, n int, wanted []int) ([]arrow.Array, error) {
	arrays, failed := make([]arrow.Array, len(c.side.shape.columns)), make([]error, len(c.columns))
	iter.ForEachIdx(c.columns, func(i int, place *int) {
		defer contain(g, &failed[i])
		if c.flat[i] == nil {
			return
		}
		b := array.NewBuilder(memory.DefaultAllocator, c.side.shape.columns[*place].Arrow)
		defer b.Release()
		if failed[i] = c.flat[i].pick(n, wanted, b); failed[i] == nil {
			arrays[*place] = b.NewArray()
		}
	})
	if err := errors.Join(failed...); err != nil || c.nested == nil {
		return arrays, err
	}
	rec, err := c.nested.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if rec == nil || rec.NumRows() != int64(n) {
		return nil, errEarlyEnd
	}
	for i, place := range c.columns {
		if c.flat[i] != nil {
			continue
		}
		at := rec.Schema().FieldIndices(c.side.shape.columns[place].Name)
		if arrays[place], err = take(rec.Column(at[0]), wanted); err != nil {
			return nil, err
		}
	}
	return arrays, nil
}

var errEarlyEnd = errors.New("it ends before its rows do")

// take returns some rows of an array.
func take(a arrow.Array, rows []int) (arrow.Array, error) {
	var runs []arrow.Array
	defer func() { release(runs) }()
	for i := 0; i < len(rows); {
		end := i + 1
		for end < len(rows) && rows[end] == rows[end-1]+1 {
			end++
		}
		runs = append(runs, array.NewSlice(a, int64(rows[i]), int64(rows[end-1]+1)))
		i = end
	}
	if len(runs) == 0 {
		return array.NewSlice(a, 0, 0), nil
	}
	return array.Concatenate(runs, memory.DefaultAllocator)
}

func release(arrays []arrow.Array) {
	for _, a := range arrays {
		if a != nil {
			a.Release()
		}
	}
}

func (c *cursor) close() {
	if c.nested != nil {
		c.nested.Release()
		c.nested = nil
	}
}

// constant is a column with one value in all rows; nil is null.
type constant struct{ value []byte }

func (c constant) pick(_ int, wanted []int, to array.Builder) error {
	for range wanted {
		if c.value == nil {
			to.AppendNull()
		} else {
			to.(*array.StringBuilder).BinaryBuilder.Append(c.value)
		}
	}
	return nil
}

// flat returns what reads a column without lists.
func (g *rowGroup) flat(leaf leafColumn) (flatReader, error) {
	column, err := g.file.reader.RowGroup(g.index).Column(leaf.index)
	if err != nil {
		return nil, err
	}
	switch c := column.(type) {
	case *file.ByteArrayColumnChunkReader:
		return &flatOf[parquet.ByteArray]{from: c, leaf: leaf, add: func(to array.Builder, v parquet.ByteArray) { to.(*array.StringBuilder).BinaryBuilder.Append(v) }}, nil
	case *file.Int64ColumnChunkReader:
		return &flatOf[int64]{from: c, leaf: leaf, add: addInt64}, nil
	case *file.Int32ColumnChunkReader:
		return &flatOf[int32]{from: c, leaf: leaf, add: addInt32}, nil
	case *file.Float64ColumnChunkReader:
		return &flatOf[float64]{from: c, leaf: leaf, add: func(to array.Builder, v float64) { to.(*array.Float64Builder).Append(v) }}, nil
	case *file.BooleanColumnChunkReader:
		return &flatOf[bool]{from: c, leaf: leaf, add: func(to array.Builder, v bool) { to.(*array.BooleanBuilder).Append(v) }}, nil
	}
	return nil, fmt.Errorf("values of type %s, which no dataset has", column.Type())
}

func addInt64(to array.Builder, v int64) {
	switch to := to.(type) {
	case *array.TimestampBuilder:
		to.Append(arrow.Timestamp(v))
	default:
		to.(*array.Int64Builder).Append(v)
	}
}

func addInt32(to array.Builder, v int32) {
	switch to := to.(type) {
	case *array.Date32Builder:
		to.Append(arrow.Date32(v))
	default:
		to.(*array.Int32Builder).Append(v)
	}
}

// flatOf reads a column whose values have one type.
type flatOf[T any] struct {
	from       chunkReader[T]
	leaf       leafColumn
	add        func(array.Builder, T)
	values     []T
	definition []int16
}

func (f *flatOf[T]) pick(n int, wanted []int, to array.Builder) error {
	if f.values == nil {
		f.values = make([]T, windowRows)
		if f.leaf.definition > 0 {
			f.definition = make([]int16, windowRows)
		}
	}
	for row := 0; row < n; {
		if !f.from.HasNext() {
			return errors.Join(f.from.Err(), errEarlyEnd)
		}
		levels, _, err := f.from.ReadBatch(int64(n-row), f.values, f.definition, nil)
		if err != nil {
			return err
		}
		value := 0
		for i := range int(levels) {
			isNull := f.definition != nil && f.definition[i] < f.leaf.definition
			if len(wanted) > 0 && wanted[0] == row+i {
				if wanted = wanted[1:]; isNull {
					to.AppendNull()
				} else {
					f.add(to, f.values[value])
				}
			}
			if !isNull {
				value++
			}
		}
		row += int(levels)
	}
	return nil
}
