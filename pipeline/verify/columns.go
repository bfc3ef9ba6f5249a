package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/sinks"
)

// schema compares the columns of the manifest with those of the operation: kept columns
// are text, and own ones in their order.
func (c *checker) schema() {
	columns := c.result.Manifest.Schema
	own, inputs := c.result.Manifest.Own(), c.result.Manifest.KeptFrom()
	if len(own) == 0 {
		c.found.report(Failure{File: sinks.ManifestName, Problem: "its schema has no column of the operation's own"})
		return
	}
	seen := map[string]bool{}
	for _, column := range columns {
		if folded := strings.ToLower(column.Name); seen[folded] {
			c.found.report(Failure{File: sinks.ManifestName, Column: column.Name, Problem: "two columns have this name, ignoring case"})
		} else {
			seen[folded] = true
		}
	}
	for _, p := range c.result.Manifest.PathColumns() {
		if seen[strings.ToLower(p.Name)] {
			c.found.report(Failure{File: sinks.ManifestName, Column: p.Name, Problem: "a partition has this name too, ignoring case"})
		}
	}
	for _, kept := range columns {
		if _, is := inputs[kept.Name]; is && (kept.Type != "STRING" || !kept.Nullable) {
			c.found.report(Failure{File: sinks.ManifestName, Column: kept.Name, Problem: "a column kept from the input must be a nullable STRING"})
		}
	}
	place := 0
	for _, column := range own {
		at := slices.IndexFunc(c.rules.Own[place:], func(r sinks.Column) bool { return r.Name == column.Name })
		if at < 0 {
			c.found.report(Failure{File: sinks.ManifestName, Column: column.Name, Problem: "the operation has no such column, or has it at another position"})
			continue
		}
		if want := c.rules.Own[place+at]; !want.Equal(column) {
			c.found.report(Failure{File: sinks.ManifestName, Column: column.Name, Problem: fmt.Sprintf("it is %s; it should be %s", column.Declaration(), want.Declaration())})
		}
		place += at + 1
	}
}

// differ describes how the columns of a file differ from the right ones; "" if they do
// not.
func differ(got, want []sinks.Column) (column, problem string) {
	for i := range max(len(got), len(want)) {
		switch {
		case i == len(got):
			return want[i].Name, "it is missing in the file"
		case i == len(want):
			return got[i].Name, "the file has this column; the manifest does not"
		case got[i].Name != want[i].Name:
			return want[i].Name, fmt.Sprintf("the file has another column at position %d", i+1)
		case !got[i].Equal(want[i]):
			return want[i].Name, fmt.Sprintf("it is %s in the file; the manifest says %s", got[i].Declaration(), want[i].Declaration())
		}
	}
	return "", ""
}
