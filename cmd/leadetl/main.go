// Command leadetl turns lists of identifiers into lead data.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/leadetl/leadetl/cmd/leadetl/wire"
)

func main() {
	// net/http writes to the standard logger what a server sends without being
	// asked, and that may be personal data. Our own log is another one.
	log.SetOutput(io.Discard)
	quitSilently()
	wire.SetGC(wire.RunGC)
	// The first signal requests a clean stop. It also restores the default
	// action, so that a second signal ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// debugVariable asks for the trace of all goroutines on SIGQUIT.
const debugVariable = "LEADETL_DEBUG"

// exitQuit is the exit code after SIGQUIT, as of other programs.
const exitQuit = 128 + int(syscall.SIGQUIT)

// quitSilently ends the process on SIGQUIT at once, as a kill does. The trace that
// Go prints by default tells its user nothing.
func quitSilently() {
	if os.Getenv(debugVariable) != "" {
		return
	}
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGQUIT)
	go func() {
		<-quit
		os.Exit(exitQuit)
	}()
}
