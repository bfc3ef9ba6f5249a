package worldtest

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keepTurns makes goroutines take turns only where they wait. The runtime has a thread that wakes
// every few milliseconds: it ends the turn of a goroutine that has been in one for 10 ms, or is in
// a system call, which on a busy machine may be any. The thread sleeps almost for ever if the
// system may let it. A process has that from the one that starts it, so it starts itself anew.
func keepTurns() error {
	const slack = time.Hour
	if is, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil || is >= int(slack) {
		return err
	}
	runtime.LockOSThread()
	path, err := os.Executable()
	if err == nil {
		err = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0)
	}
	if err != nil {
		return err
	}
	return syscall.Exec(path, os.Args, os.Environ())
}
