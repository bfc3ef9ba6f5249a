// Package program is all of leadetl: the tree of its commands, and those that need no
// folder of their own. It is apart from main because tests cannot import a main.
package program

import (
	"io"
	"log"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"

	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/process"
)

// Main is the program. It does not return.
func Main() {
	// net/http writes to the standard logger what a server sends without being
	// asked, and that may be personal data. Our own log is another one.
	log.SetOutput(io.Discard)
	process.Begin()
	quit()
	wire.SetGC(wire.RunGC)
	os.Exit(Execute(process.Stopped(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// DebugVariable asks for the trace of all goroutines on SIGQUIT.
const DebugVariable = "LEADETL_DEBUG"

// ExitQuit is the exit code after SIGQUIT, as of other programs.
const ExitQuit = 128 + int(syscall.SIGQUIT)

// quit ends the process on SIGQUIT at once, as a kill does. The trace that Go prints by default
// tells its user nothing.
func quit() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGQUIT)
	go func() {
		<-asked
		if os.Getenv(DebugVariable) != "" {
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
		}
		os.Exit(ExitQuit)
	}()
}
