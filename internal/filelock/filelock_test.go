package filelock_test

import (
	"errors"
	"testing"

	"github.com/leadetl/leadetl/internal/filelock"
)

func TestFolderIsHeldByOne(t *testing.T) {
	dir := t.TempDir()
	l, err := filelock.Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filelock.Folder(dir); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("second lock: %v, want ErrLocked", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := filelock.Folder(dir)
	if err != nil {
		t.Fatalf("lock after release: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}
