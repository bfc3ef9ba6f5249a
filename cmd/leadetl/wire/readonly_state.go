package wire

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/filelock"
)

// StateToPlan returns a state folder that a plan may work in: the given one, or a copy of it, or an
// empty one, if that cannot be written to. remove removes what was made.
func StateToPlan(folder string) (planned string, remove func() error, err error) {
	err = canWrite(Existing(folder), filepath.Join(folder, AnswersFolder))
	if !errors.Is(err, syscall.EROFS) && !errors.Is(err, fs.ErrPermission) {
		return folder, func() error { return nil }, nil // another error is that of who opens it
	}
	if planned, err = os.MkdirTemp("", "leadetl-plan-*"); err != nil {
		return "", nil, fmt.Errorf("a folder to plan in, because %s cannot be written to: %w; TMPDIR names another place", folder, err)
	}
	remove = func() error { return os.RemoveAll(planned) }
	if err := copyState(folder, planned); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return planned, remove, nil
}

// Existing is the closest folder at or above one that exists.
func Existing(folder string) string {
	for _, err := os.Stat(folder); err != nil && filepath.Dir(folder) != folder; _, err = os.Stat(folder) {
		folder = filepath.Dir(folder)
	}
	return folder
}

// canWrite refuses folders that cannot be written to. Those that do not exist can be made.
func canWrite(folders ...string) error {
	for _, folder := range folders {
		if err := unix.Access(folder, unix.W_OK); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// copyState copies a state while no process uses its answers.
func copyState(from, to string) (err error) {
	stored := filepath.Join(from, AnswersFolder)
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := filelock.Folder(stored)
	switch {
	case err == nil:
		defer func() { err = errors.Join(err, lock.Release()) }()
	case errors.Is(err, filelock.ErrLocked):
		return fmt.Errorf("stored answers: %w", err)
	case !errors.Is(err, fs.ErrNotExist):
		return cli.UsageError(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return fmt.Errorf("copy the state, which cannot be written to: %w", err)
	}
	return nil
}
