package atomicfile_test

import (
	"io"
	"testing"

	"github.com/leadetl/leadetl/internal/atomicfile"
)

// A nameless file is written and read, and the folder stays empty.
func TestNameless(t *testing.T) {
	dir := t.TempDir()
	f, err := atomicfile.Nameless(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	wantEntries(t, dir, 0)
	if _, err := f.WriteAt([]byte("text"), 3); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(f)
	if err != nil || string(got) != "\x00\x00\x00text" {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestIsNameless(t *testing.T) {
	for name, want := range map[string]bool{".nameless-123.tmp": true, ".nameless-123": false, ".people-000001.cols4.tmp": false, "nameless-1.tmp": false} {
		if got := atomicfile.IsNameless(name); got != want {
			t.Errorf("IsNameless(%q) = %v, want %v", name, got, want)
		}
	}
}
