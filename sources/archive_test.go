package sources

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"
)

// zipped makes an archive. change may be nil.
func zipped(t *testing.T, change func(*zip.FileHeader), files ...string) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		h := &zip.FileHeader{Name: files[i], Method: zip.Deflate}
		if change != nil {
			change(h)
		}
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = w.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var archives = Options{Archives: true}

// TestArchives: an archive is read as a folder of its files.
func TestArchives(t *testing.T) {
	long := "email\n" + strings.Repeat("somebody\n", 200_000)
	texts := map[string]string{
		"a.zip": zipped(t, nil, "b.csv", "id,email\n3,z\n", "a.csv.gz", gz("email\nx\ny\n"), "c/", "", "c/d.jsonl", `{"email":"w"}`+"\n", "__MACOSX/a.csv", "no list", ".hidden", "no list", "empty.csv", ""),
		"B.ZIP": zipped(t, func(h *zip.FileHeader) { h.Method = zip.Store }, "a.csv", "email\nv\n"),
		"c.csv": "email\nu\n",
	}
	want := []string{"B.ZIP/a.csv:1 v", "a.zip/a.csv.gz:1 x", "a.zip/a.csv.gz:2 y", "a.zip/b.csv:1 z", "a.zip/c/d.jsonl:1 w", "c.csv:1 u"}
	_, _, onStore := onS3(t, texts)
	onStore.Archives = true
	folder(t, texts)
	for _, c := range []struct {
		uris   []string
		prefix string
		o      Options
	}{
		{[]string{"a.zip", "B.ZIP", "c.csv"}, "", archives},
		{[]string{"*"}, "", archives},
		{[]string{"s3://lists/"}, "s3://lists/", onStore},
		{[]string{"s3://lists/a.zip", "s3://lists/B.ZIP", "s3://lists/c.csv"}, "s3://lists/", onStore},
	} {
		var prefixed []string
		for _, line := range want {
			prefixed = append(prefixed, c.prefix+line)
		}
		if got, err := rowsOf(c.uris, []string{"email"}, c.o); err != nil || !reflect.DeepEqual(got, prefixed) {
			t.Errorf("%v: %v, %v", c.uris, got, err)
		}
	}
	write(t, "long.zip", zipped(t, func(h *zip.FileHeader) { h.Method = zip.Store }, "long.csv", long))
	if got, err := rowsOf([]string{"long.zip"}, []string{"email"}, archives); err != nil || len(got) != 200_000 {
		t.Errorf("%d rows, %v", len(got), err)
	}
	if _, err := rowsOf([]string{"a.zip"}, []string{"email"}, Options{}); err == nil || !strings.Contains(err.Error(), "is a ZIP archive") {
		t.Errorf("read without Archives: %v", err)
	}
}

// TestArchivesRefused: an archive that cannot be read whole, or is made to do harm, is refused by name.
func TestArchivesRefused(t *testing.T) {
	const list = "email\nx\n"
	whole := zipped(t, func(h *zip.FileHeader) { h.Method = zip.Store }, "a.csv", list)
	var many []string
	for i := range maxEntries + 1 {
		many = append(many, fmt.Sprint(i), "")
	}
	named := func(name string) string { return zipped(t, nil, name, list) }
	for _, c := range []struct{ what, archive, want string }{
		{"above", named("../a.csv"), `a name that is not allowed: "../a.csv"`},
		{"above, hidden", named("_x/../../a.csv"), "a name that is not allowed"},
		{"absolute", named("/etc/a.csv"), "a name that is not allowed"},
		{"of Windows", named(`c\a.csv`), "a name that is not allowed"},
		{"a drive", named("c:a.csv"), "a name that is not allowed"},
		{"control", named("a\x1b[2J.csv"), "a name that is not allowed"},
		{"a link", zipped(t, func(h *zip.FileHeader) { h.SetMode(fs.ModeSymlink | 0o777) }, "a.csv", "/etc/passwd"), "is not a file: a.csv"},
		{"nested", named("a.zip"), "another archive inside: a.zip"},
		{"nested, renamed", zipped(t, nil, "a.csv", whole), "x.zip/a.csv is a ZIP archive"},
		{"twice", zipped(t, nil, "a.csv", list, "a.csv", list), "two entries of the same name: a.csv"},
		{"encrypted", strings.ReplaceAll(whole, "PK\x01\x02\x14\x00\x14\x00\x08", "PK\x01\x02\x14\x00\x14\x00\x09"), "an encrypted entry: a.csv"},
		{"bomb", zipped(t, nil, "a.csv", list+strings.Repeat("\n", 4<<20)), "unpacks to more than 200 times its size: a.csv"},
		{"many", zipped(t, nil, many...), "1001 entries, more than 1000"},
		{"empty", zipped(t, nil), "without files to read"},
		{"cut", whole[:len(whole)-9], "is not a whole ZIP archive"},
		{"no ZIP", list, "is not a whole ZIP archive"},
		{"nothing", "", "is not a whole ZIP archive"},
		{"damaged", strings.Replace(whole, list, "email\ny\n", 1), "x.zip/a.csv is damaged in its ZIP archive"},
		{"Parquet", zipped(t, nil, "a.parquet", "PAR1\x00\x00\x00\x00\x00"), "x.zip/a.parquet is Parquet"},
	} {
		folder(t, map[string]string{"x.zip": c.archive})
		if got, err := rowsOf([]string{"x.zip"}, []string{"email"}, archives); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", c.what, got, err, c.want)
		}
	}
	if _, err := rowsOf([]string{"missing.zip"}, []string{"email"}, archives); err == nil || !strings.Contains(err.Error(), "missing.zip does not exist") {
		t.Errorf("a missing archive: %v", err)
	}
}

// TestArchiveChanged: a list is not read from another archive than Open has found.
func TestArchiveChanged(t *testing.T) {
	folder(t, map[string]string{"x.zip": zipped(t, nil, "a.csv", "email\nx\n")})
	list, err := Open(t.Context(), []string{"x.zip"}, archives)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("x.zip", []byte(zipped(t, nil, "a.csv", "email\nanother\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := list.Reader([]string{"email"})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := reader.Next(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("read from a changed archive: %v", err)
	}
}
