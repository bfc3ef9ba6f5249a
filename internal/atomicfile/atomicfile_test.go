package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
)

func TestCommitReplacesWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	if err := atomicfile.Write(path, []byte("old")); err != nil {
		t.Fatal(err)
	}

	f, err := atomicfile.Create(path, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	wantContent(t, path, "old")
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	wantContent(t, path, "new")
	if err := f.Abort(); err != nil {
		t.Errorf("Abort after Commit: %v, want nil", err)
	}
	wantContent(t, path, "new")
	wantEntries(t, dir, 1)
}

func TestAbortLeavesOld(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.json")
	if err := atomicfile.Write(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	f, err := atomicfile.Create(path, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	if err := f.Abort(); err != nil {
		t.Fatal(err)
	}
	wantContent(t, path, "old")
	wantEntries(t, dir, 1)
}

func TestLeftoverIsOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	if err := os.WriteFile(atomicfile.TempName(path), []byte("what a killed process left, longer"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	wantContent(t, path, "new")
}

func TestIsTemp(t *testing.T) {
	for name, want := range map[string]bool{
		filepath.Base(atomicfile.TempName("out/part-00000.parquet")): true,
		"part-00000.parquet": false,
		".tmp":               false,
		"notes.tmp":          false,
		"a.notes.tmp":        false,
		".hidden":            false,
	} {
		if got := atomicfile.IsTemp(name); got != want {
			t.Errorf("IsTemp(%q) = %v, want %v", name, got, want)
		}
	}
}

// What is not there cannot be made durable.
func TestMissingFolder(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	if err := disk.Dir(gone).Sync(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("synced: %v", err)
	}
	if err := atomicfile.Write(filepath.Join(gone, "a.json"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("written: %v", err)
	}
}

func wantContent(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("content = %q, want %q", got, want)
	}
}

func wantEntries(t *testing.T, dir string, want int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != want {
		t.Errorf("%d entries in folder, want %d: %v", len(entries), want, entries)
	}
}
