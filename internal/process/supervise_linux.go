package process

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// superviseIfFirst runs the program in a second process if this one is the first of a container,
// and ends with its exit code. Linux ignores an abort of the first process by itself, and Go then
// ends it with 2.
func superviseIfFirst() {
	if os.Getpid() != 1 {
		return
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT)
	if !signal.Ignored(unix.SIGHUP) {
		signal.Notify(signals, unix.SIGHUP)
	}
	program, err := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		// In a group of its own, it gets a signal from a terminal once.
		Sys: &syscall.SysProcAttr{Setpgid: true, Foreground: term.IsTerminal(0), Ctty: 0},
	})
	if err != nil {
		signal.Reset()
		return // without /proc there is no second process
	}
	go func() {
		for s := range signals {
			_ = program.Signal(s) // it may have ended
		}
	}()
	os.Exit(waitFor(program.Pid))
}

// waitFor waits for a process, and for all that its children left to this one. It returns its exit
// code, as a shell has it.
func waitFor(pid int) int {
	for {
		var status unix.WaitStatus
		switch ended, err := unix.Wait4(-1, &status, 0, nil); {
		case err == unix.EINTR:
		case err != nil:
			return 1 // it cannot be waited for
		case ended != pid:
		case status.Signaled():
			return 128 + int(status.Signal())
		case status.Exited():
			return status.ExitStatus()
		}
	}
}
