package process

import "golang.org/x/sys/unix"

// MaxOpenFiles returns how many file descriptors the process may have open.
func MaxOpenFiles() (limit uint64, known bool) {
	var l unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	return uint64(l.Cur), err == nil // it is signed on some systems
}
