package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// errNothingStored says that there is nothing to answer offline from.
func errNothingStored(state string) error {
	return cli.UsageError(fmt.Errorf("--offline: nothing is stored under --state %s; runs with --resolver URL store there what they buy, or name another folder", state))
}

// checkOffline tells who answers offline when nothing is stored of what is
// asked: most likely the address is not the one that was bought from.
func checkOffline(ctx context.Context, store *answers.Store, asked answers.Scope, state string, log *slog.Logger) error {
	scopes, err := store.Scopes(ctx)
	if err != nil {
		return err
	}
	if len(scopes) == 0 {
		return errNothingStored(state)
	}
	if slices.ContainsFunc(scopes, func(s answers.Scope) bool { return s.Service == asked.Service && s.Operation == asked.Operation }) {
		return nil
	}
	var stored []string
	for _, s := range scopes {
		stored = append(stored, cli.Printable(fmt.Sprintf("%s of %s", s.Operation, s.Service)))
	}
	slices.Sort(stored)
	log.Warn(fmt.Sprintf("nothing is stored of %s of %s; give --resolver as it was when the answers were bought", asked.Operation, asked.Service),
		"stored", strings.Join(slices.Compact(stored), ", "))
	return nil
}
