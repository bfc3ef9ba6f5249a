package sinks

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/parquet/file"

	"github.com/leadetl/leadetl/sinks/parquet"
)

// testPartedPlace tells the life of a dataset whose rows are parted by a
// column.
func testPartedPlace(t *testing.T, uri, dir string, o Options) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	there := func(want ...string) {
		t.Helper()
		if got := slices.DeleteFunc(ls(t, dir), func(n string) bool { return n == "_lock" }); !slices.Equal(got, want) {
			t.Errorf("there are %q, want %q", got, want)
		}
	}
	open := func() *Dataset {
		t.Helper()
		d, err := Open(t.Context(), uri, o)
		must(err)
		return d
	}
	part := func(d *Dataset, number int, folders ...string) Part {
		t.Helper()
		w, err := d.PartFiles(number, everyKind, "k=__HIVE_DEFAULT_PARTITION__")
		must(err)
		for _, folder := range folders {
			must(w.Write(folder, someRecord(5)))
		}
		must(w.Finish())
		sum, files, err := w.Commit()
		must(err)
		must(w.Abort())
		p := Part{File: sum, Files: files, Totals: Totals{Rows: sum.Rows, Matched: sum.Rows}}
		must(d.Sum(t.Context(), p.Unsummed()))
		if !p.Summed() {
			t.Errorf("%+v has no checksums", p)
		}
		return p
	}

	d := open()
	first := part(d, 0, "k=US", "k=a%2Fb", "k=US", "k=🍕")
	empty := part(d, 1)
	stale := part(d, 2, "k=US", "k=stale")
	if first.Name != "part-00000.parquet" || first.Rows != 20 || len(first.Files) != 3 || first.Files[0].Rows != 10 || first.Bytes != first.Files[0].Bytes+first.Files[1].Bytes+first.Files[2].Bytes {
		t.Errorf("%+v", first)
	}
	if len(empty.Files) != 1 || empty.Rows != 0 {
		t.Errorf("a part without rows: %+v", empty)
	}
	for _, p := range []Part{first, empty, stale} {
		must(d.CheckPart(p))
	}
	if empty, err := d.Empty(); empty || err != nil {
		t.Errorf("Empty with parts: %v, %v", empty, err)
	}
	// What is thrown away leaves no folder.
	w, err := d.PartFiles(3, everyKind, "k=__HIVE_DEFAULT_PARTITION__")
	must(err)
	must(w.Write("k=thrown", someRecord(5)))
	must(w.Abort())
	// Part 2 turns out to be none; the folder of another column is somebody else's.
	write(t, dir, "other=1/part-00000.parquet")
	must(d.Close())
	d = open()
	m := &Manifest{Format: ManifestFormat, PartitionBy: "k", Parts: []Part{first, empty}}
	m.Totals.Add(first.Totals)
	m.Totals.Add(empty.Totals)
	must(d.Publish(m))
	whole := []string{"_SUCCESS", "_manifest.json", "k=US/part-00000.parquet", "k=__HIVE_DEFAULT_PARTITION__/part-00001.parquet",
		"k=a%2Fb/part-00000.parquet", "k=🍕/part-00000.parquet", "other=1/part-00000.parquet"}
	there(whole...)
	folders, err := filepath.Glob(filepath.Join(dir, "*=*"))
	if err != nil || len(folders) != 5 {
		t.Errorf("folders %q, %v", folders, err)
	}
	must(d.Close())

	// The same by who only looks.
	r, err := OpenReader(t.Context(), uri, o)
	must(err)
	if names, err := r.List(t.Context()); err != nil || !slices.Equal(slices.Sorted(slices.Values(names)), whole) {
		t.Errorf("List: %q, %v", names, err)
	}
	// Each file of a part counts.
	must(os.Remove(filepath.Join(dir, "k=🍕/part-00000.parquet")))
	d = open()
	if err := d.CheckPart(first); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "k=🍕/part-00000.parquet is missing") {
		t.Errorf("CheckPart: %v", err)
	}
	must(d.Clear())
	there()
	must(d.Close())

	// Files of two runs are never mixed, nor are their folders of partitions.
	for _, name := range []string{"k=US/notes.txt", "k=US/deep/part-00000.parquet"} {
		write(t, dir, name)
		if _, err := Open(t.Context(), uri, o); !errors.Is(err, ErrForeign) {
			t.Errorf("with %s: %v, want %v", name, err, ErrForeign)
		}
		must(os.RemoveAll(filepath.Join(dir, "k=US")))
	}
}

// The open row groups of a part's files are together no larger than one: the
// largest ends, of several the one that was begun first.
func TestRowGroupsOfParts(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	spec := textTable
	fifth, tenth := textRecord(strings.Repeat("x", parquet.RowGroupBytes/5+300)), textRecord(strings.Repeat("x", parquet.RowGroupBytes/10-300))
	w, err := d.PartFiles(0, spec, "k=none")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{
		"k=a", "k=b", "k=b", "k=c", "k=a", // full, so a ends: b 2, c 1
		"k=c", "k=c", // full, so c ends: b 2
		"k=a", // b 2, a 1
	} {
		if err := w.Write(folder, fifth); err != nil {
			t.Fatal(err)
		}
		if w.pending >= parquet.RowGroupBytes {
			t.Errorf("%d bytes are pending", w.pending)
		}
	}
	if err := w.Write("k=d", tenth); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	_, files, err := w.Commit()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]int64{"k=a": {2, 1}, "k=b": {2}, "k=c": {3}, "k=d": {1}}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		r, err := file.NewParquetReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		var rows []int64
		for i := range r.NumRowGroups() {
			rows = append(rows, r.RowGroup(i).NumRows())
		}
		if folder := filepath.Dir(f.Name); !slices.Equal(rows, want[folder]) {
			t.Errorf("rows of row groups of %s: %v, want %v", folder, rows, want[folder])
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPartitionFolder(t *testing.T) {
	for _, c := range []struct {
		value, want string
		ok          bool
	}{
		{"US", "k=US", true},
		{"", "k=__HIVE_DEFAULT_PARTITION__", true},
		{"a/b:c%d e", "k=a%2Fb%3Ac%25d e", true},
		{"\x01..🍕", "k=%01..🍕", true},
		{strings.Repeat("x", 198), "k=" + strings.Repeat("x", 198), true},
		{strings.Repeat("x", 199), "k=" + strings.Repeat("x", 199), false},
	} {
		got, ok := PartitionFolder("k", c.value)
		if got != c.want || ok != c.ok || IsPartitionFolder("k", got) != c.ok {
			t.Errorf("%q: %q, %v, want %q", c.value, got, ok, c.want)
		}
	}
	for _, other := range []string{"k=", "k", "K=US", "j=US", "k=a%2fb", "k=%", "k=a:b", "k=%41", "part"} {
		if IsPartitionFolder("k", other) {
			t.Errorf("%q is no folder that is made", other)
		}
	}
}
