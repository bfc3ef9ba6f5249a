package sources

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRespell(t *testing.T) {
	folder(t, map[string]string{"a.csv": "id\n1\n", "b.csv": "id\n2\n", "c.csv": "id\n3\n"})
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("b.csv", "latest.csv"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name               string
		given, before, now string
	}{
		{"as before", "a.csv b.csv", "a.csv b.csv", "a.csv b.csv"},
		{"a dot in front", "./a.csv b.csv", "a.csv b.csv", "a.csv b.csv"},
		{"absolute", here + "/a.csv", "./a.csv", "./a.csv"},
		{"a way round", "../" + filepath.Base(here) + "/a.csv", here + "/a.csv", here + "/a.csv"},
		{"a link", "latest.csv", "b.csv", "b.csv"},
		{"behind a link", "b.csv", "latest.csv", "latest.csv"},
		{"in another order", "a.csv ./b.csv", "b.csv a.csv", "b.csv a.csv"},
		{"only another order", "a.csv b.csv", "b.csv a.csv", "b.csv a.csv"},
		{"another file", "a.csv", "b.csv", "a.csv"},
		{"a file that is gone", "a.csv", "gone.csv", "a.csv"},
		{"one of them another file", "./a.csv b.csv", "a.csv c.csv", "./a.csv b.csv"},
		{"one more", "./a.csv b.csv", "a.csv", "./a.csv b.csv"},
		{"an object of the name", "a.csv", "s3://bucket/a.csv", "a.csv"},
	} {
		l, err := Open(t.Context(), strings.Fields(c.given), Options{})
		if err != nil {
			t.Fatal(err)
		}
		l.Respell(strings.Fields(c.before))
		var names []string
		for _, f := range l.Files() {
			names = append(names, f.URI)
		}
		if !slices.Equal(names, strings.Fields(c.now)) {
			t.Errorf("%s: %q is %q after %q, want %q", c.name, c.given, names, c.before, c.now)
		}
		r, err := l.Reader([]string{"id"})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := r.Next(t.Context(), 0)
			if err != nil || b.Source != name {
				t.Fatalf("%s: %v, %v", c.name, b, err)
			}
			b.Release()
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
