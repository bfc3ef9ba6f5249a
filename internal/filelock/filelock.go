//go:build unix

// Package filelock keeps two processes from working on one folder. The lock
// ends with the process, also on kill -9.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/leadetl/leadetl/internal/lease"
)

// ErrLocked means that another process holds the lock.
var ErrLocked = errors.New("in use by another process")

// Lock is a held lock, a lease.Lease.
type Lock struct{ f *os.File }

var _ lease.Lease = (*Lock)(nil)

// maxTries is how often Folder tries again when the folder is replaced meanwhile.
const maxTries = 10

// Folder locks an existing folder without waiting; the error is ErrLocked if
// another process holds the lock. It locks the folder itself (flock(2),
// advisory) and makes no file.
//
// The folder at dir may be removed and made again by other processes meanwhile.
// Folder locks the one that has the name when it returns. If the folder keeps
// changing, it returns ErrLocked.
func Folder(dir string) (*Lock, error) { return folder(os.Open, dir) }

func folder(open func(name string) (*os.File, error), dir string) (*Lock, error) {
	for range maxTries {
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

// InUse reports whether a process holds the lock of an existing folder.
func InUse(dir string) (bool, error) {
	f, err := os.Open(dir)
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("look at the lock of %s: %w", dir, err)
	}
	return false, syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
}

// hasName reports whether an open folder still has the name dir.
func hasName(f *os.File, dir string) (bool, error) {
	held, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // it may be back at the next try
	}
	return err == nil && os.SameFile(held, named), err
}

// Renew does nothing: the lock is held as long as the process lives.
func (l *Lock) Renew(context.Context) error { return nil }

// Release releases the lock at once. Closing the file alone would not: a child
// process that is just being forked keeps it open until it executes its program.
func (l *Lock) Release() error {
	return errors.Join(syscall.Flock(int(l.f.Fd()), syscall.LOCK_UN), l.f.Close())
}
