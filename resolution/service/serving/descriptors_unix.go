//go:build unix

package serving

import "golang.org/x/sys/unix"

// descriptorLimit returns how many file descriptors the process may have open.
func descriptorLimit() (limit uint64, known bool) {
	var l unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	return uint64(l.Cur), err == nil // it is signed on some systems
}
