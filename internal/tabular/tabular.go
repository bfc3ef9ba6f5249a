// Package tabular reads named columns of a CSV or Parquet file as text, row by
// row, for imports of reference data.
package tabular

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/leadetl/leadetl/internal/rows"
)

// Row is one data line of a file: the wanted columns in the wanted order,
// trimmed, empty where the file has no such column.
type Row struct {
	// Line is the 1-based line of a CSV file, the data row of a Parquet file.
	Line  int64
	Cells []string // valid until the next row
	// Bad is the reason of a malformed line, "" for a good one. A malformed
	// line has no Cells. Spoiled is the number of lines lost with it: an open
	// quote swallows those that follow.
	Bad     string
	Spoiled int64
}

// Columns are the columns to read. The header must have the Required ones, and
// at least one of each group in Either.
type Columns struct {
	Names    []string
	Required []string
	Either   [][]string
}

// FileError says that the content of a file is wrong. Read returns errors of
// the disk as they are.
type FileError struct{ err error }

func (e *FileError) Error() string { return e.err.Error() }
func (e *FileError) Unwrap() error { return e.err }

func invalid(format string, args ...any) error { return &FileError{fmt.Errorf(format, args...)} }

// Read hands the data lines of the CSV or Parquet file at path to each, in
// order, until one returns an error.
func Read(ctx context.Context, path string, want Columns, each func(Row) error) error {
	f, err := os.Open(path)
	if err != nil {
		return invalid("%w", err)
	}
	defer f.Close()
	var magic [4]byte
	n, err := io.ReadFull(f, magic[:])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	rows := 0
	checked := func(r Row) error {
		if rows++; rows%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		for i, cell := range r.Cells {
			if !utf8.ValidString(cell) {
				return each(Row{Line: r.Line, Bad: want.Names[i] + ": invalid_utf8", Spoiled: 1})
			}
			r.Cells[i] = strings.TrimSpace(cell)
		}
		return each(r)
	}
	if bytes.Equal(magic[:n], []byte("PAR1")) {
		return readParquet(ctx, f, want, checked)
	}
	return readCSV(f, want, checked)
}

// find maps the wanted columns to their places in a header, -1 for a missing
// one. Names are compared without case and surrounding space.
func (c Columns) find(header []string) ([]int, error) {
	place := map[string]int{}
	for i, name := range header {
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := place[name]; !twice {
			place[name] = i
		}
	}
	for _, name := range c.Required {
		if _, ok := place[name]; !ok {
			return nil, noColumn(name, header)
		}
	}
	for _, group := range c.Either {
		if !slices.ContainsFunc(group, func(name string) bool { _, ok := place[name]; return ok }) {
			return nil, noColumn(strings.Join(group, " or "), header)
		}
	}
	places := make([]int, len(c.Names))
	for i, name := range c.Names {
		places[i] = -1
		if p, ok := place[name]; ok {
			places[i] = p
		}
	}
	return places, nil
}

// noColumn names the columns of the file, unless its first line is a row:
// errors never hold personal data.
func noColumn(name string, header []string) error {
	if rows.AreData(header) {
		return invalid("no column %s; the first line looks like data: put a header line above it", name)
	}
	return invalid("no column %s; there are %s", name, strings.Join(header, ", "))
}
