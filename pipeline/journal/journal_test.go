package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/journal/journaltest"
	"github.com/leadetl/leadetl/sinks"
)

// open opens the journal of a dataset in a state.
func open(t *testing.T, state string) (*journal.Progress, *journal.Journal) {
	t.Helper()
	p, err := journal.InFolder(disk.Dir(state)).Progress(t.Context(), "out", false)
	must(t, err)
	return p, journal.New(p)
}

func TestLists(t *testing.T) {
	p, _ := open(t, t.TempDir())
	journaltest.Lists(t, p)
}

func TestDatasetName(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for out, want := range map[string]string{"s3://bucket/out": "s3://bucket/out/", "out": filepath.Join(here, "out")} {
		if name, err := journal.DatasetName(out); name != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", out, name, err, want)
		}
	}
}

// TestUnreadableJournal: a journal that is there and cannot be read is no missing one.
func TestUnreadableJournal(t *testing.T) {
	p, j := open(t, t.TempDir())
	must(t, os.MkdirAll(filepath.Join(p.String(), "journal", "0000000000"), 0o700), os.WriteFile(filepath.Join(p.String(), "journal", "0000000000", "file"), nil, 0o600))
	if _, _, err := j.Read(); err == nil {
		t.Error("a folder was read")
	}
}

// TestJournal: what was recorded is read. Without the journal, its header still says which run it was.
func TestJournal(t *testing.T) {
	state := t.TempDir()
	p, j := open(t, state)
	must(t, j.Close(), j.Begin(journal.Header{JobID: "job"}, map[int]sinks.Part{3: {}}))
	if !j.Begun() {
		t.Error("it has not begun")
	}
	for _, number := range []int{1, 2} {
		must(t, j.Record(number, sinks.Part{File: sinks.File{Name: fmt.Sprint("part ", number)}}))
	}
	_, again := open(t, state)
	header, parts, err := again.Read()
	if got := slices.Sorted(maps.Keys(parts)); err != nil || header.JobID != "job" || !slices.Equal(got, []int{1, 2, 3}) || parts[1].Name != "part 1" {
		t.Errorf("read %+v, %v, %v", header, got, err)
	}
	must(t, again.Begin(header, parts))
	if err := j.Record(4, sinks.Part{}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("recorded in the journal of another process: %v", err)
	}
	must(t, os.RemoveAll(filepath.Join(p.String(), "journal")))
	if header, parts, err := j.Read(); err != nil || header.JobID != "job" || len(parts) > 0 {
		t.Errorf("without the journal: %+v, %v, %v; want the header", header, parts, err)
	}
	must(t, j.Remove())
	if header, parts, err := j.Read(); err != nil || header.JobID != "" || parts != nil {
		t.Errorf("after its end: %+v, %v, %v", header, parts, err)
	}
	if _, err := os.Stat(p.String()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its folder is left: %v", err)
	}
}

// recorded makes a journal of nine parts, and returns the paths of its ten files.
func recorded(t *testing.T, state string) (*journal.Progress, []string) {
	t.Helper()
	p, j := open(t, state)
	must(t, j.Begin(journal.Header{JobID: "job", Run: "run"}, nil))
	for number := 1; number < 10; number++ {
		must(t, j.Record(number, sinks.Part{File: sinks.File{Name: fmt.Sprint("part ", number), Rows: 1000 + int64(number)}}))
	}
	files, err := filepath.Glob(filepath.Join(p.String(), "journal", "*"))
	must(t, err, j.KeepJudged(nil))
	if len(files) != 10 {
		t.Fatalf("there are %q", files)
	}
	return p, files
}

// TestDamagedJournal: no part is read that was not recorded, and only the last one can be missing
// without an error.
func TestDamagedJournal(t *testing.T) {
	state := t.TempDir()
	p, files := recorded(t, state)
	for i, path := range files {
		text, err := os.ReadFile(path)
		must(t, err)
		other, err := os.ReadFile(files[(i+1)%len(files)])
		must(t, err)
		damages := map[string][]byte{"zeros": make([]byte, len(text)), "empty": {}, "twice": append(bytes.Clone(text), text...), "another one": other}
		for at := 0; at < len(text); at += 7 {
			flipped := bytes.Clone(text)
			flipped[at] ^= 1
			damages[fmt.Sprint("a flipped bit at ", at)], damages[fmt.Sprint("cut at ", at)] = flipped, text[:at]
		}
		for what, damaged := range damages {
			must(t, os.WriteFile(path, damaged, 0o600))
			_, j := open(t, state)
			if _, _, err := j.Read(); !errors.Is(err, appendlog.ErrDamaged) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s of file %d: %v", what, i, err)
			}
		}
		must(t, os.Remove(path))
		_, j := open(t, state)
		if _, parts, err := j.Read(); i > 0 && i < 9 && (!errors.Is(err, appendlog.ErrDamaged) || !strings.Contains(err.Error(), path)) || i == 9 && len(parts) != 8 {
			t.Errorf("without file %d: %d parts, %v", i, len(parts), err)
		}
		must(t, os.WriteFile(path, text, 0o600))
	}
	_, j := open(t, state)
	for _, name := range []string{"header", "judged"} {
		must(t, os.WriteFile(filepath.Join(p.String(), "beside", name), []byte("{}"), 0o600))
	}
	if _, err := j.Judged(); !errors.Is(err, appendlog.ErrDamaged) {
		t.Errorf("a changed verdict: %v", err)
	}
	must(t, os.RemoveAll(filepath.Join(p.String(), "journal")))
	if _, _, err := j.Read(); !errors.Is(err, appendlog.ErrDamaged) {
		t.Errorf("a changed header: %v", err)
	}
}

// TestReplacedRecord: a record of an earlier journal in the place of one is damage, though it is whole.
func TestReplacedRecord(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	_, files := recorded(t, one)
	_, others := recorded(t, other)
	_, j := open(t, other)
	must(t, j.Remove())
	_, j = open(t, other)
	must(t, j.Begin(journal.Header{JobID: "job", Run: "another"}, nil))
	for number := 1; number < 10; number++ {
		must(t, j.Record(number, sinks.Part{File: sinks.File{Name: fmt.Sprint("another part ", number)}}))
	}
	text, err := os.ReadFile(others[4])
	must(t, err, os.WriteFile(files[4], text, 0o600))
	_, j = open(t, one)
	if _, _, err := j.Read(); !errors.Is(err, appendlog.ErrDamaged) || !strings.Contains(err.Error(), "does not follow") {
		t.Errorf("it is read: %v", err)
	}
}

// TestRepairedJournal: of a journal, the record that is damaged is lost alone, and so is a part if what it
// has found is.
func TestRepairedJournal(t *testing.T) {
	for lost := range 10 {
		for kind, damage := range map[string]func(path string) error{
			"cut":     func(path string) error { return os.Truncate(path, 20) },
			"removed": os.Remove,
		} {
			if kind == "removed" && lost%9 == 0 {
				continue // the last is not missed, and without the first there is no journal
			}
			state := t.TempDir()
			p, files := recorded(t, state)
			must(t, damage(files[lost]))
			s := journal.InFolder(disk.Dir(state))
			aside, err := s.Repair(t.Context())
			must(t, err)
			_, j := open(t, state)
			header, parts, err := j.Read()
			want := slices.DeleteFunc([]int{1, 2, 3, 4, 5, 6, 7, 8, 9}, func(n int) bool { return n == lost })
			if got := slices.Sorted(maps.Keys(parts)); err != nil || kind == "cut" != (len(aside) == 1) || header.Run != "run" || !slices.Equal(got, want) {
				t.Errorf("file %d %s: %+v, parts %v, set aside %q, %v", lost, kind, header, got, aside, err)
			}
			if found, err := s.Inspect(t.Context()); err != nil || len(found) != 1 || len(found[0].Damages) > 0 || found[0].Parts != len(want) {
				t.Errorf("after the repair of %s: %+v, %v", p, found, err)
			}
		}
	}
	state := t.TempDir()
	p, _ := recorded(t, state)
	_, j := open(t, state)
	must(t, j.KeepFound(3, nil), j.KeepLists("a", func(w io.Writer) error { return nil }))
	for _, name := range []string{"found-00003", "suppressed-a-00000", "header"} {
		must(t, os.WriteFile(filepath.Join(p.String(), "beside", name), nil, 0o600))
	}
	s := journal.InFolder(disk.Dir(state))
	if aside, err := s.Repair(t.Context()); err != nil || len(aside) != 3 {
		t.Errorf("set aside %q, %v", aside, err)
	}
	header, parts, err := j.Read()
	if got := slices.Sorted(maps.Keys(parts)); err != nil || header.Run != "run" || !slices.Equal(got, []int{1, 2, 4, 5, 6, 7, 8, 9}) {
		t.Errorf("read %+v, %v, %v", header, got, err)
	}
	if lists, err := j.Lists("a"); lists != nil || err != nil {
		t.Errorf("the lists: %v, %v", lists, err)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestJudgedOfAnotherRun: a run that takes the place of another does not go by its verdicts, and one
// that goes on goes by its own.
func TestJudgedOfAnotherRun(t *testing.T) {
	state := t.TempDir()
	for _, c := range []struct {
		run  string
		want map[string]bool
	}{{"one", nil}, {"one", map[string]bool{"one": true}}, {"two", nil}, {"two", map[string]bool{"two": true}}} {
		_, j := open(t, state)
		_, _, err := j.Read()
		if err = errors.Join(err, j.Begin(journal.Header{JobID: "job", Run: c.run}, nil)); err != nil {
			t.Fatal(err)
		}
		if got, err := j.Judged(); err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s has the verdicts %v, %v; want %v", c.run, got, err, c.want)
		}
		if err := errors.Join(j.KeepJudged(map[string]bool{c.run: true}), j.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
