package directory

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
	"github.com/leadetl/leadetl/resolution"
)

// row is one data line of a source: the wanted columns in the wanted order,
// trimmed, empty where the source has no such column.
type row struct {
	line  int64
	cells []string // valid until the next row
	// bad says why the line is none; cells is empty then. spoiled is how many
	// lines went with it: an open quote swallows what follows.
	bad     string
	spoiled int64
}

// columns are what a kind reads: the required ones must be in the header, and
// of each group in either at least one.
type columns struct {
	names    []string
	required []string
	either   [][]string
}

// readTable hands the data lines of the CSV or Parquet file at path to each,
// in order, until one returns an error.
func readTable(ctx context.Context, path string, want columns, each func(row) error) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w", resolution.ErrInvalid, err)
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
	checked := func(r row) error {
		if rows++; rows%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		for i, cell := range r.cells {
			if !utf8.ValidString(cell) {
				return each(row{line: r.line, bad: want.names[i] + ": invalid_utf8", spoiled: 1})
			}
			r.cells[i] = strings.TrimSpace(cell)
		}
		return each(r)
	}
	if bytes.Equal(magic[:n], []byte("PAR1")) {
		return readParquet(ctx, f, want, checked)
	}
	return readCSV(f, want, checked)
}

// find maps the wanted columns to their places in a header, -1 for those that
// are not there. Names are compared without case and surrounding space.
func (c columns) find(header []string) ([]int, error) {
	place := map[string]int{}
	for i, name := range header {
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := place[name]; !twice {
			place[name] = i
		}
	}
	for _, name := range c.required {
		if _, ok := place[name]; !ok {
			return nil, noColumn(name, header)
		}
	}
	for _, group := range c.either {
		if !slices.ContainsFunc(group, func(name string) bool { _, ok := place[name]; return ok }) {
			return nil, noColumn(strings.Join(group, " or "), header)
		}
	}
	places := make([]int, len(c.names))
	for i, name := range c.names {
		places[i] = -1
		if p, ok := place[name]; ok {
			places[i] = p
		}
	}
	return places, nil
}

// noColumn says which columns there are, unless the first line is a row:
// personal data are in no error.
func noColumn(name string, header []string) error {
	if rows.AreData(header) {
		return fmt.Errorf("%w: no column %s; the first line looks like data: put a header line above it", resolution.ErrInvalid, name)
	}
	return fmt.Errorf("%w: no column %s; there are %s", resolution.ErrInvalid, name, strings.Join(header, ", "))
}

// list splits a cell at its semicolons; empty members are left out.
func list(cell string) []string {
	if cell == "" {
		return nil
	}
	var members []string
	for member := range strings.SplitSeq(cell, ";") {
		if member = strings.TrimSpace(member); member != "" {
			members = append(members, member)
		}
	}
	return members
}
