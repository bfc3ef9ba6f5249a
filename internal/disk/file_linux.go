package disk

import (
	"os"
	"syscall"
)

// file is a File of the file system.
type file struct{ *os.File }

// Sync does not write the times of the file.
func (f file) Sync() error {
	for {
		switch err := syscall.Fdatasync(int(f.Fd())); err {
		case nil:
			return nil
		case syscall.EINTR:
		default:
			return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
		}
	}
}
