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
	wire.SetGC(wire.RunGC)
	// The first signal requests a clean stop. It also restores the default
	// action, so that a second signal ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
