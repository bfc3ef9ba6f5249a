package columns

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks/schema"
)

// Flat stands for all columns but lists, in Settings.Columns.
const Flat = "flat"

// inAll are the columns of all datasets: without them, a row without data says nothing.
var inAll = []string{"outcome", "reason"}

// usual returns the places of the columns that are written without Columns.
func (s Settings) usual(all []schema.Column) (places []int) {
	for i, c := range all {
		if !s.drops(c.Name) {
			places = append(places, i)
		}
	}
	return places
}

// chosen returns the places of the columns that are written, in the order in which they are.
func (s Settings) chosen(all []schema.Column) (places []int, err error) {
	switch {
	case s.Columns == nil:
		return s.usual(all), nil
	case slices.Equal(s.Columns, []string{Flat}):
		return slices.DeleteFunc(s.usual(all), func(i int) bool { return arrow.IsNested(all[i].Arrow.ID()) }), nil
	}
	names := slices.Clone(s.Columns)
	for _, name := range inAll {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(c schema.Column) bool { return c.Name == name })
		switch {
		case i < 0:
			return nil, s.notThere(name, all)
		case slices.Contains(places, i):
			return nil, fmt.Errorf("--columns names %q twice", name)
		case s.drops(name):
			return nil, fmt.Errorf("--columns names %q, which --drop-identifier leaves out", name)
		}
		places = append(places, i)
	}
	return places, nil
}

// drops reports whether a column is left out because it has the identifier.
func (s Settings) drops(column string) bool {
	if !s.DropIdentifier {
		return false
	}
	return column == "key" || column == "matched_keywords" ||
		column == string(resolution.NetworkURL) && s.Operation.Identifier() == resolution.NetworkURL
}

// notThere is the error of a name that is no column of the operation.
func (s Settings) notThere(name string, all []schema.Column) error {
	if slices.ContainsFunc(s.Kept, func(kept string) bool { return strings.EqualFold(kept, name) }) {
		return fmt.Errorf("--columns names %q, which is a column of the input; --keep names those, and they come first", name)
	}
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.Name
	}
	return fmt.Errorf("--columns names %q, which %s does not have with these flags%s; leadetl schema %s --dialect markdown lists its columns",
		name, s.Operation, cliflag.Suggest(name, names), s.Operation)
}
