package sources

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// A folder that cannot be read may hold files of the dataset: to go on
// without it would give a smaller one.
func TestExpandReportsFoldersItCannotRead(t *testing.T) {
	folder(t, map[string]string{"in/a/x.csv": "", "in/a/y.txt": "", "in/b/x.csv": "", "in/notes": "", "in/[c]/d/x.csv": ""})
	link := func(to, name string) {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	link("gone", "in/z")
	link("in/a", "to-a")
	link("round", "round") // nobody, root included, gets through this one
	link("../round", "in/round")
	const refused = " cannot be searched. Make it readable, or choose a pattern that leaves it out"
	for _, c := range []struct {
		pattern string
		want    []string
		err     string
	}{
		{"in/a/*.csv", []string{"in/a/x.csv"}, ""},
		{"in/[ab]/x.csv", []string{"in/a/x.csv", "in/b/x.csv"}, ""},
		{"in/[az]/x.csv", []string{"in/a/x.csv"}, ""}, // a link that leads nowhere
		{"in/[an]*/x.csv", []string{"in/a/x.csv"}, ""},
		{"in/[an]*/*.csv", []string{"in/a/x.csv"}, ""}, // a file in a folder's place
		{"./in//[ab]/x.*", []string{"in/a/x.csv", "in/b/x.csv"}, ""},
		{"in/**/d/x.csv", []string{"in/[c]/d/x.csv"}, ""},
		{"in/\\[c]/*/x.csv", []string{"in/[c]/d/x.csv"}, ""},
		{"in/[an]*/", nil, "in/[an]*/ matches no file. Check the pattern; put it in quotes if the shell changes it"},
		{"none/*.csv", nil, "none/*.csv matches no file. Check the pattern; put it in quotes if the shell changes it"},
		{"in/*/x.csv", nil, "in/round" + refused},
		{"in/*/*.csv", nil, "in/round" + refused},
		{"in/*/*/x.csv", nil, "in/round" + refused},
		{"in/*/**/x.csv", nil, "in/round" + refused},
		{"in/[abnz]*/**/x.csv", []string{"in/a/x.csv", "in/b/x.csv"}, ""},
		{"to-a/**/x.csv", []string{"to-a/x.csv"}, ""},
		{"**/x.csv", []string{"in/[c]/d/x.csv", "in/a/x.csv", "in/b/x.csv"}, ""}, // links below are not followed
		{"round/*.csv", nil, "round" + refused},
		{"round/**/*.csv", nil, "round" + refused},
		{"in/r*", []string{"in/round"}, ""}, // reading the file will say it
	} {
		got, err := namesOf(expand(t.Context(), []string{c.pattern}, nil))
		if text := errorText(err); text != c.err || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %q, %s\nwant %q, %s", c.pattern, got, text, c.want, c.err)
		}
		if format := new(FormatError); err != nil && !errors.As(err, &format) {
			t.Errorf("%s: %T is no FormatError", c.pattern, err)
		}
	}
}

// A folder stands for its files, as a prefix on S3 does.
func TestExpandFolders(t *testing.T) {
	folder(t, map[string]string{"in/b.csv": "", "in/a/z.parquet": "", "in/_SUCCESS": "", "in/.hidden/x.csv": "", "in/_rejects/x.csv": "",
		"in/c[1].csv": "", "in/a/deep/er/y.csv.gz": "", "markers/_SUCCESS": "", "markers/sub/.x": "", "odd/a.csv": "", "in/empty/_x": ""})
	for to, name := range map[string]string{"in": "link", "../in/b.csv": "odd/file.csv", "../in/a": "odd/folder"} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	all := []string{"in/a/deep/er/y.csv.gz", "in/a/z.parquet", "in/b.csv", "in/c[1].csv"}
	for _, c := range []struct {
		uri  string
		want []string
		err  string
	}{
		{"in", all, ""},
		{"in/", all, ""},
		{"./in", all, ""},
		{"link", []string{"link/a/deep/er/y.csv.gz", "link/a/z.parquet", "link/b.csv", "link/c[1].csv"}, ""},
		{"markers", nil, "markers is a folder without files to read. Names that begin with _ or . are not read"},
		{"odd", nil, "odd/folder is not a file. Remove it from the folder, or name the files to read"},
		{"gs://bucket/key", nil, "gs://bucket/key is not supported: an input is a local file or folder, s3://bucket/key, or - for standard input. Copy it to this machine or to S3 first"},
		{"https://host.example/a.csv", nil, "https://host.example/a.csv is not supported: an input is a local file or folder, s3://bucket/key, or - for standard input. Copy it to this machine or to S3 first"},
	} {
		got, err := namesOf(expand(t.Context(), []string{c.uri}, nil))
		if errorText(err) != c.err || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %q, %s\nwant %q, %s", c.uri, got, errorText(err), c.want, c.err)
		}
	}
}

func TestExpandNeedsPermission(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	folder(t, map[string]string{"in/a/x.csv": "", "in/b/c/x.csv": ""})
	for _, mode := range []os.FileMode{0, 0o444, 0o111} {
		shut := filepath.Join("in", "b")
		if err := os.Chmod(shut, mode); err != nil {
			t.Fatal(err)
		}
		for _, pattern := range []string{"in/*/*/x.csv", "in/**/x.csv"} {
			if got, err := namesOf(expand(t.Context(), []string{pattern}, nil)); err == nil {
				t.Errorf("%s with a folder of mode %o: %q without an error", pattern, mode, got)
			}
		}
		if err := os.Chmod(shut, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// namesOf are the URIs of what was found.
func namesOf(found []named, _ []string, err error) (uris []string, _ error) {
	for _, n := range found {
		uris = append(uris, n.uri)
	}
	return uris, err
}

// TestLeaveOut: a dataset below a folder or a ** is left out, and one that is
// named, or whose files are, is read.
func TestLeaveOut(t *testing.T) {
	const manifest = `{"format": 1, "program": "leadetl 1", "operation": "email_to_hem", "job_id": "x", "job": {}}`
	folder(t, map[string]string{
		"lists/a.csv": "", "lists/2026/b.csv": "",
		"lists/out/_manifest.json": manifest, "lists/out/part-00000.parquet": "", "lists/out/_rejects/part-00000.parquet": "",
		"lists/2026/by/_manifest.json": manifest, "lists/2026/by/dt=1/part-00000.parquet": "",
		"lists/other/_manifest.json": `{"files": ["c.csv"]}`, "lists/other/c.csv": "",
		"lists/odd/_manifest.json": `{"format": 1, "job_id": "x`, "lists/odd/d.csv": "",
		"only/out/_manifest.json": manifest, "only/out/part-00000.parquet": "",
	})
	dir := here(t)
	lists := []string{"lists/2026/b.csv", "lists/a.csv", "lists/odd/d.csv", "lists/other/c.csv"}
	both := []string{"lists/2026/by", "lists/out"}
	part, rejects := []string{"lists/out/part-00000.parquet"}, []string{"lists/out/_rejects/part-00000.parquet", "lists/out/part-00000.parquet"}
	for _, c := range []struct {
		uri           string
		want, leftOut []string
		err           string
	}{
		{"lists", lists, both, ""},
		{"./lists//", lists, both, ""},
		{"lists/**/*.csv", lists, nil, ""},
		{"lists/**/[a-dp]*", lists, both, ""},
		{"lis*/**/[a-dp]*", lists, both, ""},
		{"**/2026/**/[bp]*", lists[:1], both[:1], ""},
		{"lists/2026", lists[:1], both[:1], ""},
		{"lists/out", part, nil, ""},
		{"lists/out/**/*.parquet", rejects, nil, ""},
		{"lists/*/*.parquet", part, nil, ""},
		{"lists/out/part-00000.parquet", part, nil, ""},
		{"lists/2026/by/dt=1", []string{"lists/2026/by/dt=1/part-00000.parquet"}, nil, ""},
		{"lists/2026/by", []string{"lists/2026/by/dt=1/part-00000.parquet"}, nil, ""},
		{"only", nil, nil, "only has no files but those of datasets of leadetl, such as only/out, and these are left out. Name a dataset itself to read it"},
		{"only/**/*.parquet", nil, nil, "only/**/*.parquet has no files but those of datasets of leadetl, such as only/out, and these are left out. Name a dataset itself to read it"},
	} {
		found, leftOut, err := expand(t.Context(), []string{c.uri}, nil)
		got, err := namesOf(found, nil, err)
		if errorText(err) != c.err || !slices.Equal(got, c.want) || !slices.Equal(leftOut, c.leftOut) {
			t.Errorf("%s:\n got %q, left out %q, %v\nwant %q, left out %q, %s", c.uri, got, leftOut, err, c.want, c.leftOut, c.err)
		}
		if c.leftOut == nil {
			continue
		}
		found, leftOut, err = expand(t.Context(), []string{"file://" + filepath.Join(dir, c.uri)}, nil)
		if len(found) != len(c.want) || len(leftOut) != len(c.leftOut) || err != nil {
			t.Errorf("%s as a URL: got %v, left out %q, %v", c.uri, found, leftOut, err)
		}
	}
}

// TestEmptyFiles: in a folder, or of a pattern, they are lists without rows. One that
// is named itself, or is all there is, is an error.
func TestEmptyFiles(t *testing.T) {
	folder(t, map[string]string{"in/a.csv": "email\nx\n", "in/b.csv": "", "in/c/d.csv": "\n\r\n", "in/e.csv.gz": gz(""), "none/a.csv": "", "none/b.csv": ""})
	for _, c := range []struct {
		uri     string
		allowed bool
		files   int
		empty   []string
		err     string
	}{
		{"in", false, 1, []string{"in/b.csv", "in/c/d.csv", "in/e.csv.gz"}, ""},
		{"in/*.csv", false, 1, []string{"in/b.csv"}, ""},
		{"in/b.csv", false, 0, nil, "in/b.csv is empty: it has no header line. Write the names of the columns in its first line"},
		{"in/b.csv", true, 1, nil, ""},
		{"none/*", false, 0, nil, "none/a.csv is empty: it has no header line. Write the names of the columns in its first line"},
		{"none", true, 2, []string{"none/a.csv", "none/b.csv"}, ""},
		{"in", true, 1, []string{"in/b.csv", "in/c/d.csv", "in/e.csv.gz"}, ""},
	} {
		l, err := Open(t.Context(), []string{c.uri}, Options{AllowEmpty: c.allowed})
		if err != nil {
			if err.Error() != c.err {
				t.Errorf("%s: %v, want %s", c.uri, err, c.err)
			}
			continue
		}
		if files := l.Files(); len(files) != c.files || !slices.Equal(l.Empty(), c.empty) || c.err != "" {
			t.Errorf("%s: %v, empty %q; want %d files, empty %q, %s", c.uri, files, l.Empty(), c.files, c.empty, c.err)
		}
		l.Close()
	}
}

// TestWouldRead: what a run writes to a folder, and the URIs that would read it.
func TestWouldRead(t *testing.T) {
	folder(t, map[string]string{"lists/a.csv": "", "lists/out/b.csv": ""})
	dir := here(t)
	if err := os.Symlink("lists", "link"); err != nil {
		t.Fatal(err)
	}
	part, rejects, partition := "part-[0-9][0-9][0-9][0-9][0-9].parquet", "_rejects/part-[0-9][0-9][0-9][0-9][0-9].parquet", "*=*/part-[0-9][0-9][0-9][0-9][0-9].parquet"
	for _, c := range []struct {
		uri, place string
		names      []string
		want       bool
	}{
		{"lists", "lists/new", []string{part}, true},
		{"lists/", "./lists/out/", []string{part}, true},
		{"lists", "lists", []string{part}, true},
		{"lists", "lists/a/b=c", []string{partition}, true},
		{"lists", "lists/_new", []string{part}, false},
		{"lists", "lists/.a/new", []string{part}, false},
		{"lists", "new", []string{part}, false},
		{"lists", "lists2", []string{part}, false},
		{"lists/out", "lists", []string{part}, false},
		{".", "new", []string{part}, true},
		{"link", "lists/new", []string{part}, true},
		{"lists", "link/new", []string{part}, true},
		{"lists", dir + "/lists/new", []string{part}, true},
		{"file://" + dir + "/lists", "lists/new", []string{part}, true},
		{"file://" + dir + "/lists/**", "lists/new", []string{part}, true},
		{"lists/*", "lists/new", []string{part}, false},
		{"lists/*", "lists/new", []string{rejects}, false},
		{"lists/*/*/*", "lists/new", []string{part, rejects}, true},
		{"lists/*/*/*", "lists/new", []string{partition}, true},
		{"lists/*/dt=*/*.parquet", "lists/new", []string{part, rejects}, false},
		{"lists/**/*.csv", "lists/new", []string{part, rejects, partition}, false},
		{"lists/a.csv", "lists/new", []string{part}, false},
		{"-", ".", []string{part}, false},
		{"lists", "s3://lists/new/", []string{part}, false},
		{"s3://bucket/lists/", "lists/new", []string{part}, false},
		{"s3://bucket/lists/", "s3://bucket/lists/new", []string{part}, true},
		{"S3://bucket/lists/", "s3://bucket/lists", []string{part}, true},
		{"s3://bucket", "s3://bucket/lists/", []string{part}, true},
		{"s3://bucket/", "s3://bucket", []string{part}, true},
		{"s3://bucket/lists/", "s3://bucket/lists/_new", []string{part}, false},
		{"s3://bucket/lists/", "s3://other/lists/new", []string{part}, false},
		{"s3://bucket/lists/", "s3://bucket/lists2/", []string{part}, false},
		{"s3://bucket/lists", "s3://bucket/lists/new", []string{part}, false}, // one object
		{"s3://bucket/lists/*", "s3://bucket/lists/new", []string{part}, false},
		{"s3://bucket/lists/**", "s3://bucket/lists/new", []string{part}, true},
		{"s3://bucket/li**.parquet", "s3://bucket/lists/new/", []string{part}, true},
		{"s3://bucket/*/_rejects/*", "s3://bucket/lists", []string{part, rejects}, true},
		{"s3://bucket/*/*/p*", "s3://bucket/lists", []string{partition}, true},
		{"s3://bucket/**/*.csv", "s3://bucket/lists", []string{part, rejects, partition}, false},
	} {
		got, err := WouldRead(c.uri, c.place, c.names...)
		if got != c.want || err != nil {
			t.Errorf("%s, files in %s like %q: %v, %v", c.uri, c.place, c.names, got, err)
		}
	}
}

func here(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
