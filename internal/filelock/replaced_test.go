//go:build unix

package filelock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Between opening the folder and locking it, another process may remove it
// and a third make it again: a lock of the old one would keep no process away.
func TestFolderIsTheOneThatHasTheName(t *testing.T) {
	for _, c := range []struct {
		name     string
		replaced int  // times, right after it was opened
		remade   bool // or only removed
		want     error
	}{
		{"left alone", 0, true, nil},
		{"replaced once", 1, true, nil},
		{"replaced again and again", maxTries, true, ErrLocked},
		{"removed", 1, false, fs.ErrNotExist},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			opened := 0
			l, err := folder(func(name string) (*os.File, error) {
				f, err := os.Open(name)
				if opened++; err == nil && opened <= c.replaced {
					err = os.Remove(name)
					if c.remade {
						err = errors.Join(err, os.Mkdir(name, 0o755))
					}
				}
				return f, err
			}, dir)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if c.want != nil {
				return
			}
			if _, err := Folder(dir); !errors.Is(err, ErrLocked) {
				t.Errorf("a second lock of what has the name: %v, want ErrLocked", err)
			}
			if err := l.Release(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestForkedChild: a process that has a descriptor of the folder, as a child
// has it between fork and exec, does not keep the lock.
func TestForkedChild(t *testing.T) {
	dir := t.TempDir()
	l, err := Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	child, err := syscall.Dup(int(l.f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(child)
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}
