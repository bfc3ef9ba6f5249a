package sinks

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet/file"
	"go.uber.org/goleak"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/sinks/parquet"
	"github.com/leadetl/leadetl/sinks/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// write puts files with the text "text" in dir.
func write(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// ls lists the files under dir, slash-separated.
func ls(t *testing.T, dir string) []string {
	t.Helper()
	names := []string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func open(t *testing.T, dir string) *Dataset {
	t.Helper()
	d, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestOpenRefusesForeignFiles(t *testing.T) {
	for _, c := range []struct {
		name    string
		foreign bool
	}{
		{"part-00000.parquet", false},
		{"part-123456.parquet", false},
		{"_manifest.json", false},
		{"_SUCCESS", false},
		{"_rejects/part-00000.parquet", false},
		{".part-00000.parquet.tmp", false},
		{"._manifest.json.tmp", false},
		{"_rejects/.part-00003.parquet.tmp", false},
		{"_changes/part-00000.parquet", false},
		{"_changes/notes.txt", true},
		{"notes.txt", true},
		{".hidden", true},
		{".notes.tmp", true},
		{"..tmp", true},
		{"part-00000.csv", true},
		{"part-1.parquet", true},
		{"part-00000.parquet.bak", true},
		{"_rejects/notes.txt", true},
		{"_rejects/_manifest.json", true},
		{"_rejects/_SUCCESS", true},
		{"_rejects/deep/part-00000.parquet", true},
		{"folder/part-00000.parquet", true},
	} {
		dir := t.TempDir()
		write(t, dir, c.name)
		d, err := Open(t.Context(), dir, Options{})
		if got := errors.Is(err, ErrForeign); got != c.foreign {
			t.Errorf("%s: %v, want foreign %v", c.name, err, c.foreign)
		}
		if err == nil {
			d.Close()
		}
		if got := ls(t, dir); !slices.Equal(got, []string{c.name}) {
			t.Errorf("%s: the folder holds %q afterwards", c.name, got)
		}
	}
}

func TestOpenRefusesWhatIsNoFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "file")
	for _, out := range []string{filepath.Join(dir, "file"), "s3://bucket/prefix"} {
		if d, err := Open(t.Context(), out, Options{}); err == nil {
			d.Close()
			t.Errorf("%s opened", out)
		}
	}
	link := filepath.Join(dir, "out")
	if err := os.Mkdir(link, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "file"), filepath.Join(link, "part-00000.parquet")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), link, Options{}); !errors.Is(err, ErrForeign) {
		t.Errorf("a link in place of a part: %v, want ErrForeign", err)
	}
}

func TestOneAtATime(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("second Open: %v, want ErrLocked", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
}

func TestEmpty(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  bool
	}{
		{nil, true},
		{[]string{".part-00000.parquet.tmp", "_rejects/.part-00000.parquet.tmp"}, true},
		{[]string{"part-00000.parquet"}, false},
		{[]string{"_rejects/part-00000.parquet"}, false},
		{[]string{"_changes/part-00000.parquet"}, false},
		{[]string{"_manifest.json"}, false},
	} {
		dir := t.TempDir()
		write(t, dir, c.names...)
		if got, err := open(t, dir).Empty(); got != c.want || err != nil {
			t.Errorf("%q: %v, %v, want %v", c.names, got, err, c.want)
		}
	}
}

// A reader that waits for _SUCCESS, and one that reads the manifest, must not
// take what remains for a whole: those two go first.
func TestClear(t *testing.T) {
	names := []string{"part-00000.parquet", "_SUCCESS", "_rejects/part-00000.parquet", "_changes/part-00000.parquet", ".part-00001.parquet.tmp", "_manifest.json"}
	dir := t.TempDir()
	write(t, dir, names...)
	d := open(t, dir)
	if err := d.Clear(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	if err := d.Clear(); err != nil {
		t.Errorf("clear an empty folder: %v", err)
	}
	slices.SortStableFunc(names, func(a, b string) int { return clearRank(a) - clearRank(b) })
	if names[0] != "_SUCCESS" || names[1] != "_manifest.json" {
		t.Errorf("order %q", names)
	}
}

func TestClearTouchesNothingForeign(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "_SUCCESS", "part-00000.parquet")
	d := open(t, dir)
	write(t, dir, "notes.txt") // came later
	before := ls(t, dir)
	if err := d.Clear(); !errors.Is(err, ErrForeign) {
		t.Errorf("%v, want ErrForeign", err)
	}
	if got := ls(t, dir); !slices.Equal(got, before) {
		t.Errorf("left %q of %q", got, before)
	}
}

// commit ends a file.
func commit(t *testing.T, w *Writer) File {
	t.Helper()
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	f, err := w.Commit()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Errorf("abort after commit: %v", err)
	}
	return f
}

// commitPart ends a part of one file.
func commitPart(t *testing.T, w *PartFiles) File {
	t.Helper()
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	f, _, err := w.Commit()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Abort(); err != nil {
		t.Errorf("abort after commit: %v", err)
	}
	return f
}

// aPart writes part number of some rows, without its checksum.
func aPart(t *testing.T, d *Dataset, number, rows int) Part {
	t.Helper()
	w, err := d.PartFiles(number, everyKind, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write("", someRecord(rows)); err != nil {
		t.Fatal(err)
	}
	f := commitPart(t, w)
	return Part{File: f, Totals: Totals{Rows: int64(rows), Matched: int64(rows)}}
}

func TestWriter(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	p := aPart(t, d, 12, 30)
	data, err := os.ReadFile(filepath.Join(dir, "part-00012.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "part-00012.parquet" || p.Rows != 30 || p.Bytes != int64(len(data)) {
		t.Errorf("%+v of a file of %d bytes", p.File, len(data))
	}
	var want bytes.Buffer
	e, err := parquet.NewEncoder(&want, everyKind, &parquet.PagePool{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Add(someRecord(30), func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil || !bytes.Equal(data, want.Bytes()) {
		t.Errorf("the file is not what the encoder writes, %v", err)
	}

	w, err := d.Beside(RejectsFolder)(3, everyKind)
	if err != nil {
		t.Fatal(err)
	}
	if got := ls(t, dir); !slices.Equal(got, []string{"_rejects/.part-00003.parquet.tmp", "part-00012.parquet"}) {
		t.Errorf("files while writing: %q", got)
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if got := ls(t, dir); !slices.Equal(got, []string{"part-00012.parquet"}) {
		t.Errorf("files after abort: %q", got)
	}
}

// TestAnyRecords: where row groups end, and every byte, follow from the rows, however they
// come in records.
func TestAnyRecords(t *testing.T) {
	words := Table{Columns: []Column{schema.New("words", arrow.ListOfNonNullable(arrow.BinaryTypes.String), true), schema.New("yes", arrow.FixedWidthTypes.Boolean, true)}, Compression: Snappy}
	wide := Table{Compression: Snappy}
	for i := range 1280 {
		wide.Columns = append(wide.Columns, schema.Text(fmt.Sprint("column", i)))
	}
	for _, c := range []struct {
		name  string
		table Table
		value string
		rows  int
		want  []int64
	}{
		{"many columns", wide, strings.Repeat("x", 996), 40, []int64{34, 6}}, // 1.28 MB a row
		{"many rows", textTable, "a", 2*parquet.RowGroupRows + 7, []int64{parquet.RowGroupRows, parquet.RowGroupRows, 7}},
		{"large rows", textTable, strings.Repeat("x", 1<<20), 170, []int64{160, 10}},
		{"lists", words, strings.Repeat("x", 200), parquet.RowGroupRows + 7, []int64{parquet.RowGroupRows, 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := sameRows(c.table, c.value, c.rows)
			var first []byte
			for _, most := range []int64{1, 977, int64(c.rows)} {
				dir := t.TempDir()
				d := open(t, dir)
				w, err := d.PartFiles(0, c.table, "")
				if err != nil {
					t.Fatal(err)
				}
				random := rand.New(rand.NewPCG(1, uint64(most)))
				for from := int64(0); from < all.NumRows(); {
					to := min(from+1+random.Int64N(most), all.NumRows())
					if err := w.Write("", all.NewSlice(from, to)); err != nil {
						t.Fatal(err)
					}
					from = to
				}
				commitPart(t, w)
				data, err := os.ReadFile(filepath.Join(dir, "part-00000.parquet"))
				if err != nil {
					t.Fatal(err)
				}
				if got := rowGroupsOf(t, data); !slices.Equal(got, c.want) {
					t.Errorf("row groups of %v rows, want %v", got, c.want)
				}
				if first == nil {
					first = data
				}
				if !bytes.Equal(first, data) {
					t.Errorf("records of up to %d rows give other bytes", most)
				}
			}
		})
	}
}

// sameRows is a record of rows that are all the same, of texts, lists of them and booleans.
func sameRows(table Table, value string, rows int) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, table.Schema())
	for range rows {
		for i := range table.Columns {
			switch column := b.Field(i).(type) {
			case *array.StringBuilder:
				column.Append(value)
			case *array.BooleanBuilder:
				column.Append(true)
			case *array.ListBuilder:
				column.Append(true)
				column.ValueBuilder().(*array.StringBuilder).AppendValues([]string{value, "and"}, nil)
			}
		}
	}
	return b.NewRecord()
}

// rowGroupsOf are the rows of the row groups of a file.
func rowGroupsOf(t *testing.T, data []byte) (rows []int64) {
	t.Helper()
	f, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range f.NumRowGroups() {
		rows = append(rows, f.RowGroup(i).NumRows())
	}
	return rows
}

// A row group ends with the row that fills it.
func TestRowGroups(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	spec := textTable
	rec := textRecord(strings.Repeat("x", parquet.RowGroupBytes/4+100))
	w, err := d.PartFiles(0, spec, "")
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		if err := w.Write("", rec); err != nil {
			t.Fatal(err)
		}
	}
	commitPart(t, w)
	data, err := os.ReadFile(filepath.Join(dir, "part-00000.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if rows := rowGroupsOf(t, data); !slices.Equal(rows, []int64{4, 2}) {
		t.Errorf("rows of row groups %v, want 4 and 2", rows)
	}
}

func TestSum(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	var parts []Part
	var files []*File
	var sums []string // taken while the files were written, on some CPUs
	for i := range SumLanes + 3 {
		parts = append(parts, aPart(t, d, i, i))
	}
	for i := range parts {
		files = append(files, &parts[i].File)
		sums = append(sums, parts[i].SHA256)
		parts[i].SHA256 = ""
	}
	if err := d.Sum(t.Context(), files); err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		want := sha256.Sum256(data)
		if f.SHA256 != hex.EncodeToString(want[:]) {
			t.Errorf("%s: %s, want %x", f.Name, f.SHA256, want)
		}
		if sums[i] != "" && sums[i] != f.SHA256 {
			t.Errorf("%s: %s while it was written, want %x", f.Name, sums[i], want)
		}
	}
	if err := d.Sum(t.Context(), nil); err != nil {
		t.Errorf("of no file: %v", err)
	}
	if err := d.Sum(t.Context(), []*File{{Name: "part-99999.parquet"}}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("of a missing file: %v", err)
	}
}

// TestComparison: what a killed process leaves is known as such, and only what is whole is finished.
func TestComparison(t *testing.T) {
	d := open(t, t.TempDir())
	want := &Comparison{Of: "new", Changes: Changes{ChangeCounts: ChangeCounts{Since: "old"}, By: "key"}}
	is := func(when string, unfinished, finished bool) {
		t.Helper()
		c, ended, err := (Compared{d}).Comparison()
		if err != nil || (c != nil) != (unfinished || finished) || ended != finished {
			t.Errorf("%s: %+v, %v, %v", when, c, ended, err)
		}
		if c != nil && !c.IsOf(want) {
			t.Errorf("%s: it is of another one: %+v", when, c)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	is("at first", false, false)
	must((Compared{d}).Begin(want))
	is("begun", true, false)
	w, err := d.Beside("")(0, everyKind)
	must(err)
	want.Files = []File{commit(t, w)}
	is("killed", true, false)
	whole := want.Files
	want.Files = append(whole, File{Name: "part-00001.parquet"})
	if err := (Compared{d}).End(want); !errors.Is(err, ErrCorrupt) {
		t.Errorf("without a file: %v", err)
	}
	is("without a file", true, false)
	want.Files = whole
	must((Compared{d}).End(want))
	is("ended", false, true)
	for name, other := range map[string]Comparison{"of another dataset": {Of: "newer"}, "made again": {Of: "new", OfAt: time.Now()}} {
		if other.Changes = want.Changes; want.IsOf(&other) {
			t.Errorf("%s: it is the same one", name)
		}
	}
	must((Compared{d}).Begin(want))
	is("begun again", true, false)
}

func TestCheck(t *testing.T) {
	flip := func(t *testing.T, path string) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)/2] ^= 1
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	at := func(when time.Time) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			if err := os.Chtimes(path, when, when); err != nil {
				t.Fatal(err)
			}
		}
	}
	later := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, c := range []struct {
		name    string
		summed  bool
		damage  func(t *testing.T, path string)
		corrupt bool
	}{
		{"untouched", true, func(*testing.T, string) {}, false},
		{"untouched, no checksum", false, func(*testing.T, string) {}, false},
		{"touched", true, at(later), false},
		{"touched, no checksum", false, at(later), true},
		{"a bit flipped", true, func(t *testing.T, path string) { flip(t, path); at(later)(t, path) }, true},
		{"gone", true, func(t *testing.T, path string) { os.Remove(path) }, true},
		{"cut short", true, func(t *testing.T, path string) { os.Truncate(path, 100) }, true},
		{"empty", true, func(t *testing.T, path string) { os.Truncate(path, 0) }, true},
	} {
		dir := t.TempDir()
		d := open(t, dir)
		p := aPart(t, d, 0, 10)
		rejects := aPart(t, d, 1, 10).File
		p.Rejects = &rejects
		if c.summed {
			if err := d.Sum(t.Context(), []*File{&p.File, p.Rejects}); err != nil {
				t.Fatal(err)
			}
		} else {
			p.SHA256, rejects.SHA256 = "", ""
		}
		for _, name := range []string{p.Name, rejects.Name} {
			whole, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			c.damage(t, filepath.Join(dir, name))
			if err := d.CheckPart(p); errors.Is(err, ErrCorrupt) != c.corrupt || err != nil && !c.corrupt {
				t.Errorf("%s %s: %v, want corrupt %v", name, c.name, err, c.corrupt)
			}
			if err := os.WriteFile(filepath.Join(dir, name), whole, 0o644); err != nil {
				t.Fatal(err)
			}
			for _, f := range []File{p.File, rejects} {
				at(f.ModifiedAt)(t, filepath.Join(dir, f.Name))
			}
		}
	}
}

// A manifest goes through JSON and still knows its files.
func TestManifestOfFiles(t *testing.T) {
	d := open(t, t.TempDir())
	p := aPart(t, d, 0, 10)
	if err := d.Publish(&Manifest{Format: ManifestFormat, Totals: p.Totals, Parts: []Part{p}, Job: json.RawMessage(`{"a":1}`)}); err != nil {
		t.Fatal(err)
	}
	m, err := d.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if !m.Parts[0].ModifiedAt.Equal(p.ModifiedAt) {
		t.Errorf("modified %v, recorded %v", p.ModifiedAt, m.Parts[0].ModifiedAt)
	}
	if err := d.CheckPart(m.Parts[0]); err != nil {
		t.Error(err)
	}
}

func TestPublish(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	p := aPart(t, d, 0, 10)
	write(t, dir, "part-00001.parquet", "_rejects/part-00000.parquet", ".part-00002.parquet.tmp", "_rejects/.part-00000.parquet.tmp")

	if m, err := d.Manifest(); m != nil || err != nil {
		t.Errorf("manifest before: %v, %v", m, err)
	}
	wrong := &Manifest{Totals: Totals{Rows: 11, Matched: 11}, Parts: []Part{p}}
	if err := d.Publish(wrong); err == nil {
		t.Error("wrong totals published")
	}
	if slices.Contains(ls(t, dir), "_SUCCESS") || !slices.Contains(ls(t, dir), "part-00001.parquet") {
		t.Errorf("wrong totals left %q", ls(t, dir))
	}
	if err := d.Publish(&Manifest{Format: ManifestFormat, JobID: "job", Totals: p.Totals, Parts: []Part{p}}); err != nil {
		t.Fatal(err)
	}
	if got, want := ls(t, dir), []string{"_SUCCESS", "_manifest.json", "part-00000.parquet"}; !slices.Equal(got, want) {
		t.Errorf("published %q, want %q", got, want)
	}
	if m, err := d.Manifest(); err != nil || m.JobID != "job" {
		t.Errorf("manifest %+v, %v", m, err)
	}

	if err := d.Withdraw(); err != nil {
		t.Fatal(err)
	}
	if got, want := ls(t, dir), []string{"part-00000.parquet"}; !slices.Equal(got, want) {
		t.Errorf("withdrawn: %q, want %q", got, want)
	}
	if err := d.Withdraw(); err != nil {
		t.Errorf("withdraw again: %v", err)
	}
}

// A manifest without _SUCCESS is of a dataset that is being made or unmade.
func TestManifestNeedsSuccess(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	for _, c := range []struct {
		files map[string]string
		fails bool
	}{
		{map[string]string{"_manifest.json": `{}`}, false},
		{map[string]string{"_SUCCESS": ``, "_manifest.json": `{`}, true},
		{map[string]string{"_SUCCESS": ``}, true},
	} {
		if err := d.Clear(); err != nil {
			t.Fatal(err)
		}
		for name, content := range c.files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if m, err := d.Manifest(); m != nil || (err != nil) != c.fails {
			t.Errorf("%v: %v, %v", slices.Sorted(maps.Keys(c.files)), m, err)
		}
	}
}

func TestReconcile(t *testing.T) {
	reasons := func() map[string]map[string]int64 {
		return map[string]map[string]int64{"rejected": {"empty": 1}, "no_match": {"not_found": 2}, "malformed": {"ragged_row": 4}}
	}
	resolvers := func() map[string]ResolverTotals {
		return map[string]ResolverTotals{"a": {Asked: 2, Matched: 1, Credits: 3, Added: 2}, "b": {Asked: 1}}
	}
	whole := func() *Manifest {
		m := &Manifest{Totals: Totals{Rows: 9, Matched: 6, NoMatch: 2, Rejected: 1, Malformed: 4, Reasons: reasons(), Resolvers: resolvers()}}
		m.Changes = &Changes{ChangeCounts: ChangeCounts{Added: 3, Changed: 2, Removed: 1}, Files: []File{{Rows: 4}, {Rows: 2}}}
		m.Parts = []Part{
			{File: File{Name: "part-00000.parquet", Rows: 5}, Totals: Totals{Rows: 5, Matched: 5}},
			{
				File: File{Name: "part-00001.parquet", Rows: 4}, Rejects: &File{Rows: 4}, Asked: &File{Rows: 3},
				Totals: Totals{Rows: 4, Matched: 1, NoMatch: 2, Rejected: 1, Malformed: 4, Reasons: reasons(), Resolvers: resolvers()},
			},
		}
		return m
	}
	if err := whole().Reconcile(); err != nil {
		t.Fatal(err)
	}
	if err := new(Manifest).Reconcile(); err != nil {
		t.Errorf("no parts: %v", err)
	}
	counts := map[string]func(*Totals) *int64{
		"rows":       func(t *Totals) *int64 { return &t.Rows },
		"matched":    func(t *Totals) *int64 { return &t.Matched },
		"no_match":   func(t *Totals) *int64 { return &t.NoMatch },
		"rejected":   func(t *Totals) *int64 { return &t.Rejected },
		"failed":     func(t *Totals) *int64 { return &t.Failed },
		"suppressed": func(t *Totals) *int64 { return &t.Suppressed },
		"skipped":    func(t *Totals) *int64 { return &t.Skipped },
		"malformed":  func(t *Totals) *int64 { return &t.Malformed },
		"searches":   func(t *Totals) *int64 { return &t.Searches },
	}
	changes := map[string]func(*Manifest){
		"rows of a file":          func(m *Manifest) { m.Parts[1].Rows++ },
		"rows of rejects":         func(m *Manifest) { m.Parts[1].Rejects.Rows-- },
		"rejects without a count": func(m *Manifest) { m.Parts[0].Rejects = &File{Rows: 1} },
		"a count without rejects": func(m *Manifest) { m.Parts[1].Rejects = nil },
		"rows of answers":         func(m *Manifest) { m.Parts[1].Asked.Rows-- },
		"a count without answers": func(m *Manifest) { m.Parts[1].Asked = nil },
		"answers without a count": func(m *Manifest) { m.Parts[0].Asked = &File{Rows: 1} },
		"credits of a resolver":   func(m *Manifest) { m.Totals.CountResolver("b", ResolverTotals{Credits: 1}) },
		"a part missing":          func(m *Manifest) { m.Parts = m.Parts[:1] },
		"a part twice":            func(m *Manifest) { m.Parts = append(m.Parts, m.Parts[0]) },
		"one outcome for another": func(m *Manifest) { m.Totals.Matched--; m.Totals.NoMatch++ },
		"more searches than rows": func(m *Manifest) {
			m.Parts[1].Totals.Searches = m.Parts[1].Rows + 1
			m.Totals.Searches = m.Parts[1].Rows + 1
		},
		"a reason of the whole":     func(m *Manifest) { m.Totals.Reasons["rejected"]["empty"]++ },
		"an unknown reason":         func(m *Manifest) { m.Totals.Reasons["rejected"]["invalid_email"] = 1 },
		"a reason of a part":        func(m *Manifest) { m.Parts[1].Totals.Reasons["no_match"]["not_found"]-- },
		"rows of changes":           func(m *Manifest) { m.Changes.Removed-- },
		"reasons of a part missing": func(m *Manifest) { delete(m.Parts[1].Totals.Reasons, "malformed") },
	}
	for name, count := range counts {
		changes["whole: "+name] = func(m *Manifest) { *count(&m.Totals)++ }
		changes["part: "+name] = func(m *Manifest) { *count(&m.Parts[1].Totals)-- }
	}
	for name, change := range changes {
		m := whole()
		change(m)
		if err := m.Reconcile(); err == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}

func TestTotalsAdd(t *testing.T) {
	var sum Totals
	one := Totals{Rows: 6, Matched: 1, NoMatch: 1, Rejected: 1, Failed: 1, Suppressed: 1, Skipped: 1, Malformed: 1}
	one.CountReason("rejected", "empty", 1)
	sum.Add(one)
	sum.Add(one)
	sum.Add(Totals{})
	want := Totals{Rows: 12, Matched: 2, NoMatch: 2, Rejected: 2, Failed: 2, Suppressed: 2, Skipped: 2, Malformed: 2, Reasons: map[string]map[string]int64{"rejected": {"empty": 2}}}
	if fmt.Sprint(sum) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", sum, want)
	}
	if one.Reasons["rejected"]["empty"] != 1 {
		t.Error("Add changed what it added")
	}
}
