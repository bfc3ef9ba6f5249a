package wire

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leadetl/leadetl/internal/filelock"
)

// TestStateToPlan: a state that cannot be written to is copied, and only that.
func TestStateToPlan(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	for _, name := range []string{state, filepath.Join(state, "new", "folder")} {
		if got, _, err := StateToPlan(name); got != name || err != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if _, err := os.Stat(state); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a plan made the state: %v", err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(state, AnswersFolder), 0o700), os.WriteFile(filepath.Join(state, AnswersFolder, "file"), []byte("text"), 0o600)); err != nil {
		t.Fatal(err)
	}
	makeReadOnly(t, state)
	planned, remove, err := StateToPlan(state)
	if err != nil || planned == state {
		t.Fatalf("%s, %v", planned, err)
	}
	if text, err := os.ReadFile(filepath.Join(planned, AnswersFolder, "file")); string(text) != "text" || err != nil {
		t.Errorf("the copy has %q, %v", text, err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(planned); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy is left: %v", err)
	}
	if missing, remove, err := StateToPlan(filepath.Join(state, "missing")); err != nil || filepath.Dir(missing) == state || remove() != nil {
		t.Errorf("a missing one: %s, %v", missing, err)
	}
	lock, err := filelock.Folder(filepath.Join(state, AnswersFolder))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if _, _, err := StateToPlan(state); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("in use: %v", err)
	}
}

// makeReadOnly makes a folder that cannot be written to, not by root either.
func makeReadOnly(t *testing.T, folder string) {
	t.Helper()
	if os.Getuid() != 0 {
		if err := os.Chmod(folder, 0o500); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(folder, 0o700) })
		return
	}
	err := unix.Mount(folder, folder, "", unix.MS_BIND, "")
	if err == nil {
		t.Cleanup(func() { unix.Unmount(folder, unix.MNT_DETACH) })
		err = unix.Mount("", folder, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
	}
	if errors.Is(err, syscall.EPERM) {
		t.Skip("mounts are not allowed here")
	}
	if err != nil {
		t.Fatal(err)
	}
}
