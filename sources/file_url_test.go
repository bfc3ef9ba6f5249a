package sources

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
)

func TestLocalPath(t *testing.T) {
	const refused = " is not a file URL of this machine. Write the path instead: /folder/file.csv"
	for _, c := range []struct{ uri, want, err string }{
		{"file:///in/a.csv", "/in/a.csv", ""},
		{"FILE:///in/a.csv", "/in/a.csv", ""},
		{"file://localhost/in/a.csv", "/in/a.csv", ""},
		{"file:///in/my%20list%C3%A9.csv", "/in/my list\u00e9.csv", ""},
		{"file:///in/a+b.csv", "/in/a+b.csv", ""},
		{"file:///in/*.csv", "/in/*.csv", ""},
		{"in/a.csv", "in/a.csv", ""},
		{"in/50%25.csv", "in/50%25.csv", ""}, // a path is taken as it is
		{"file:a.csv", "file:a.csv", ""},
		{"-", "-", ""},
		{"", "", ""},
		{"file://", "", "file://" + refused},
		{"file://a.csv", "", "file://a.csv" + refused},
		{"file://server/in/a.csv", "", "file://server/in/a.csv" + refused},
		{"file:///in/50%.csv", "", "file:///in/50%.csv" + refused},
		{"file:///in/a%00.csv", "", "file:///in/a%00.csv" + refused},
	} {
		got, err := localPath(c.uri)
		if got != c.want || errorText(err) != c.err {
			t.Errorf("%s: %q, %v; want %q, %s", c.uri, got, err, c.want, c.err)
		}
	}
}

func TestFileURL(t *testing.T) {
	folder(t, map[string]string{"my list.csv": "a\n1\n"})
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "my list.csv")
	uri := (&url.URL{Scheme: "file", Path: path}).String()
	got, err := rowsOf([]string{uri}, []string{"a"}, Options{})
	if want := path + ":1 1"; err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("%s: %q, %v; want %s", uri, got, err, want)
	}
	if _, err := rowsOf([]string{uri, path}, []string{"a"}, Options{}); err == nil {
		t.Error("a file and its URL were taken for two files")
	}
}
