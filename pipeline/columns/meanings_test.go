package columns

import (
	"maps"
	"slices"
	"testing"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks/schema"
)

// TestEveryColumnHasAMeaning: none is left out, none is left over, and those
// that can be null say when.
func TestEveryColumnHasAMeaning(t *testing.T) {
	used := map[string]bool{}
	for _, op := range slices.Concat(resolution.SingleRecord, resolution.Keyword) {
		for _, c := range Every(op, nil, nil) {
			used[c.Name] = true
			_, known := meanings[c.Name]
			if _, contact := contactMeanings[c.Name]; known == contact {
				t.Errorf("%s of %s has no meaning, or two", c.Name, op)
			}
			m := c.Meaning
			if m.Text == "" || m.From == "" {
				t.Errorf("%s of %s: meaning %q, from %q", c.Name, op, m.Text, m.From)
			}
			if (m.Null == "") == c.Nullable {
				t.Errorf("%s of %s: nullable is %v, and it is null when %q", c.Name, op, c.Nullable, m.Null)
			}
		}
		for name := range meaningsOf[op] {
			if !slices.ContainsFunc(Every(op, nil, nil), func(c schema.Column) bool { return c.Name == name }) {
				t.Errorf("%s has no column %s", op, name)
			}
		}
	}
	for _, name := range slices.AppendSeq(slices.Collect(maps.Keys(meanings)), maps.Keys(contactMeanings)) {
		if !used[name] {
			t.Errorf("no operation has a column %s", name)
		}
	}
}

// TestEveryHasTheColumnsOfAnySettings: what settings leave out, they leave out
// of the same list.
func TestEveryHasTheColumnsOfAnySettings(t *testing.T) {
	for _, op := range slices.Concat(resolution.SingleRecord, resolution.Keyword) {
		for _, s := range []Settings{
			{Operation: op, Kept: []string{"id", "reason"}},
			{Operation: op, DropIdentifier: true, Remote: true},
			{Operation: op, HEMTypes: []string{"sha256"}},
		} {
			l, err := NewLayout(s)
			if err != nil {
				t.Fatal(err)
			}
			every := Every(op, nil, nil)
			for _, c := range l.Own() {
				at := slices.IndexFunc(every, func(e schema.Column) bool { return e.Name == c.Name })
				if at < 0 || every[at].Type != c.Type || every[at].Nullable != c.Nullable {
					t.Fatalf("%s of %+v is not, or not as it is or where it is, in Every", c.Name, s)
				}
				every = every[at+1:]
			}
		}
	}
}
