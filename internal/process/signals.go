package process

import (
	"context"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// Stopped returns a context that ends with the first SIGINT, SIGTERM or SIGHUP. A second SIGINT or
// SIGTERM ends the process at once. SIGHUP does not: a terminal that is closed may send several. A
// SIGHUP that was ignored when the process began, as by nohup, stays ignored.
func Stopped() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	if !signal.Ignored(unix.SIGHUP) {
		closed := make(chan os.Signal, 1)
		signal.Notify(closed, unix.SIGHUP)
		go func() {
			<-closed
			cancel()
		}()
	}
	ctx, restore := signal.NotifyContext(ctx, os.Interrupt, unix.SIGTERM)
	context.AfterFunc(ctx, func() {
		restore()
		cancel()
	})
	return ctx
}
