// Package typed reads the Parquet files of datasets, with the types that their values have. It is
// the only reader of them, but for the second one of pipeline/verify; what other programs wrote is
// read by sources/parquetfile.
//
// It reads with the implementation of the Arrow project: column chunks in batches (Chunk), and rows
// of some columns as Arrow arrays (Columns). Memory is that of the pages at work, whatever the size
// of a row group. A damaged file, which may make that implementation panic, is an error.
package typed

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/metadata"
	parquetschema "github.com/apache/arrow/go/v17/parquet/schema"

	"github.com/leadetl/leadetl/sinks/schema"
)

// File is an open Parquet file. Its methods may be called from several goroutines at once.
type File struct {
	Name   string
	Root   []Element // its columns
	Leaves []Leaf    // of all columns, in the order of the file
	// InPath are values of columns that are in the path of the file and not in it, the same in all rows;
	// nil is null.
	InPath map[string]*string
	reader *file.Reader
	in     *input
}

// input remembers why it could not be read: the implementation may say that of no error it passes on.
type input struct {
	io.ReaderAt
	failed atomic.Pointer[error]
}

func (i *input) ReadAt(to []byte, at int64) (n int, err error) {
	if n, err = i.ReaderAt.ReadAt(to, at); err != nil && err != io.EOF {
		i.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

// Leaf is a column of values. A column with lists of structs has several.
type Leaf struct {
	Column string // the column that it belongs to
	Path   string // "hashed_emails.list.element.email"
	// A value has the largest definition level. Without lists, the largest repetition level is 0.
	MaxDefinition, MaxRepetition int16
}

// Error says what cannot be read, and where.
type Error struct {
	File   string
	Group  int    // from 1; 0 of the footer
	Column string // path of a leaf; empty without one
	Err    error
	// MayBeWhole says that the file could not be read, whatever is in it.
	MayBeWhole bool
}

func (e *Error) Error() string {
	at := e.File
	if e.Group > 0 {
		at += fmt.Sprintf(", row group %d", e.Group)
	}
	if e.Column != "" {
		at += ", column " + e.Column
	}
	if e.MayBeWhole {
		return at + ": " + e.Err.Error()
	}
	return at + ": " + e.Err.Error() + "; check the dataset with leadetl verify"
}

func (e *Error) Unwrap() error { return e.Err }

// Open reads the footer of a file. Errors are an *Error with its name, as those of all methods.
func Open(name string, in io.ReaderAt, size int64) (f *File, err error) {
	f = &File{Name: name, in: &input{ReaderAt: in}}
	defer f.at(&err, -1, "")
	defer Contain(&err)
	props := parquet.NewReaderProperties(&pages{})
	props.BufferedStreamEnabled, props.BufferSize = true, 1<<16 // else each column chunk is read whole, into twice its size
	if f.reader, err = file.NewParquetReader(io.NewSectionReader(f.in, 0, size), file.WithReadProps(props)); err != nil {
		return f, err
	}
	root := f.Metadata().Schema.Root()
	for i := range root.NumFields() {
		f.Root = append(f.Root, elementOf(root.Field(i)))
	}
	for i := range f.Metadata().Schema.NumColumns() {
		c := f.Metadata().Schema.Column(i)
		f.Leaves = append(f.Leaves, Leaf{c.ColumnPath()[0], c.Path(), c.MaxDefinitionLevel(), c.MaxRepetitionLevel()})
	}
	return f, nil
}

// Metadata is the footer.
func (f *File) Metadata() *metadata.FileMetaData { return f.reader.MetaData() }

// Groups is the number of row groups.
func (f *File) Groups() int { return f.reader.NumRowGroups() }

// Rows is the number of rows in a row group.
func (f *File) Rows(group int) int64 { return f.Metadata().RowGroup(group).NumRows() }

// LeavesOf are the places of the leaves of a column; none without such a column.
func (f *File) LeavesOf(column string) (places []int) {
	for i := range f.Leaves {
		if f.Leaves[i].Column == column {
			places = append(places, i)
		}
	}
	return places
}

// Expect refuses a file that has other rows, or not all columns with these types.
func (f *File) Expect(rows int64, columns []schema.Column) error {
	has := int64(0)
	for i := range f.Groups() {
		has += f.Rows(i)
	}
	if has != rows {
		return &Error{File: f.Name, Err: fmt.Errorf("it has %d rows, not %d as its manifest says", has, rows)}
	}
	for _, c := range columns {
		if _, inPath := f.InPath[c.Name]; inPath {
			continue
		}
		i := slices.IndexFunc(f.Root, func(e Element) bool { return e.Name == c.Name })
		if i < 0 {
			return &Error{File: f.Name, Column: c.Name, Err: errors.New("it has no such column")}
		}
		if has := f.Root[i].Column().Type; has != c.Type {
			return &Error{File: f.Name, Column: c.Name, Err: fmt.Errorf("it is %s, not %s as its manifest says", has, c.Type)}
		}
	}
	return nil
}

// Element is a node of the schema of a file.
type Element struct {
	Name       string
	Repetition string // REQUIRED, OPTIONAL or REPEATED
	Physical   string // INT64, BYTE_ARRAY …; empty for a group
	Converted  string // UTF8, LIST …; may be empty
	Children   []Element
}

func elementOf(n parquetschema.Node) Element {
	e := Element{Name: n.Name(), Repetition: strings.ToUpper(n.RepetitionType().String())}
	if converted := n.ConvertedType(); converted != parquetschema.ConvertedTypes.None {
		e.Converted = converted.String()
	}
	if group, ok := n.(*parquetschema.GroupNode); ok {
		for i := range group.NumFields() {
			e.Children = append(e.Children, elementOf(group.Field(i)))
		}
		return e
	}
	e.Physical = n.(*parquetschema.PrimitiveNode).PhysicalType().String()
	return e
}

// Column returns a top-level element in the form of manifests.
func (e Element) Column() schema.Column {
	return schema.Column{Name: e.Name, Type: e.typeName(), Nullable: e.Repetition == "OPTIONAL"}
}

func (e Element) typeName() string {
	switch {
	case e.isList():
		return "LIST<" + e.Children[0].Children[0].typeName() + ">"
	case e.Physical == "" && e.Converted == "":
		members := make([]string, len(e.Children))
		for i, child := range e.Children {
			members[i] = child.Name + " " + child.typeName()
		}
		return "STRUCT<" + strings.Join(members, ", ") + ">"
	}
	switch e.Physical + " " + e.Converted {
	case "BYTE_ARRAY UTF8":
		return "STRING"
	case "INT64 TIMESTAMP_MICROS":
		return "TIMESTAMP(MICROS, UTC)"
	case "INT32 DATE":
		return "DATE"
	case "INT32 ", "INT32 INT_32":
		return "INT32"
	case "INT64 ", "INT64 INT_64":
		return "INT64"
	case "BOOLEAN ", "DOUBLE ":
		return e.Physical
	}
	return strings.TrimSpace(e.Physical + " " + e.Converted)
}

// arrow is the Arrow type of the values; nil for one that no dataset has.
func (e Element) arrow() arrow.DataType {
	switch e.typeName() {
	case "STRING":
		return arrow.BinaryTypes.String
	case "TIMESTAMP(MICROS, UTC)":
		return schema.Instant
	case "DATE":
		return arrow.FixedWidthTypes.Date32
	case "INT32":
		return arrow.PrimitiveTypes.Int32
	case "INT64":
		return arrow.PrimitiveTypes.Int64
	case "DOUBLE":
		return arrow.PrimitiveTypes.Float64
	case "BOOLEAN":
		return arrow.FixedWidthTypes.Boolean
	}
	field := func(e Element) arrow.Field { return arrow.Field{Name: e.Name, Type: e.arrow(), Nullable: true} }
	switch {
	case e.isList():
		return arrow.ListOfField(field(e.Children[0].Children[0]))
	case e.Physical == "" && e.Converted == "":
		var members []arrow.Field
		for _, child := range e.Children {
			members = append(members, field(child))
		}
		return arrow.StructOf(members...)
	}
	return nil
}

// isList reports whether an element is a list of three levels: the list, its
// repeated group, the nullable element.
// Source: Apache Parquet format, "Lists".
func (e Element) isList() bool {
	if e.Physical != "" || e.Converted != "LIST" || len(e.Children) != 1 {
		return false
	}
	repeated := e.Children[0]
	return repeated.Repetition == "REPEATED" && len(repeated.Children) == 1 && repeated.Children[0].Repetition == "OPTIONAL"
}

// at says where an error is from. group is from 0; -1 is the footer.
func (f *File) at(err *error, group int, column string) {
	if *err == nil {
		return
	}
	failed := f.in.failed.Load()
	if failed != nil {
		*err = *failed
	}
	*err = &Error{File: f.Name, Group: group + 1, Column: column, Err: *err, MayBeWhole: failed != nil}
}

// Contain turns a panic into an error. Defer it: the readers are third-party code, and a damaged
// file may make them panic.
func Contain(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the reader panicked: %.200v", p)
	}
}
