//go:build unix

// Package filelock keeps two processes from working on one folder. The lock
// goes with the process: kill -9 releases it.
package filelock

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrLocked says that another process holds the lock.
var ErrLocked = errors.New("in use by another process")

// Lock is a held lock; Close gives it back.
type Lock struct{ f *os.File }

// Folder takes the lock of an existing folder without waiting. No file is
// made for it: the folder itself is what is locked (flock(2), advisory).
func Folder(dir string) (*Lock, error) {
	f, err := os.Open(dir)
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
	return &Lock{f}, nil
}

// Close gives the lock back.
func (l *Lock) Close() error { return l.f.Close() }
