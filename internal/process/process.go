// Package process prepares the process of a command line program: how it fails, how much memory
// it takes, and which signals stop it.
//
// The one thing to know before using it: Begin comes first in main, because as the first process
// of a container it runs the program in a second one.
package process

import (
	"os/signal"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// Begin prepares the process. A failure of Go's runtime, such as lack of memory, then aborts it:
// the exit code is that of SIGABRT, where Go's own would be 2.
func Begin() {
	superviseIfFirst()
	debug.SetTraceback("crash")
	noCore()
	signal.Ignore(unix.SIGXFSZ) // a write past the limit of ulimit -f is an error then
	limitMemory()
}

// noCore turns core files off: they have all that was in memory. A core that is piped to a program
// ignores a limit of 0, but not of 1, on Linux.
func noCore() {
	var core unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_CORE, &core) != nil {
		return
	}
	core.Cur = 0
	if runtime.GOOS == "linux" && core.Max > 0 {
		core.Cur = 1
	}
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &core) // it is lower than before, which is always allowed
}
