// Package parquetfile reads the columns of a Parquet file as text.
//
// It reads a file one page at a time, so that memory does not depend on the
// size of its row groups. It checks the sizes that a file claims before it
// allocates memory for them.
package parquetfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go/format"

	"github.com/leadetl/leadetl/internal/rows"
)

// checkRows is after how many rows the context is checked.
const checkRows = 8192

// Input is an open file: *os.File is one.
type Input interface {
	io.ReaderAt
	io.Seeker
}

// Reader reads one file. It does not close its Input.
type Reader struct {
	name    string
	in      io.ReaderAt
	size    int64
	meta    *format.FileMetaData
	schema  *element
	memory  budget
	columns []string

	fields []*field // in the order of selection
	group  int      // the next row group
	left   int64    // rows left in the current row group
	row    int64    // rows already read
}

// Open reads the file's footer. Errors are *rows.FormatError, or errors of in.
func Open(name string, in Input) (r *Reader, err error) {
	r = &Reader{name: name, in: in}
	defer r.recover(&err)
	if r.size, err = in.Seek(0, io.SeekEnd); err != nil {
		return nil, err
	}
	if r.meta, err = readFooter(in, r.size); err != nil {
		return nil, r.unreadable(err)
	}
	root, leaves, err := schemaOf(r.meta.Schema)
	if err != nil {
		return nil, r.unreadable(err)
	}
	if err := checkCounts(r.meta, leaves); err != nil {
		return nil, r.unreadable(err)
	}
	r.schema = root
	for _, e := range root.children {
		r.columns = append(r.columns, e.Name)
	}
	return r, nil
}

// Columns returns the names of the file's top-level columns.
func (r *Reader) Columns() []string { return r.columns }

// IsText reports whether the values of a column are texts, and not numbers, times, lists and
// the like.
func (r *Reader) IsText(column int) bool {
	e := r.schema.children[column]
	_, isDecimal := e.decimal()
	return e.Type.Valid && e.Type.V == format.ByteArray && e.RepetitionType.V != format.Repeated && !isDecimal
}

// Rows is the number of rows in the file.
func (r *Reader) Rows() int64 { return r.meta.NumRows }

// Row returns the number of rows already read.
func (r *Reader) Row() int64 { return r.row }

// Group says where a row group begins.
type Group struct {
	Row    int64 // rows before it
	Offset int64 // stored bytes of the groups before it
}

// Groups returns the row groups of the file.
func (r *Reader) Groups() []Group {
	groups := make([]Group, len(r.meta.RowGroups))
	var at Group
	for i, g := range r.meta.RowGroups {
		groups[i] = at
		at.Row += g.NumRows
		for _, c := range g.Columns {
			at.Offset += c.MetaData.TotalCompressedSize
		}
	}
	return groups
}

// StartAt makes the Reader start at a row group. Call it before Fill.
func (r *Reader) StartAt(group int) error {
	if group == 0 {
		return nil
	}
	if group >= len(r.meta.RowGroups) {
		return r.unreadable(fmt.Errorf("it has no row group %d", group))
	}
	r.group, r.row = group, r.Groups()[group].Row
	return nil
}

// Select selects the columns that Fill stores, by their index in Columns, each
// once: column pick[n] goes to column n. Call it once, before Fill.
func (r *Reader) Select(ctx context.Context, pick []int) (err error) {
	defer r.recover(&err)
	shapes := geometries(r.meta)
	for _, i := range pick {
		if shapes[r.columns[i]] {
			return r.unreadable(fmt.Errorf("column %q: %w", r.columns[i], &unsupportedError{"type GEOMETRY"}))
		}
		f, err := newField(r.schema.children[i], &r.memory)
		if err != nil {
			return r.unreadable(fmt.Errorf("column %q: %w", r.columns[i], err))
		}
		r.fields = append(r.fields, f)
	}
	return nil
}

// Fill adds up to maxRows rows to b. It returns io.EOF at the end of the file;
// b may hold rows then too. It rejects a row with a text that is not UTF-8.
func (r *Reader) Fill(ctx context.Context, b *rows.Builder, maxRows int) (err error) {
	defer r.recover(&err)
	for b.Len() < maxRows && !b.Full() {
		for r.left == 0 {
			if err := r.nextGroup(ctx); err != nil {
				return err
			}
		}
		if r.row%checkRows == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		r.row++
		r.left--
		valid := true
		for column, f := range r.fields {
			before := b.Slot(column)
			after, present, err := f.appendNext(before)
			if err != nil {
				return r.unreadable(fmt.Errorf("column %q, row %d: %w", f.name, r.row, err))
			}
			if !present {
				b.AddNull(column)
				continue
			}
			b.SetSlot(column, after)
			valid = valid && utf8.Valid(after[len(before):])
		}
		if !valid {
			b.Rollback()
			b.Reject(rows.Reject{Source: r.name, Line: r.row, Row: r.row, Reason: rows.InvalidUTF8}, nil)
			continue
		}
		b.Commit(r.row, r.row)
	}
	return nil
}

// nextGroup starts the next row group.
func (r *Reader) nextGroup(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, f := range r.fields {
		if err := f.finish(); err != nil {
			return r.unreadable(fmt.Errorf("column %q: %w", f.name, err))
		}
	}
	if r.group == len(r.meta.RowGroups) {
		return io.EOF
	}
	group := &r.meta.RowGroups[r.group]
	r.group++
	r.left = group.NumRows
	if r.left == 0 {
		return nil
	}
	for _, f := range r.fields {
		if err := f.open(r.in, r.size, group); err != nil {
			return r.unreadable(fmt.Errorf("column %q: %w", f.name, err))
		}
	}
	return nil
}

// Close frees the decoders.
func (r *Reader) Close() (err error) {
	defer r.recover(&err)
	for _, f := range r.fields {
		f.close()
	}
	return nil
}

// recover turns a panic of the decoders, which a damaged file can cause, into
// an error. Other files can still be read.
func (r *Reader) recover(err *error) {
	if p := recover(); p != nil {
		cause, ok := p.(error)
		if !ok {
			cause = fmt.Errorf("%v", p)
		}
		*err = r.unreadable(cause)
	}
}

func (r *Reader) unreadable(err error) error {
	format := &rows.FormatError{File: r.name, Problem: "is damaged or not a complete Parquet file", Advice: "Copy or write it again", Err: err}
	var unsupported *unsupportedError
	switch {
	case errors.As(err, &unsupported):
		format.Problem, format.Advice = "cannot be read: "+err.Error(), "Write it again without it, or leave the column out"
	case errors.Is(err, errMemory):
		format.Problem, format.Advice = "cannot be read: "+err.Error(), "Write it again with pages of a few megabytes"
	case errors.Is(err, errTooLarge):
		format.Problem, format.Advice = "cannot be read: "+err.Error(), "Leave the column out, or shorten the value"
	case errors.Is(err, errInt96):
		format.Problem, format.Advice = "cannot be read: "+err.Error(), "Write the column again as TIMESTAMP, or leave it out"
	case errors.Is(err, errCounts):
		format.Problem, format.Advice = "is damaged: "+err.Error(), "Copy or write it again"
	}
	return format
}
