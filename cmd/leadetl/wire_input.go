package main

import (
	"context"
	"errors"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/sources"
)

var errInterruptedEarly = cli.WithCode(cli.ExitInterrupted, errors.New("interrupted before anything was done"))

// openInput is sources.Open that gives up when ctx ends. Open reads the
// header, and a pipe or a person at a terminal may keep it waiting for that:
// the first Ctrl-C would do nothing. The Open under way then stays behind,
// which is fine in a process that is about to end.
func openInput(ctx context.Context, uris []string, o sources.Options) (*sources.List, error) {
	var list *sources.List
	var err error
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		list, err = sources.Open(ctx, uris, o)
	}()
	select {
	case <-opened:
		return list, unlessUnavailable(err)
	case <-ctx.Done():
		return nil, errInterruptedEarly
	}
}
