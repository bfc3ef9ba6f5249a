package columns

import (
	"slices"
	"testing"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks/schema"
)

// TestEveryColumnHasAMeaning: none is left out, none is there twice, and those
// that can be null say when.
func TestEveryColumnHasAMeaning(t *testing.T) {
	for _, op := range slices.Concat(resolution.SingleRecord, resolution.Keyword) {
		used := map[string]bool{}
		for _, c := range Every(op, nil, nil) {
			m := c.Meaning
			if m.Text == "" || m.From == "" || m == keptMeaning || used[c.Name] {
				t.Errorf("%s of %s: meaning %q, from %q", c.Name, op, m.Text, m.From)
			}
			if (m.Null == "") == c.Nullable {
				t.Errorf("%s of %s: nullable is %v, and it is null when %q", c.Name, op, c.Nullable, m.Null)
			}
			used[c.Name] = true
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
