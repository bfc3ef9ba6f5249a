package columns_test

import (
	"slices"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/array"
	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks/schema"
)

// TestChosenColumns: a column is the same whichever others are written, and in any order.
func TestChosenColumns(t *testing.T) {
	for _, op := range slices.Concat(resolution.SingleRecord, resolution.Keyword) {
		all := columns.Settings{Operation: op, Kept: []string{"id"}, DefaultRegion: "US", Remote: true, HEMProfiles: everyProfile}
		whole, err := columns.NewLayout(all)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range whole.Own() {
			names = append(names, c.Name)
		}
		want := whole.NewBuilder().Record(sameRows(9))
		rapid.Check(t, func(t *rapid.T) {
			some := all
			some.Select = rapid.Permutation(append(names, "id")).Draw(t, "columns")[:rapid.IntRange(1, len(names)).Draw(t, "number")]
			layout, err := columns.NewLayout(some)
			if err != nil {
				t.Fatal(err)
			}
			builder := layout.NewBuilder()
			for range 2 { // a builder uses its memory again
				got := builder.Record(sameRows(9))
				if selected := layout.Selected(); selected != nil && !slices.Equal(selected[:len(some.Select)], some.Select) {
					t.Fatalf("%v were selected: %v", some.Select, selected)
				}
				for i, field := range got.Schema().Fields() {
					if place := want.Schema().FieldIndices(field.Name); len(place) != 1 || !array.Equal(got.Column(i), want.Column(place[0])) {
						t.Fatalf("%s of %s differs if the columns are %v", field.Name, op, some.Select)
					}
				}
				if int(got.NumCols()) != len(layout.Columns()) || !has(layout, "outcome") || !has(layout, "reason") {
					t.Fatalf("%d columns, want %v with outcome and reason", got.NumCols(), some.Select)
				}
			}
		})
	}
}

func has(l *columns.Layout, name string) bool {
	return slices.ContainsFunc(l.Own(), func(c schema.Column) bool { return c.Name == name })
}
