package typed

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/sourcegraph/conc/iter"

	"github.com/leadetl/leadetl/sinks/schema"
)

// Columns reads some columns of a row group, some rows after others.
type Columns struct {
	columns []column
	left    int64 // rows
}

// column reads a column. It has one leaf, or one for each member of the structs in its lists.
type column struct {
	name   string
	kind   arrow.DataType
	isList bool
	null   int16     // the level below which a list is null; the element is null below null + 2
	leaves []*cursor // nil for a column in the path
	inPath *string
	bytes  int // of the texts that were read last
}

// cursor reads a leaf value by value, from batches.
type cursor struct {
	chunk     *Chunk
	values    Values
	at, value int // the next value or null, and the next value
}

// Columns begins some columns of a row group, of the file and of its path.
func (f *File) Columns(group int, of []schema.Column) (c *Columns, err error) {
	c = &Columns{columns: make([]column, len(of)), left: f.Rows(group)}
	for i := range of {
		if c.columns[i], err = f.column(group, of[i].Name); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (f *File) column(group int, name string) (c column, err error) {
	if value, inPath := f.InPath[name]; inPath {
		return column{name: name, kind: arrow.BinaryTypes.String, inPath: value}, nil
	}
	c.name = name
	for _, e := range f.Root {
		if e.Name == name {
			c.kind = e.arrow()
			if c.isList = e.isList(); c.isList && e.Repetition == "OPTIONAL" {
				c.null = 1
			}
		}
	}
	if c.kind == nil || c.kind.ID() == arrow.STRUCT {
		return c, &Error{File: f.Name, Group: group + 1, Column: name, Err: errors.New("it has a type that no dataset has")}
	}
	for _, place := range f.LeavesOf(name) {
		chunk, err := f.Chunk(group, place)
		if err != nil {
			return c, err
		}
		c.leaves = append(c.leaves, &cursor{chunk: chunk})
	}
	return c, nil
}

// Left is how many rows are not read yet.
func (c *Columns) Left() int64 { return c.left }

// Next reads n rows, and returns those at the places in keep, which are in order, as an array for each
// column; a nil keep keeps all. The caller releases them. Columns are read at the same time.
func (c *Columns) Next(n int, keep []int) ([]arrow.Array, error) {
	arrays, failed := make([]arrow.Array, len(c.columns)), make([]error, len(c.columns))
	iter.ForEachIdx(c.columns, func(i int, column *column) {
		if keep == nil && column.leaves != nil && column.kind.ID() == arrow.STRING {
			arrays[i], failed[i] = column.texts(n)
			return
		}
		b := array.NewBuilder(memory.DefaultAllocator, column.kind)
		defer b.Release()
		if failed[i] = column.read(n, keep, b); failed[i] == nil {
			arrays[i] = b.NewArray()
		}
	})
	c.left -= int64(n)
	if err := errors.Join(failed...); err != nil {
		Release(arrays)
		return nil, err
	}
	return arrays, nil
}

// Release releases arrays, of which some may be nil.
func Release(arrays []arrow.Array) {
	for _, a := range arrays {
		if a != nil {
			a.Release()
		}
	}
}

var (
	errEarlyEnd = errors.New("it ends before its rows do")
	errLevels   = errors.New("its levels contradict each other")
)

// texts reads n rows of a column of texts: read takes twice as long, and most columns are such.
func (c *column) texts(n int) (a arrow.Array, err error) {
	l := c.leaves[0]
	defer func() { l.chunk.file.at(&err, l.chunk.group, c.name) }()
	defer Contain(&err)
	offsets, valid, nulls := make([]int32, 1, n+1), make([]byte, (n+7)/8), 0
	data := make([]byte, 0, max(c.bytes+c.bytes/8, n))
	for row := range n {
		if l.at == l.values.Count {
			if more, err := l.load(); err != nil || !more {
				return nil, bare(errors.Join(err, errEarlyEnd))
			}
		}
		if v := &l.values; v.Definition != nil && v.Definition[l.at] < v.MaxDefinition {
			nulls++
		} else {
			valid[row>>3] |= 1 << (row & 7)
			data = append(data, v.Texts[l.value]...)
			l.value++
		}
		l.at++
		offsets = append(offsets, int32(len(data)))
	}
	if len(data) > math.MaxInt32 {
		return nil, errors.New("its rows are too large")
	}
	c.bytes = len(data)
	buffers := []*memory.Buffer{memory.NewBufferBytes(valid), memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets)), memory.NewBufferBytes(data)}
	of := array.NewData(arrow.BinaryTypes.String, n, buffers, nil, nulls, 0)
	defer of.Release()
	return array.NewStringData(of), nil
}

// read reads n rows.
func (c *column) read(n int, keep []int, to array.Builder) (err error) {
	if c.leaves == nil {
		return c.repeat(n, keep, to.(*array.StringBuilder))
	}
	chunk := c.leaves[0].chunk
	defer func() { chunk.file.at(&err, chunk.group, c.name) }()
	defer Contain(&err)
	kept := 0
	for row := range n {
		wanted := keep == nil
		if !wanted && kept < len(keep) && keep[kept] == row {
			wanted = true
			kept++
		}
		if c.isList {
			err = c.list(to.(*array.ListBuilder), wanted)
		} else {
			err = c.leaves[0].take(to, wanted)
		}
		if err != nil {
			return bare(err)
		}
	}
	return nil
}

// repeat appends the value in the path.
func (c *column) repeat(n int, keep []int, to *array.StringBuilder) error {
	if keep != nil {
		n = len(keep)
	}
	for range n {
		if c.inPath == nil {
			to.AppendNull()
		} else {
			to.Append(*c.inPath)
		}
	}
	return nil
}

// bare is an error without the place that a chunk gave it.
func bare(err error) error {
	if placed, ok := errors.AsType[*Error](err); ok {
		return placed.Err
	}
	return err
}

// load reads more values if there are no others. more is false at the end.
func (c *cursor) load() (more bool, err error) {
	if c.at < c.values.Count {
		return true, nil
	}
	c.at, c.value = 0, 0
	c.values.Reset()
	n, err := c.chunk.Read(&c.values, BatchRows)
	return n > 0, err
}

// take moves behind a value or null, and appends it if it is wanted.
func (c *cursor) take(to array.Builder, wanted bool) error {
	if c.at == c.values.Count {
		if more, err := c.load(); err != nil || !more {
			return errors.Join(err, errEarlyEnd)
		}
	}
	null, value := c.values.IsNull(c.at), c.value
	c.at++
	if !null {
		c.value++
	}
	switch {
	case !wanted:
	case null:
		to.AppendNull()
	default:
		return c.values.append(to, value)
	}
	return nil
}

// append appends a value.
func (v *Values) append(to array.Builder, i int) error {
	switch to := to.(type) {
	case *array.StringBuilder:
		to.BinaryBuilder.Append(v.Texts[i])
	case *array.Int64Builder:
		to.Append(v.Numbers[i])
	case *array.TimestampBuilder:
		to.Append(arrow.Timestamp(v.Numbers[i]))
	case *array.Int32Builder:
		to.Append(int32(v.Numbers[i]))
	case *array.Date32Builder:
		to.Append(arrow.Date32(v.Numbers[i]))
	case *array.Float64Builder:
		to.Append(v.Floats[i])
	case *array.BooleanBuilder:
		to.Append(v.Booleans[i])
	default:
		return fmt.Errorf("values of type %s, which no dataset has", to.Type())
	}
	return nil
}

// list moves behind a list, in all leaves, and appends it if it is wanted.
// Source: Apache Parquet format, "Nested Types".
func (c *column) list(to *array.ListBuilder, wanted bool) error {
	first := true
	for {
		level, more, err := c.entry(first)
		switch {
		case err != nil:
			return err
		case !more && first:
			return errEarlyEnd
		case !more:
			return nil
		case level <= c.null && !first:
			return errLevels
		case level < c.null && wanted:
			to.AppendNull()
		case level <= c.null && wanted:
			to.AppendEmptyValue()
		}
		if first && level > c.null && wanted {
			to.Append(true)
		}
		if err := c.element(to, level, wanted && level > c.null); err != nil {
			return err
		}
		first = false
	}
}

// entry is the level of the next entry of a list, if there is one: every list has a first one, also if
// it is null or has no elements.
func (c *column) entry(first bool) (level int16, more bool, err error) {
	for i, l := range c.leaves {
		has, err := l.load()
		if err != nil {
			return 0, false, err
		}
		if has && !first {
			has = l.values.Repetition[l.at] > 0
		} else if has && l.values.Repetition[l.at] > 0 {
			return 0, false, errLevels
		}
		if i > 0 && has != more {
			return 0, false, errLevels
		}
		if more = has; has && i == 0 {
			level = l.values.Definition[l.at]
		}
	}
	return level, more, nil
}

// element moves behind an entry of a list.
func (c *column) element(to *array.ListBuilder, level int16, wanted bool) error {
	members, isStruct := to.ValueBuilder().(*array.StructBuilder)
	if !isStruct {
		return c.leaves[0].take(to.ValueBuilder(), wanted)
	}
	isStruct = level >= c.null+2
	if wanted {
		members.Append(isStruct) // a null one has null members already
	}
	for i, l := range c.leaves {
		if of := l.values.Definition[l.at]; min(of, c.null+2) != min(level, c.null+2) {
			return errLevels
		}
		if err := l.take(members.FieldBuilder(i), wanted && isStruct); err != nil {
			return err
		}
	}
	return nil
}
