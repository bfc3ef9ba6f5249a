package imports

import (
	"slices"
	"strings"

	"github.com/leadetl/leadetl/sources"
)

// Columns are the columns to read. A file must have the Required ones, and at least one of
// each group in Either.
type Columns struct {
	Names    []string
	Required []string
	Either   [][]string
}

// find returns the names of the wanted columns in a file, and the index of each of them,
// -1 for one that the file lacks. called are the names that differ from ours. Other names
// are compared without regard to case.
func (c Columns) find(file sources.File, called map[string]string) (names []string, places []int, err error) {
	find := func(column string) (name string, ok bool) {
		if name, ok := called[column]; ok {
			return name, true // the reader reports a missing column
		}
		if slices.Contains(file.Columns, column) {
			return column, true
		}
		i := slices.IndexFunc(file.Columns, func(name string) bool { return strings.EqualFold(name, column) })
		return column, i >= 0
	}
	missing := func(column string) bool {
		_, ok := find(column)
		return !ok
	}
	for _, column := range c.Names {
		name, ok := called[column]
		if ok && !slices.ContainsFunc(file.Columns, func(other string) bool { return strings.EqualFold(other, name) }) {
			return nil, nil, file.NoColumn("Name the column of the file that holds it: --map "+column+"=NAME", name)
		}
	}
	for _, column := range c.Required {
		if missing(column) {
			return nil, nil, noColumn(file, column)
		}
	}
	for _, group := range c.Either {
		if !slices.ContainsFunc(group, func(column string) bool { return !missing(column) }) {
			return nil, nil, noColumn(file, group...)
		}
	}
	for _, column := range c.Names {
		place := -1
		if name, ok := find(column); ok {
			place = len(names)
			names = append(names, name)
		}
		places = append(places, place)
	}
	return names, places, nil
}

func noColumn(file sources.File, columns ...string) error {
	return file.NoColumn("Name the column of the file that holds it: --map "+columns[0]+"=NAME", columns...)
}
