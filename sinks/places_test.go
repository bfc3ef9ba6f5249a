package sinks

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
)

// TestPlaces tells the life of a dataset, which is the same wherever it lies.
func TestPlaces(t *testing.T) {
	t.Run("folder", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "out")
		testPlace(t, dir, dir, Options{})
		parted := filepath.Join(t.TempDir(), "out")
		testPartedPlace(t, parted, parted, Options{})
	})
	t.Run("bucket", func(t *testing.T) {
		server := s3test.Start(t, "leads")
		s3test.Setenv(t)
		proxy := s3test.NewProxy(t, server) // at its end no connection is left
		o := Options{Objects: objects.New(t.Context(), objects.Options{Endpoint: proxy.URL, PathStyle: true, LateFor: time.Nanosecond}), State: disk.Dir(t.TempDir())}
		testPlace(t, "s3://leads/out", filepath.Join(server.Dir, "leads/out"), o)
		testPartedPlace(t, "s3://leads/parted", filepath.Join(server.Dir, "leads/parted"), o)
		if left := ls(t, o.State.Path(".")); len(left) > 0 {
			t.Errorf("left under the state folder: %q", left)
		}
	})
}

// testPlace works on a dataset whose files can be seen in a folder.
func testPlace(t *testing.T, uri, folder string, o Options) {
	open := func() *Dataset {
		t.Helper()
		d, err := Open(t.Context(), uri, o)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	there := func(want ...string) {
		t.Helper()
		if got := slices.DeleteFunc(ls(t, folder), func(n string) bool { return n == "_lock" }); !slices.Equal(got, want) {
			t.Errorf("there are %q, want %q", got, want)
		}
	}

	d := open()
	if empty, err := d.Empty(); !empty || err != nil {
		t.Errorf("Empty at the beginning: %v, %v", empty, err)
	}
	if m, err := d.Manifest(); m != nil || err != nil {
		t.Errorf("Manifest at the beginning: %v, %v", m, err)
	}
	if r, err := d.Report(); r != nil || err != nil {
		t.Errorf("Report at the beginning: %q, %v", r, err)
	}
	if _, err := Open(t.Context(), uri, o); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("a second Open: %v, want %v", err, filelock.ErrLocked)
	}

	// Parts are there when they are committed, and not before.
	first, second := partWithMore(t, d, 0, 100), partWithMore(t, d, 1, 50)
	aPart(t, d, 2, 10)
	w, err := d.PartFiles(3, everyKind, "")
	must(err)
	must(w.Finish())
	must(w.Abort())
	there("_asked/part-00000.parquet", "_asked/part-00001.parquet", "_rejects/part-00000.parquet", "_rejects/part-00001.parquet", "part-00000.parquet", "part-00001.parquet", "part-00002.parquet")
	for _, p := range []*Part{&first, &second} {
		must(d.Sum(t.Context(), []*File{&p.File, p.Rejects, p.Asked}))
		if len(p.SHA256) != 64 || p.ModifiedAt.IsZero() {
			t.Errorf("%+v", p.File)
		}
		must(d.CheckPart(*p))
	}
	if empty, err := d.Empty(); empty || err != nil {
		t.Errorf("Empty with parts: %v, %v", empty, err)
	}

	// What was changed since it was recorded is not published.
	m := &Manifest{Format: ManifestFormat, Parts: []Part{first, second}}
	m.Totals.Add(first.Totals)
	m.Totals.Add(second.Totals)
	for _, name := range []string{"part-00001.parquet", "_rejects/part-00001.parquet", "_asked/part-00000.parquet"} {
		path := filepath.Join(folder, name)
		data, err := os.ReadFile(path)
		must(err)
		for _, change := range []func() error{
			func() error { return os.Remove(path) },
			func() error { return replace(path, data[:20]) },
			func() error { return replace(path, slices.Concat(data[:10], []byte("xx"), data[12:])) },
		} {
			must(change())
			if err := d.Publish(m); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s was changed: %v, want %v", name, err, ErrCorrupt)
			}
			if m, err := d.Manifest(); m != nil || err != nil {
				t.Errorf("%s was changed: the manifest is %v, %v", name, m, err)
			}
			must(os.WriteFile(path, data, 0o644))
		}
	}

	// What is not of the manifest goes.
	must(d.WriteReport([]byte(`{"format":1}`), []byte("page")))
	must(d.Publish(m))
	whole := []string{"_SUCCESS", "_asked/part-00000.parquet", "_asked/part-00001.parquet", "_manifest.json", "_rejects/part-00000.parquet", "_rejects/part-00001.parquet", "_report.html", "_report.json", "part-00000.parquet", "part-00001.parquet"}
	there(whole...)
	must(d.Close())
	there(whole...)

	// A reader delays no writer, and changes nothing.
	d = open()
	if again, err := d.Manifest(); err != nil || !reflect.DeepEqual(again.Parts, m.Parts) {
		t.Errorf("%+v, %v; want %+v", again, err, m.Parts)
	}
	r, err := OpenReader(t.Context(), uri, o)
	must(err)
	if names, err := r.List(t.Context()); err != nil || !slices.Equal(slices.Sorted(slices.Values(names)), whole) {
		t.Errorf("List: %q, %v", names, err)
	}
	if text, err := r.ReadFile("_report.json"); string(text) != `{"format":1}` || err != nil {
		t.Errorf("ReadFile: %q, %v", text, err)
	}
	if _, err := r.ReadFile("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadFile of nothing: %v", err)
	}
	f, err := r.Open("part-00000.parquet")
	must(err)
	data, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size))
	if err != nil || f.Size != first.Bytes || string(data[:4]) != "PAR1" || string(data[len(data)-4:]) != "PAR1" {
		t.Errorf("Open: %d bytes, %v", len(data), err)
	}
	must(f.Close())
	must(d.Close())

	// What was changed by somebody else is found out, by its content if need be.
	path := filepath.Join(folder, "part-00000.parquet")
	for _, c := range []struct {
		name   string
		change func() error
		want   string // "" is as recorded
	}{
		{"written anew", func() error { return replace(path, data) }, ""},
		{"another content of the same size", func() error { return replace(path, slices.Concat(data[:10], []byte("xx"), data[12:])) }, "part-00000.parquet has another checksum"},
		{"another size", func() error { return replace(path, data[:20]) }, "part-00000.parquet has 20 bytes"},
		{"gone", func() error { return os.Remove(path) }, "part-00000.parquet is missing"},
	} {
		must(c.change())
		d = open()
		err := d.CheckPart(first)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		must(d.Close())
	}

	d = open()
	must(d.Withdraw())
	there("_asked/part-00000.parquet", "_asked/part-00001.parquet", "_rejects/part-00000.parquet", "_rejects/part-00001.parquet", "part-00001.parquet")
	if m, err := d.Manifest(); m != nil || err != nil {
		t.Errorf("Manifest after Withdraw: %v, %v", m, err)
	}
	must(d.Clear())
	if empty, err := d.Empty(); !empty || err != nil {
		t.Errorf("Empty after Clear: %v, %v", empty, err)
	}
	must(d.Close())

	// Files of two runs are never mixed.
	write(t, folder, "notes.txt", "deep/part-00000.parquet")
	if _, err := Open(t.Context(), uri, o); !errors.Is(err, ErrForeign) {
		t.Errorf("with foreign files: %v, want %v", err, ErrForeign)
	}
	there("deep/part-00000.parquet", "notes.txt")
}

// partWithMore is a part with a line that is no row, and with what a resolver said.
func partWithMore(t *testing.T, d *Dataset, number, rows int) Part {
	t.Helper()
	p := aPart(t, d, number, rows)
	beside := func(folder string) *File {
		w, err := d.Beside(folder)(number, everyKind)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(someRecord(1)); err != nil {
			t.Fatal(err)
		}
		f := commit(t, w)
		return &f
	}
	p.Rejects, p.Totals.Malformed = beside(RejectsFolder), 1
	p.Totals.CountReason("malformed", "ragged_row", 1)
	p.Asked = beside(AskedFolder)
	p.Totals.CountResolver("directory", ResolverTotals{Asked: 1})
	return p
}

// replace makes a new file of that name.
func replace(path string, data []byte) error {
	return errors.Join(os.Remove(path), os.WriteFile(path, data, 0o644))
}
