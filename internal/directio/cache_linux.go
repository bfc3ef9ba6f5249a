package directio

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// bypassCache sets whether writes to a file go past the page cache. Many file
// systems cannot do that: EINVAL.
func bypassCache(file io.WriterAt, bypass bool) error {
	of, is := file.(syscall.Conn)
	if !is {
		return errors.ErrUnsupported
	}
	raw, err := of.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		var flags int
		if flags, failed = unix.FcntlInt(fd, unix.F_GETFL, 0); failed != nil {
			return
		}
		flags &^= unix.O_DIRECT
		if bypass {
			flags |= unix.O_DIRECT
		}
		_, failed = unix.FcntlInt(fd, unix.F_SETFL, flags)
	})
	if err != nil {
		return err
	}
	return failed
}
