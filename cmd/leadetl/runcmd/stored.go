package runcmd

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/pace"
)

// answersOf opens the stored answers of a state for the resolvers of a run. Those in a folder are
// one store, which all share; on S3 each resolver has a working copy of its own.
type answersOf struct {
	wire.State
	store  *answers.Store // of a folder, once it is open
	copies int            // on S3
	opened wire.Closers
}

// open opens the answers of a scope, with look to make no calls; nil if there are none then. For a
// state on S3 it opens a working copy, into which the run loads the stored answers that it needs.
func (a *answersOf) open(ctx context.Context, of answers.Scope, look bool, calls *pace.Controller) (storedAnswers, error) {
	switch {
	case a.store != nil:
		return a.store, nil
	case a.Objects == nil && look && !wire.HoldsAnswers(a.Folder):
		return nil, nil
	case a.Objects == nil:
		store, err := wire.OpenAnswers(a.Folder, answers.Options{})
		if err != nil {
			return nil, err
		}
		a.store = store
		a.opened.Add(store.Close)
		return store, nil
	}
	open := a.Objects.Write
	if look {
		open = a.Objects.Look
	}
	folder := wire.AnswersFolder
	if a.copies > 0 {
		folder += fmt.Sprint("-", a.copies)
	}
	a.copies++
	session, err := open(ctx, of, filepath.Join(a.Folder, folder))
	if err != nil {
		return nil, wire.UnlessUnavailable(err)
	}
	session.DelayWrites(calls.Crowded)
	a.opened.Add(func() error { return session.Close(ctx) })
	return session.Answers, nil
}

// Close closes all that is open.
func (a *answersOf) Close() error { return a.opened.Close() }
