// Command leadetl turns lists of identifiers into lead data.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/leadetl/leadetl/cmd/leadetl/wire"
)

func main() {
	wire.SetGC(wire.RunGC)
	// The first signal requests a clean stop. It also restores the default
	// action, so that a second signal ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
