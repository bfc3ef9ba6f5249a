package sinks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/leadetl/leadetl/internal/progress"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/sinks/lines"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/sinks/typed"
)

// Scan says which rows and columns of a dataset are read.
type Scan struct {
	Columns []Column
	where   []Column
	values  []string // of these
	// without are columns by which named tells rows that are left out.
	without []Column
	named   func(rows []arrow.Array, n int) []bool
	// LeftOut is how many rows were left out so.
	LeftOut int64
}

// Without leaves out the rows that named reports, of which it gets these columns. One goroutine calls it.
func (s *Scan) Without(columns []Column, named func(rows []arrow.Array, n int) []bool) {
	s.without, s.named = columns, named
}

// read are the columns that decide whether a row is taken.
func (s *Scan) read() []Column { return slices.Concat(s.where, s.without) }

// NewScan finds columns by their names, in any case, and by groups of them, as in schema.Select: all if none
// are selected, and those in the paths last. Rows have the text of each condition, COLUMN=VALUE; null is an
// empty text.
func (m *Manifest) NewScan(selected []string, conditions [][2]string) (*Scan, error) {
	all := m.AllColumns()
	if len(selected) == 0 {
		selected = []string{schema.All}
	}
	places, err := schema.Select(selected, m.groups(all), func(name string) (int, error) { return find(all, name) })
	if err != nil {
		return nil, err
	}
	s := &Scan{}
	for _, i := range places {
		s.Columns = append(s.Columns, all[i])
	}
	for _, condition := range conditions {
		i, err := find(all, condition[0])
		if err != nil {
			return nil, err
		}
		c := all[i]
		if strings.HasPrefix(c.Type, "LIST<") {
			return nil, fmt.Errorf("column %q has lists; --where compares columns with one value", c.Name)
		}
		s.where, s.values = append(s.where, c), append(s.values, condition[1])
	}
	return s, nil
}

// groups are the groups of columns. Constants in the paths are in schema.All alone.
func (m *Manifest) groups(all []Column) map[string][]int {
	groups, kept := map[string][]int{schema.All: nil, schema.Input: nil, schema.Answers: nil, schema.Flat: nil}, m.KeptFrom()
	for i, c := range all {
		groups[schema.All] = append(groups[schema.All], i)
		switch _, isInput := kept[c.Name]; {
		case isInput:
			groups[schema.Input] = append(groups[schema.Input], i)
		case i < len(m.Schema):
			groups[schema.Answers] = append(groups[schema.Answers], i)
			if !strings.HasPrefix(c.Type, "LIST<") {
				groups[schema.Flat] = append(groups[schema.Flat], i)
			}
		}
	}
	return groups
}

func find(all []Column, name string) (int, error) {
	i := slices.IndexFunc(all, func(c Column) bool { return strings.EqualFold(c.Name, name) })
	if i >= 0 {
		return i, nil
	}
	names := schema.Names(all)
	return 0, fmt.Errorf("there is no column %q%s; the columns are %s", name, suggest.Name(name, append(schema.Groups[:len(schema.Groups):len(schema.Groups)], names...)), strings.Join(names, ", "))
}

// CheckRows opens and closes the files of a scan: they are there, with the rows and types of the manifest.
func (m *Manifest) CheckRows(ctx context.Context, files Opener, s *Scan) error {
	for i := range m.Parts {
		for _, f := range m.Parts[i].Data() {
			if f.Rows == 0 {
				continue
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			d, err := m.OpenData(files, f, slices.Concat(s.Columns, s.read()))
			if err != nil {
				return err
			}
			if err := d.Opened.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Rows reads rows in the order of the parts. take gets some at a time, releases the arrays, which have
// the columns of the scan, and returns false to end. Memory does not grow with the dataset.
func (m *Manifest) Rows(ctx context.Context, files Opener, s *Scan, batch int, take func(rows []arrow.Array, n int) bool) error {
	s.LeftOut = 0
	for i := range m.Parts {
		for _, f := range m.Parts[i].Data() {
			if f.Rows == 0 {
				continue
			}
			if more, err := m.fileRows(ctx, files, f, s, batch, take); err != nil || !more {
				return err
			}
		}
	}
	return nil
}

func (m *Manifest) fileRows(ctx context.Context, files Opener, f File, s *Scan, batch int, take func([]arrow.Array, int) bool) (more bool, err error) {
	d, err := m.OpenData(files, f, slices.Concat(s.Columns, s.read()))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, d.Opened.Close()) }()
	work := progress.Of(ctx)
	for group := range d.Groups() {
		where, err := d.Columns(group, s.read())
		if err != nil {
			return false, err
		}
		columns, err := d.Columns(group, s.Columns)
		if err != nil {
			return false, err
		}
		for columns.Left() > 0 {
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			n := int(min(columns.Left(), int64(batch)))
			keep, err := s.selects(where, n)
			if err != nil {
				return false, err
			}
			rows, err := columns.Next(n, keep)
			if err != nil {
				return false, err
			}
			work.Done(int64(n))
			if keep != nil {
				n = len(keep)
			}
			if !take(rows, n) {
				return false, nil
			}
		}
	}
	return true, nil
}

// selects returns which of the next n rows fulfil the conditions; nil for all.
func (s *Scan) selects(where *typed.Columns, n int) (keep []int, err error) {
	if len(s.where) == 0 && s.named == nil {
		return nil, nil
	}
	columns, err := where.Next(n, nil)
	if err != nil {
		return nil, err
	}
	defer typed.Release(columns)
	named := make([]bool, n)
	if s.named != nil {
		named = s.named(columns[len(s.where):], n)
	}
	var text []byte
	keep = make([]int, 0, n)
rows:
	for row := range n {
		for i, c := range columns[:len(s.where)] {
			if text = lines.AppendText(text[:0], c, row); string(text) != s.values[i] {
				continue rows
			}
		}
		if named[row] {
			s.LeftOut++
			continue
		}
		keep = append(keep, row)
	}
	return keep, nil
}
