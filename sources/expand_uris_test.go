package sources

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
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
		got, err := names(expand(t.Context(), []string{c.pattern}, nil))
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
		got, err := names(expand(t.Context(), []string{c.uri}, nil))
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
			if got, err := names(expand(t.Context(), []string{pattern}, nil)); err == nil {
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

// names are the URIs of what was found.
func names(found []named, err error) (uris []string, _ error) {
	for _, n := range found {
		uris = append(uris, n.uri)
	}
	return uris, err
}
