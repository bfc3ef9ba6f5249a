package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/journal/journaltest"
	"github.com/leadetl/leadetl/sinks"
)

func TestFolder(t *testing.T) {
	f, err := journal.NewFolder(disk.Dir(t.TempDir()), "out")
	if err != nil {
		t.Fatal(err)
	}
	journaltest.Lists(t, f)
}

func TestDatasetName(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for out, want := range map[string]string{"s3://bucket/out": "s3://bucket/out", "out": filepath.Join(here, "out")} {
		if name, err := journal.DatasetName(out); name != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", out, name, err, want)
		}
	}
}

// TestUnreadableJournal: a journal that is there and cannot be read is no missing one.
func TestUnreadableJournal(t *testing.T) {
	f, err := journal.NewFolder(disk.Dir(t.TempDir()), "out")
	if err != nil {
		t.Fatal(err)
	}
	if _, parts, err := journal.New(f).Read(); parts != nil || err != nil {
		t.Errorf("a missing one: %v, %v", parts, err)
	}
	if err := os.MkdirAll(f.String(), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := journal.New(f).Read(); err == nil {
		t.Error("a folder was read")
	}
}

// TestJournal: what was recorded is read. Without the journal, its header still says which run it was.
func TestJournal(t *testing.T) {
	f, err := journal.NewFolder(disk.Dir(t.TempDir()), "out")
	if err != nil {
		t.Fatal(err)
	}
	j := journal.New(f)
	if err := errors.Join(j.Close(), j.Begin(journal.Header{JobID: "job"}, map[int]sinks.Part{3: {}})); err != nil || !j.Begun() {
		t.Fatal(err, j.Begun())
	}
	for _, number := range []int{1, 2} {
		if err := j.Record(number, sinks.Part{File: sinks.File{Name: fmt.Sprint("part ", number)}}); err != nil {
			t.Fatal(err)
		}
	}
	read := func(want ...int) {
		t.Helper()
		header, parts, err := j.Read()
		if got := slices.Sorted(maps.Keys(parts)); err != nil || header.JobID != "job" || !slices.Equal(got, want) || parts[1].Name != "part 1" {
			t.Errorf("read %+v, %v, %v; want parts %v", header, got, err, want)
		}
	}
	read(1, 2, 3)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := j.Record(4, sinks.Part{}); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("recorded in a closed journal: %v", err)
		}
	}
	if err := os.Remove(f.String()); err != nil {
		t.Fatal(err)
	}
	if header, parts, err := j.Read(); err != nil || header.JobID != "job" || len(parts) > 0 {
		t.Errorf("without the journal: %+v, %v, %v; want the header", header, parts, err)
	}
	if err := j.Remove(); err != nil {
		t.Fatal(err)
	}
	if header, parts, err := j.Read(); err != nil || header.JobID != "" || parts != nil {
		t.Errorf("after its end: %+v, %v, %v", header, parts, err)
	}
}

// TestDamagedJournal: no part is read that was not recorded, and only the last one can be missing
// without an error.
func TestDamagedJournal(t *testing.T) {
	f, err := journal.NewFolder(disk.Dir(t.TempDir()), "out")
	if err != nil {
		t.Fatal(err)
	}
	j := journal.New(f)
	if err := j.Begin(journal.Header{JobID: "job"}, map[int]sinks.Part{0: {}}); err != nil {
		t.Fatal(err)
	}
	for number := 1; number < 10; number++ {
		if err := j.Record(number, sinks.Part{File: sinks.File{Name: fmt.Sprint("part ", number), Rows: 1000 + int64(number)}}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(f.String())
	if err = errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	for at := 0; at < 10*512; at += 7 {
		flipped, zeroed := bytes.Clone(text), bytes.Clone(text)
		flipped[at] ^= 1
		clear(zeroed[at/512*512:][:512])
		for what, damaged := range map[string][]byte{"a flipped bit": flipped, "a zeroed sector": zeroed, "the end cut off": text[:at]} {
			if err := os.WriteFile(f.String(), damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			_, parts, err := j.Read()
			if err == nil && len(parts) < 9 || err != nil && (!errors.Is(err, appendlog.ErrDamaged) || !strings.Contains(err.Error(), f.String()+" is damaged at byte ")) {
				t.Errorf("%s at %d: %d parts, %v", what, at, len(parts), err)
			}
			for number, p := range parts {
				if number > 0 && (p.Rows != 1000+int64(number) || p.Name != fmt.Sprint("part ", number)) {
					t.Errorf("%s at %d: part %d is %+v", what, at, number, p)
				}
			}
		}
	}
	for name, content := range map[string]string{"journal.log": "", "header": "{}", "judged": "{}"} {
		if err := os.WriteFile(f.In.Path(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := j.Read(); !errors.Is(err, appendlog.ErrDamaged) {
		t.Errorf("an empty journal: %v", err)
	}
	if _, err := j.Judged(); !errors.Is(err, appendlog.ErrDamaged) {
		t.Errorf("a changed verdict: %v", err)
	}
	if err := os.Remove(f.String()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := j.Read(); !errors.Is(err, appendlog.ErrDamaged) {
		t.Errorf("a changed header: %v", err)
	}
}

// TestRepairedJournal: of a journal, the record that is damaged is lost alone.
func TestRepairedJournal(t *testing.T) {
	for lost := range 10 {
		f, err := journal.NewFolder(disk.Dir(t.TempDir()), "out")
		must(t, err)
		j := journal.New(f)
		must(t, j.Begin(journal.Header{JobID: "job", Run: "run"}, nil))
		for number := 1; number < 10; number++ {
			must(t, j.Record(number, sinks.Part{File: sinks.File{Name: fmt.Sprint("part ", number)}}))
		}
		must(t, j.Close())
		text, err := os.ReadFile(f.String())
		must(t, err)
		clear(text[lost*512:][:512])
		if lost == 9 {
			text = text[:lost*512] // a last record of zeros would look like a torn one
		}
		must(t, os.WriteFile(f.String(), text, 0o600))
		aside, err := f.Repair()
		must(t, err)
		header, parts, err := j.Read()
		want := slices.DeleteFunc([]int{1, 2, 3, 4, 5, 6, 7, 8, 9}, func(n int) bool { return n == lost })
		if got := slices.Sorted(maps.Keys(parts)); err != nil || len(aside) != 1 || header.Run != "run" || !slices.Equal(got, want) {
			t.Errorf("without record %d: %+v, parts %v, set aside %q, %v", lost, header, got, aside, err)
		}
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
	f, err := journal.NewFolder(disk.Dir(t.TempDir()), "out")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		run  string
		want map[string]bool
	}{{"one", nil}, {"one", map[string]bool{"one": true}}, {"two", nil}, {"two", map[string]bool{"two": true}}} {
		j := journal.New(f)
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
