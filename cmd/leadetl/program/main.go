// Package program is all of leadetl: the tree of its commands, and those that need no
// folder of their own. It is apart from main because tests cannot import a main.
package program

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/leadetl/leadetl/cmd/leadetl/wire"
)

// Main is the program. It does not return.
func Main() {
	// net/http writes to the standard logger what a server sends without being
	// asked, and that may be personal data. Our own log is another one.
	log.SetOutput(io.Discard)
	quitSilently()
	wire.SetGC(wire.RunGC)
	// The first signal requests a clean stop. It also restores the default
	// action, so that a second signal ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(Execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// DebugVariable asks for the trace of all goroutines on SIGQUIT.
const DebugVariable = "LEADETL_DEBUG"

// ExitQuit is the exit code after SIGQUIT, as of other programs.
const ExitQuit = 128 + int(syscall.SIGQUIT)

// quitSilently ends the process on SIGQUIT at once, as a kill does. The trace that
// Go prints by default tells its user nothing.
func quitSilently() {
	if os.Getenv(DebugVariable) != "" {
		return
	}
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGQUIT)
	go func() {
		<-quit
		os.Exit(ExitQuit)
	}()
}
