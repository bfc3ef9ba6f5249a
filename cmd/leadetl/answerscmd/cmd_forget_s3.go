package answerscmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/objectstate"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
)

// choices returns what to forget of a scope.
type choices func(of answers.Scope) objectstate.Choice

// forgetOnS3 forgets from a state on S3, one scope after the other.
func (f *forgetFlags) forgetOnS3(ctx context.Context, std cli.Streams) (err error) {
	state, err := wire.OpenObjectState(ctx, f.stored.state, &f.stored.s3, std)
	if err != nil {
		return err
	}
	keeps, err := state.KeepsVersions(ctx)
	if err != nil {
		return interrupted(ctx, err)
	}
	if keeps && !f.deleteVersions {
		return cli.UsageError(fmt.Errorf("%s is in a bucket that keeps earlier versions of objects, and with them what is forgotten; --delete-versions deletes the versions too", state))
	}
	e := &eraser{evenOpen: f.evenOpen, kept: map[answers.Hash]bool{}}
	scopes, err := state.Scopes(ctx)
	if err != nil {
		return interrupted(ctx, err)
	}
	if len(scopes) == 0 {
		return cli.UsageError(fmt.Errorf("%s has no stored answers; name another --state", state))
	}
	choose, err := f.choices(ctx, std, e, state, scopes)
	if err != nil {
		return interrupted(ctx, err)
	}
	release, err := claim(ctx, state, scopes, answers.Filter{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	for _, of := range scopes {
		c := choose(of)
		c.EvenOpen, c.Versions = f.evenOpen, keeps
		done, failure := state.Forget(ctx, of, c)
		e.forgotten += done.Questions
		e.open += done.Open
		for _, h := range done.Kept {
			e.kept[h] = true
		}
		if err = failure; err != nil {
			break
		}
	}
	if f.olderThan > 0 {
		fmt.Fprintf(std.Out, "%s forgotten\n", figures.Plural(e.forgotten, "answer"))
		return interrupted(ctx, err)
	}
	return e.report(std, interrupted(ctx, err))
}

// choices reads the lists or the input.
func (f *forgetFlags) choices(ctx context.Context, std cli.Streams, e *eraser, state *objectstate.State, scopes []answers.Scope) (choices, error) {
	switch {
	case len(f.files) > 0:
		lists, err := f.readLists(ctx)
		if err != nil {
			return nil, err
		}
		e.bad, e.places = int(lists.Bad), lists.Places
		who := lists.Set.Finder()
		return func(answers.Scope) objectstate.Choice {
			return objectstate.Choice{
				Answer: func(i answers.Item) bool { return who.Names(i.Key) || namesIn(i.Body, who) },
				Call:   func(c answers.OpenCall) bool { return namesCall(c, who) },
			}
		}, nil
	case len(f.in) > 0:
		hashes := []answers.Hash{} // not nil: an empty input chooses nothing
		err := f.readInput(ctx, std, func(reader *sources.Reader, kind resolution.Identifier) error {
			about := subjects{kind: kind, scopes: scopes, region: f.defaultRegion}
			err := e.eachKey(ctx, reader, f.keys(kind), func(_ context.Context, keys []string) error {
				hashes = append(hashes, about.questions(keys)...)
				return nil
			})
			if err != nil {
				return err
			}
			found, err := about.foundAmong(counted(ctx, state.List(ctx, answers.Filter{Bodies: true})), hashes)
			hashes = append(hashes, found...)
			return err
		})
		return func(answers.Scope) objectstate.Choice { return objectstate.Choice{Hashes: hashes} }, err
	case len(f.hashes) > 0:
		hashes, err := parseHashes(f.hashes)
		return func(answers.Scope) objectstate.Choice { return objectstate.Choice{Hashes: hashes} }, cli.UsageError(err)
	}
	before := time.Now().Add(-time.Duration(f.olderThan))
	return func(answers.Scope) objectstate.Choice {
		return objectstate.Choice{
			Answer: func(i answers.Item) bool { return i.Received.Before(before) },
			Body:   func(c answers.OpenCall) bool { return c.Sent.Before(before) },
		}
	}, nil
}
