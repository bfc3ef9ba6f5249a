package visits

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/leadetl/leadetl/internal/keyed"
)

// TestUnreadableProfiles: profiles that the disk cannot read end an import with an error, not
// the process.
func TestUnreadableProfiles(t *testing.T) {
	for _, f := range []struct {
		name  string
		lines int // of one address
	}{
		{"when they are written", 1},
		{"when they are sorted", 2},
	} {
		scratch := t.TempDir()
		w, lines := keyed.NewWriter(io.Discard, scratch, make([]bool, fields), keyed.MappedPages), newLines(scratch)
		for i := range uint64(f.lines) {
			if err := lines.Add(unsorted{from: i, to: i + 1}); err != nil {
				t.Fatal(err)
			}
		}
		if err := write(t.Context(), w, lines, unreadable(t)); !errors.Is(err, keyed.ErrDamaged) {
			t.Errorf("%s: %v", f.name, err)
		}
		if err := errors.Join(w.Close(), lines.Close()); err != nil {
			t.Error(err)
		}
	}
}

// unreadable returns memory of a file that was cut after it was mapped.
func unreadable(t *testing.T) []byte {
	f, err := os.Create(filepath.Join(t.TempDir(), "cut"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size := os.Getpagesize()
	if err := f.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(data) })
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	return data
}
