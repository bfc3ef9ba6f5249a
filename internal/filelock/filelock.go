//go:build unix

// Package filelock keeps two processes from working on one folder. The lock
// goes with the process: kill -9 releases it.
package filelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// ErrLocked says that another process holds the lock.
var ErrLocked = errors.New("in use by another process")

// Lock is a held lock; Close gives it back.
type Lock struct{ f *os.File }

// tries is how often Folder starts again when the folder is replaced under it.
const tries = 10

// Folder takes the lock of an existing folder without waiting. No file is
// made for it: the folder itself is what is locked (flock(2), advisory).
//
// The lock is that of the folder that has the name when Folder returns:
// another process may have removed it, as a run that came to nothing does,
// and a third made it again. Where that does not come to rest, the folder is
// in use.
func Folder(dir string) (*Lock, error) { return folder(os.Open, dir) }

func folder(open func(name string) (*os.File, error), dir string) (*Lock, error) {
	for range tries {
		f, err := open(dir)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, fmt.Errorf("%s: %w", dir, ErrLocked)
			}
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		same, err := hasName(f, dir)
		if same {
			return &Lock{f}, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: %w", dir, ErrLocked)
}

// hasName reports whether an open folder is the one that has the name now.
func hasName(f *os.File, dir string) (bool, error) {
	held, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // perhaps only for now: the next try will tell
	}
	return err == nil && os.SameFile(held, named), err
}

// Close gives the lock back, at once: a child that another goroutine has just
// forked has the folder open until it executes its program, and the lock would
// last as long.
func (l *Lock) Close() error {
	return errors.Join(syscall.Flock(int(l.f.Fd()), syscall.LOCK_UN), l.f.Close())
}
