package objects_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/objects"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ uri, want, folder, err string }{
		{"s3://b/k", "s3://b/k", "s3://b/k/", ""},
		{"S3://b/k/", "s3://b/k/", "s3://b/k/", ""},
		{"s3://b/a//b c%20.csv", "s3://b/a//b c%20.csv", "s3://b/a//b c%20.csv/", ""},
		{"s3://b", "s3://b/", "s3://b/", ""},
		{"s3://b//", "s3://b//", "s3://b/", ""},
		{"s3://", "", "", "s3://: names no bucket; write s3://bucket/key"},
		{"s3:///k", "", "", "s3:///k: names no bucket; write s3://bucket/key"},
		{"s3://*/k", "", "", "s3://*/k: a bucket's name is no pattern; name each bucket"},
		{"a.csv", "", "", "a.csv: no address of an object; write s3://bucket/key"},
	} {
		got, err := objects.Parse(c.uri)
		folder, folderErr := objects.ParseFolder(c.uri)
		if c.err != "" {
			if err == nil || err.Error() != c.err || folderErr == nil || folderErr.Error() != c.err {
				t.Errorf("%s: %v, %v, want %s", c.uri, err, folderErr, c.err)
			}
			continue
		}
		if err != nil || folderErr != nil || got.String() != c.want || folder.String() != c.folder {
			t.Errorf("%s: %s, %v and %s, %v; want %s and %s", c.uri, got, err, folder, folderErr, c.want, c.folder)
		}
	}
}

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{"lists/*.csv", []string{"lists/a.csv", "lists/.csv"}, []string{"lists/a/b.csv", "lists/a.csv.gz", "xlists/a.csv"}},
		{"lists/2026-*/**.csv.gz", []string{"lists/2026-11/a.csv.gz", "lists/2026-11/b/c.csv.gz"}, []string{"lists/2026-11", "lists/2025-11/a.csv.gz"}},
		{"a/**/b.csv", []string{"a/b.csv", "a/x/b.csv", "a/x/y/b.csv"}, []string{"a/xb.csv", "b.csv"}},
		{"**/b.csv", []string{"b.csv", "x/y/b.csv"}, []string{"xb.csv"}},
		{"a/**", []string{"a/b", "a/b/c"}, []string{"a", "ab"}},
		{"a?c", []string{"abc", "a.c"}, []string{"a/c", "ac"}},
		{"[a-c]x[^0-9]", []string{"axx", "cx-"}, []string{"dxx", "ax1"}},
		{"a.b+(c)", []string{"a.b+(c)"}, []string{"axb+(c)", "a.bb(c)"}},
		{`a\*b`, []string{"a*b"}, []string{"axb"}},
		{"line*", []string{"line\nbreak"}, nil},
	} {
		p, err := objects.Compile(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		for _, key := range c.yes {
			if !p.MatchString(key) {
				t.Errorf("%s does not match %q", c.pattern, key)
			}
		}
		for _, key := range c.no {
			if p.MatchString(key) {
				t.Errorf("%s matches %q", c.pattern, key)
			}
		}
	}
}

// Where a pattern has no **, it means what it means for local files.
func FuzzPattern(f *testing.F) {
	f.Add("a*b?[c-e]", "axxb.d")
	f.Add(`[^a]\*/*`, "b*/c")
	f.Add(`[]a]`, "a")
	f.Add(`[\]-a]`, "]")
	f.Fuzz(func(t *testing.T, pattern, key string) {
		if strings.Contains(pattern, "**") || strings.ToValidUTF8(pattern+key, "") != pattern+key {
			t.Skip()
		}
		want, wantErr := path.Match(pattern, key)
		got, err := objects.Compile(pattern)
		if (wantErr == nil) != (err == nil) {
			if _, malformed := path.Match(pattern, ""); malformed != nil || wantErr == nil {
				t.Fatalf("%q: %v, want %v", pattern, err, wantErr)
			}
			return
		}
		if err == nil && got.MatchString(key) != want {
			t.Errorf("%q, %q: %v, want %v (%s)", pattern, key, !want, want, got)
		}
	})
}

func TestFind(t *testing.T) {
	server, _, store := stores(t)
	for _, key := range []string{
		"lists/a.csv", "lists/b.txt", "lists/deep/c.csv", "lists/deep/er/d.csv", "lists/_SUCCESS", "lists/_rejects/e.csv", "lists/.hidden.csv", "lists/[odd].csv", "other.csv",
	} {
		name := filepath.Join(server.Dir, bucket, key)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("id\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		uri  string
		want []string
	}{
		{"s3://lists/lists/a.csv", []string{"lists/a.csv"}},
		{"s3://lists/lists/none.csv", []string{"lists/none.csv"}}, // opening it will say
		{"s3://lists/lists/", []string{"lists/[odd].csv", "lists/a.csv", "lists/b.txt", "lists/deep/c.csv", "lists/deep/er/d.csv"}},
		{"s3://lists/lists/*.csv", []string{"lists/.hidden.csv", "lists/[odd].csv", "lists/a.csv"}},
		{"s3://lists/lists/**.csv", []string{"lists/.hidden.csv", "lists/[odd].csv", "lists/_rejects/e.csv", "lists/a.csv", "lists/deep/c.csv", "lists/deep/er/d.csv"}},
		{"s3://lists/**/[cd].csv", []string{"lists/deep/c.csv", "lists/deep/er/d.csv"}},
		{"s3://lists/lists/[odd].csv", []string{"lists/[odd].csv"}},
		{"s3://lists/none/*", nil},
	} {
		found, err := store.Find(t.Context(), c.uri)
		var got []string
		for _, o := range found {
			got = append(got, o.Key)
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.uri, got, err, c.want)
		}
	}
}

// A listing goes on over its pages.
func TestListPages(t *testing.T) {
	server, proxy, store := stores(t)
	const n = 2345
	folder := filepath.Join(server.Dir, bucket, "many")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range n {
		name := fmt.Sprintf("%05d.csv", i)
		want = append(want, "many/"+name)
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := proxy.Seen()
	var got []string
	for o, err := range store.List(t.Context(), at("many/")) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, o.Key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d objects, want %d", len(got), n)
	}
	if pages := proxy.Seen() - before; pages != 3 {
		t.Errorf("%d requests", pages)
	}
	files, folders, err := store.ListFolder(t.Context(), at(""))
	if err != nil || len(files) != 0 || !slices.Equal(folders, []string{"many/"}) {
		t.Errorf("%v, %q, %v", files, folders, err)
	}
}
