package appendlog

import (
	"os"
	"syscall"
)

// File is an os.File that is a Storage.
type File struct{ *os.File }

// Sync does not write the times of the file.
func (f File) Sync() error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
