package glob

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOverlap(t *testing.T) {
	const part = "part-[0-9][0-9][0-9][0-9][0-9].parquet"
	for _, c := range []struct {
		a, b        string
		files, keys bool
	}{
		{"out/*.parquet", "out/" + part, true, true},
		{"out/*", "out/" + part, true, true},
		{"*/*", "out/" + part, true, true},
		{"*", "out/" + part, false, false},
		{"*.csv", part, false, false},
		{"out/part-?????.parquet", "out/" + part, true, true},
		{"out/part-0000[1-3].parquet", "out/" + part, true, true},
		{"out/part-0000[a-f].parquet", "out/" + part, false, false},
		{"out/part-[^a-z]*", "out/" + part, true, true},
		{"out/part-[^0-9]*", "out/" + part, false, false},
		{"out/part-*-c000.parquet", "out/" + part, false, false},
		{"**/*.parquet", part, true, true},
		{"**/*.parquet", "a/b/" + part, true, true},
		{"**/b/**/*.parquet", "a/b/" + part, true, true},
		{"**/b/**/*.parquet", "b/a/_rejects/" + part, true, true},
		{"**/c/*.parquet", "a/b/" + part, false, false},
		{"a/**", "a/b/" + part, true, true},
		{"a/**", "b/" + part, false, false},
		{"a**.parquet", "a/b/" + part, false, true},
		{"a**", "abc", true, true},
		{"lists**part*", "lists/x/" + part, false, true},
		{"data/country=DE/*", "data/country=*/" + part, true, true},
		{"data/*=D?/*", "data/country=*/" + part, true, true},
		{"data/city=*/*", "data/country=*/" + part, false, false},
		{`out\*/*`, `out\*/` + part, true, true},
		{`out\*/*`, "outx/" + part, false, false},
		{"{a,b}/*", "a/" + part, false, false},
		{"é*/?", "é/x", true, true},
	} {
		for _, pair := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			if got := overlap(pair[0], pair[1], false); got != c.files {
				t.Errorf("files: %q and %q overlap: %v", pair[0], pair[1], got)
			}
			if got := KeysOverlap(pair[0], pair[1]); got != c.keys {
				t.Errorf("keys: %q and %q overlap: %v", pair[0], pair[1], got)
			}
		}
	}
}

// FuzzOverlap: a name that two patterns match is one that they have in common.
func FuzzOverlap(f *testing.F) {
	f.Add("a/**/b*", "a/[a-c]*", "a/b")
	f.Add("**", "?", "x")
	f.Add("a**/c", "a/b/c", "a/b/c")
	f.Fuzz(func(t *testing.T, a, b, key string) {
		first, err := Keys(a)
		second, err2 := Keys(b)
		if err != nil || err2 != nil || !first(key) || !second(key) {
			return
		}
		for _, pair := range [][2]string{{a, b}, {b, a}, {a, Escape(key)}, {Escape(key), b}} {
			if !KeysOverlap(pair[0], pair[1]) {
				t.Errorf("%q and %q match %q, and do not overlap", pair[0], pair[1], key)
			}
		}
	})
}

// TestWouldFind: links, folders that are not there yet and spellings of one
// folder are what they are for Files, which is asked too.
func TestWouldFind(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, folder := range []string{"lists/2026/deep", "elsewhere/data", "other"} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "lists", "lists/out": "../elsewhere/data", "lists/2026/dead": "nowhere"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		pattern, folder string
		want            bool
	}{
		{"lists/*.parquet", "lists", true},
		{"lists/*.parquet", "lists/new", false},
		{"lists/*/*.parquet", "lists/new", true},
		{"./lists/../lists/*/*", "lists/new/", true},
		{filepath.Join(dir, "lists/**"), "lists/2026/new/er", true},
		{"lists/**/*.parquet", filepath.Join(dir, "lists"), true},
		{"lists/**/*.csv", "lists/new", false},
		{"link/**/*.parquet", "lists/new", true},
		{"lists/**/*.parquet", "link/new", true},
		{"li*k/**/*.parquet", "lists/new", true},
		{"lists/*/*.parquet", "elsewhere/data", true},
		{"lists/*/*/*.parquet", "elsewhere/data/new", true},
		{"lists/**/*.parquet", "elsewhere/data", false}, // not followed below **
		{"**/out/*.parquet", "elsewhere/data", true},
		{"**/*.parquet", "new", true},
		{"*/*.parquet", "new", true},
		{"other/**", "lists/new", false},
		{"lists/2026/d[e]ep/part-00001.parquet", "lists/2026/deep", true},
	} {
		got, err := WouldFind(c.pattern, c.folder, "part-[0-9][0-9][0-9][0-9][0-9].parquet")
		if got != c.want || err != nil {
			t.Errorf("%s, %s: %v, %v; want %v", c.pattern, c.folder, got, err, c.want)
		}
		_, missing := os.Stat(c.folder)
		if err := os.MkdirAll(c.folder, 0o755); err != nil {
			t.Fatal(err)
		}
		part := filepath.Join(c.folder, "part-00001.parquet")
		if err := os.WriteFile(part, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if found, err := Files(c.pattern); (len(found) > 0) != c.want || err != nil {
			t.Errorf("%s, %s: found %v, %v; want %v", c.pattern, c.folder, found, err, c.want)
		}
		os.Remove(part)
		if missing != nil {
			os.RemoveAll(c.folder)
		}
	}
}
