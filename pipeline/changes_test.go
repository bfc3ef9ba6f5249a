package pipeline_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/internal/testkit/memorytest"
	"github.com/leadetl/leadetl/pipeline/changes"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/sinks"
)

// stoppingFiles opens files until it stops the run.
type stoppingFiles struct {
	changes.Files
	left int
	stop func()
}

func (s *stoppingFiles) Open(name string) (*sinks.OpenFile, error) {
	if s.left--; s.left < 0 {
		s.stop()
	}
	return s.Files.Open(name)
}

// TestChangesResume: a run that is stopped while it compares is not finished. The same run
// makes the same changes again, and no part.
func TestChangesResume(t *testing.T) {
	dir := t.TempDir()
	night := setup{dir: dir, rowsPerPart: 10, out: "monday"}
	night.input(t, "a.csv", emails(0, 40))
	night.mustDo(t)
	before, err := changes.Open(t.Context(), filepath.Join(dir, "monday"), sinks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	night.input(t, "a.csv", emails(7, 40))
	want := ""
	for left := 4; left >= 0; left-- { // the dataset has four files
		night.out = "tuesday"
		if want != "" {
			night.out = "stopped"
			ctx, stop := context.WithCancel(t.Context())
			night.changes = &job.Changes{Before: &changes.Dataset{Dir: before.Dir, Files: &stoppingFiles{before.Files, left, stop}, Manifest: before.Manifest}}
			if _, err := night.do(ctx); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "stopped", sinks.SuccessName)); !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("a stopped run is finished: %v", err)
			}
		}
		night.changes = &job.Changes{Before: before}
		result := night.mustDo(t)
		if c := result.Changes; c.Added != 7 || c.Removed != 7 || c.Changed != 0 || want != "" && result.Parts.Made > 0 {
			t.Fatalf("%+v, %+v", c, result.Parts)
		}
		got := content(t, filepath.Join(dir, night.out))["_changes/part-00000.parquet"]
		if want == "" {
			want = got
		} else if got != want {
			t.Error("other changes after a stop")
		}
		if want != "" {
			os.RemoveAll(filepath.Join(dir, "stopped"))
		}
	}
}

// TestChangesSinceRemade: changes since a dataset that was made again are made again too,
// although it has the same job_id.
func TestChangesSinceRemade(t *testing.T) {
	dir := t.TempDir()
	night := func(name string) setup {
		return setup{dir: dir, rowsPerPart: 10, in: []string{filepath.Join(dir, "in", name+".csv")}, out: name}
	}
	monday, tuesday := night("monday"), night("tuesday")
	tuesday.input(t, "tuesday.csv", emails(0, 20))
	for _, gone := range []int{0, 5} {
		monday.input(t, "monday.csv", emails(0, 20+gone))
		monday.overwrite = true
		monday.mustDo(t)
		before, err := changes.Open(t.Context(), monday.outDir(), sinks.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tuesday.changes = &job.Changes{Before: before}
		if c := tuesday.mustDo(t).Changes; c.Removed != int64(gone) {
			t.Errorf("%d rows are removed, want %d", c.Removed, gone)
		}
	}
}

// TestChangesSinceReplaced: a dataset that is replaced while the run makes its parts is not compared
// as the one that it was.
func TestChangesSinceReplaced(t *testing.T) {
	dir := t.TempDir()
	monday := setup{dir: dir, rowsPerPart: 10, out: "monday"}
	monday.input(t, "a.csv", emails(0, 20))
	monday.mustDo(t)
	before, err := changes.Open(t.Context(), monday.outDir(), sinks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tuesday := monday
	tuesday.out, tuesday.changes = "tuesday", &job.Changes{Before: before}
	monday.input(t, "a.csv", emails(3, 20))
	monday.overwrite = true
	monday.mustDo(t)
	if _, err := tuesday.do(t.Context()); !errors.Is(err, changes.ErrIncomparable) {
		t.Fatalf("the error is %v", err)
	}
	if tuesday.changes.Before, err = changes.Open(t.Context(), monday.outDir(), sinks.Options{}); err != nil {
		t.Fatal(err)
	}
	if result := tuesday.mustDo(t); result.Changes.Added+result.Changes.Removed > 0 || result.Parts.Made > 0 {
		t.Errorf("%+v, %+v", result.Changes, result.Parts)
	}
}

// TestChangesAreKept: changes stay with a dataset while its parts do, are made when they are
// asked for, and go when a part is made anew without them.
func TestChangesAreKept(t *testing.T) {
	dir := t.TempDir()
	night := setup{dir: dir, rowsPerPart: 10}
	night.input(t, "a.csv", emails(0, 25))
	night.mustDo(t)
	if has := hasChanges(t, night); has {
		t.Error("changes that nobody asked for")
	}
	night.changes = &job.Changes{}
	if result := night.mustDo(t); !hasChanges(t, night) || result.Parts.Made > 0 || result.Changes.Added != 25 {
		t.Errorf("%+v", result)
	}
	night.changes = nil
	if os.Remove(filepath.Join(dir, "out", sinks.ReportName)) != nil || night.mustDo(t).Changes.Added != 25 || !hasChanges(t, night) {
		t.Error("a new report loses the changes")
	}
	if os.Remove(filepath.Join(dir, "out", "part-00001.parquet")) != nil || night.mustDo(t).Changes != nil || hasChanges(t, night) {
		t.Error("changes of a dataset that was repaired since")
	}
}

// TestChangesOfListedPerson: a person on a suppression list who is gone from the input too is not
// in the changes.
func TestChangesOfListedPerson(t *testing.T) {
	dir := t.TempDir()
	night := setup{dir: dir, rowsPerPart: 10, out: "monday"}
	night.input(t, "a.csv", "email\nlisted@x.example\nstays@x.example\n")
	night.mustDo(t)
	before, err := changes.Open(t.Context(), filepath.Join(dir, "monday"), sinks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	night.input(t, "a.csv", "email\nstays@x.example\n")
	for _, column := range []string{"email", "key", "hem_md5"} {
		asked := night
		asked.out, asked.suppress, asked.changes = "other", listOf(t, "listed@x.example"), &job.Changes{Before: before, Settings: changes.Settings{Was: []string{column}}}
		if _, err := asked.do(t.Context()); !errors.Is(err, changes.ErrIncomparable) {
			t.Errorf("the earlier %s may be that of a listed person: %v", column, err)
		}
	}
	night.out, night.suppress, night.changes = "tuesday", listOf(t, "listed@x.example"), &job.Changes{Before: before}
	if c := night.mustDo(t).Changes; c.Removed != 1 {
		t.Fatalf("%+v", c)
	}
	if strings.Contains(content(t, filepath.Join(dir, "tuesday"))["_changes/part-00000.parquet"], "listed@x.example") {
		t.Error("the changes have the address of a listed person")
	}
}

// lateNights calls do when all files of a dataset are made, before it is published, and remembers none.
type lateNights struct {
	store.Store
	do func() error
}

func (l lateNights) Create(context.Context, string, []byte) error { return l.do() }

func nightsThat(do func() error) store.Store { return lateNights{memorytest.New(), do} }

// TestPublishesWhatIsThere: a dataset is not finished when a file of it was changed after the run
// recorded it. The same run makes that file again.
func TestPublishesWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	whole := setup{dir: dir, rowsPerPart: 10, out: "whole", changes: &job.Changes{}}
	whole.input(t, "a.csv", emails(0, 25)+"ragged\n")
	whole.mustDo(t)
	want := content(t, whole.outDir())
	for name := range want {
		for kind, change := range map[string]func(path string) error{
			"removed": os.Remove,
			"cut":     func(path string) error { return os.Truncate(path, 100) },
			"replaced": func(path string) error {
				return os.WriteFile(path, []byte(strings.Repeat("x", len(want[name]))), 0o644)
			},
		} {
			night := setup{dir: dir, rowsPerPart: 10, changes: whole.changes}
			night.nights = nightsThat(func() error { return change(filepath.Join(night.outDir(), name)) })
			_, err := night.do(t.Context())
			night.nights = nil
			if _, missing := os.Stat(filepath.Join(night.outDir(), sinks.SuccessName)); !errors.Is(err, sinks.ErrCorrupt) || !errors.Is(missing, os.ErrNotExist) {
				t.Errorf("%s %s: the error is %v; the dataset: %v", name, kind, err, missing)
			}
			night.mustDo(t)
			if got := content(t, night.outDir()); !maps.Equal(got, want) {
				t.Errorf("%s %s: other files afterwards", name, kind)
			}
			if err := os.RemoveAll(night.outDir()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestDamagedPartIsMadeAgain: a part that was damaged while its run was stopped, with the recorded size and time, is
// found when rows are compared. The same run makes it again, and so does one that overwrites.
func TestDamagedPartIsMadeAgain(t *testing.T) {
	dir := t.TempDir()
	whole := setup{dir: dir, rowsPerPart: 10, out: "whole", changes: &job.Changes{}}
	whole.input(t, "a.csv", emails(0, 25))
	whole.mustDo(t)
	want := content(t, whole.outDir())
	for _, overwrite := range []bool{false, true} {
		for _, part := range []string{"footer", "page"} {
			night := setup{dir: dir, rowsPerPart: 10, changes: whole.changes, nights: nightsThat(func() error { return errNoNights })}
			if _, err := night.do(t.Context()); !errors.Is(err, errNoNights) {
				t.Fatal(err)
			}
			night.nights, night.overwrite = nil, overwrite
			path := filepath.Join(night.outDir(), "part-00001.parquet")
			damage(t, path, part == "footer")
			if _, err := night.do(t.Context()); !errors.Is(err, sinks.ErrCorrupt) || !strings.Contains(err.Error(), "part-00001.parquet") {
				t.Errorf("%s, overwrite %t: %v", part, overwrite, err)
			}
			if result := night.mustDo(t); result.Parts.Made != 1 {
				t.Errorf("%s, overwrite %t: %+v", part, overwrite, result.Parts)
			}
			if got := content(t, night.outDir()); !maps.Equal(got, want) {
				t.Errorf("%s, overwrite %t: other files afterwards", part, overwrite)
			}
			if err := os.RemoveAll(night.outDir()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// damage zeroes the end of a file's footer, or its first page. Its size and time stay.
func damage(t *testing.T, path string, footer bool) {
	t.Helper()
	text, err := os.ReadFile(path)
	info, failed := os.Stat(path)
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	if footer {
		clear(text[len(text)-8:])
	} else {
		clear(text[4:40])
	}
	if err := errors.Join(os.WriteFile(path, text, 0o600), os.Chtimes(path, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
}

var errNoNights = errors.New("the disk is full")

// TestRememberedBeforePublished: readers know no dataset that the next night would not be compared
// with.
func TestRememberedBeforePublished(t *testing.T) {
	night := setup{dir: t.TempDir(), nights: nightsThat(func() error { return errNoNights })}
	night.input(t, "a.csv", emails(0, 5))
	_, err := night.do(t.Context())
	night.nights = nil
	if _, missing := os.Stat(filepath.Join(night.outDir(), sinks.SuccessName)); !errors.Is(err, errNoNights) || !errors.Is(missing, os.ErrNotExist) {
		t.Errorf("the error is %v; the dataset: %v", err, missing)
	}
	night.mustDo(t)
}

func hasChanges(t *testing.T, s setup) bool {
	t.Helper()
	for name := range listing(t, s.outDir()) {
		if strings.HasPrefix(name, sinks.ChangesFolder) {
			return true
		}
	}
	return false
}
