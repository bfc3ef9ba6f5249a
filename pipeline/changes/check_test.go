package changes

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCheckFinds checks changes against other datasets than they were made of.
func TestCheckFinds(t *testing.T) {
	const monday = "1 a matched - Oslo x 5\n2 b matched - Rome x 5\n3 c matched - Bern x 5"
	const tuesday = "1 a matched - Oslo x 5\n2 b matched - Bonn x 5\n4 d matched - Bern x 5" // b changed, c gone, d new
	for _, c := range []struct{ name, before, after, want string }{
		{"as they are", monday, tuesday, ""},
		{"a new row more", monday, tuesday + "\n5 e matched - Oslo x 5", missing},
		{"a row less", monday, strings.Replace(tuesday, "1 a matched - Oslo x 5\n", "", 1), missing},
		{"the added row is not there", monday, strings.Replace(tuesday, "\n4 d matched - Bern x 5", "", 1), unfounded},
		{"the added row was there", monday + "\n4 d matched - Bern x 5", tuesday, unfounded},
		{"the changed row is the same", monday, strings.Replace(tuesday, "Bonn", "Rome", 1), unfounded},
		{"it has another value", monday, strings.Replace(tuesday, "Bonn", "Nice", 1), unfounded},
		{"the removed row is there", monday, tuesday + "\n3 c matched - Bern x 5", unfounded},
		{"it had another value", strings.Replace(monday, "Bern", "Nice", 1), tuesday, unfounded},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			set := func(name, rows string) *Dataset { return dataset(t, filepath.Join(dir, name), name, 2, parse(rows)) }
			m := mustCompare(t, set("monday", monday), set("tuesday", tuesday), Settings{})
			before, after := dataset(t, filepath.Join(dir, "before"), "monday", 2, parse(c.before)), set("after", c.after)
			problems, err := Check(t.Context(), before, *after, reader(t, m.dir), m.Changes, dir)
			if want := strings.Fields(c.want); err != nil || len(want) == 0 != (len(problems) == 0) || len(want) > 0 && !slices.Contains(problems, c.want) {
				t.Errorf("%q, %v, want %q", problems, err, c.want)
			}
		})
	}
	dir := t.TempDir()
	before, after := dataset(t, filepath.Join(dir, "a"), "a", 2, parse(monday)), dataset(t, filepath.Join(dir, "b"), "b", 2, parse(tuesday))
	m := mustCompare(t, before, after, Settings{})
	m.Added, m.Removed = m.Added+1, m.Removed-1
	if problems, err := Check(t.Context(), before, *after, reader(t, m.dir), m.Changes, dir); err != nil || !slices.Equal(problems, []string{miscounted}) {
		t.Errorf("%q, %v", problems, err)
	}

	stranger := mustCompare(t, before, dataset(t, filepath.Join(dir, "c"), "c", 2, parse(tuesday)), Settings{Compare: []string{"credits"}})
	stranger.Compare = nil // its row hashes are of other values
	if problems, err := Check(t.Context(), before, *after, reader(t, stranger.dir), stranger.Changes, dir); err != nil || !slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, other) }) {
		t.Errorf("%q, %v", problems, err)
	}
}
