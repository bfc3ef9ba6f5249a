package answerscmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
)

func newAnswersCopyCommand(std cli.Streams) *cobra.Command {
	var at stored
	c := at.filtered(at.command(&cobra.Command{
		Use:   "copy FROM TO",
		Short: "Copy stored answers between state folders and S3",
		Long: `Copy stored answers and open calls from one state to another. Each is a state
folder or s3://bucket/prefix/. An answer that TO already has stays, unless FROM
has a newer one. So the same command again, also after an interruption, copies
only what is missing.

A store on S3 has to support conditional writes.

The copy is personal data: the keys and the answers. It does not include what
runs have spent, nor the progress of unfinished runs. An open call is then in both
states: let only one of them be used for runs.`,
		Example: `  leadetl answers copy /var/lib/leadetl s3://leads/state/
  leadetl answers copy s3://leads/state/ /var/lib/leadetl`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("name two states, as in: leadetl answers copy /var/lib/leadetl s3://leads/state/")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return cli.Interrupted(c.Context(), at.copy(c.Context(), std, args[0], args[1]))
		},
	}))
	at.s3.Register(c.Flags())
	return c
}

func (s *stored) copy(ctx context.Context, std cli.Streams, fromName, toName string) (err error) {
	f, err := s.filter()
	if err != nil {
		return err
	}
	if isSame(fromName, toName) {
		return cli.UsageError(errors.New("FROM and TO are the same; name two states"))
	}
	places, err := wire.OpenAnswers(ctx, fromName, &s.s3, std)
	if err != nil {
		return err
	}
	from, err := wire.ReadAnswers(ctx, places, fromName)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if from.InUse { // its calls under way would be open in both
		return wire.AnswersError(fromName, fmt.Errorf("%s: %w", fromName, filelock.ErrLocked))
	}
	to, err := s.open(ctx, std, toName)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	scopes, err := from.Scopes(ctx)
	if err != nil {
		return err
	}
	scopes = slices.DeleteFunc(scopes, func(of answers.Scope) bool { return !f.Selects(of) })
	if err := claim(ctx, to, scopes, toName); err != nil {
		return err
	}
	ctx, stop := runview.Watch(ctx, std, "copying", "answer", true)
	defer stop()
	if err := expect(ctx, from, f); err != nil {
		return err
	}
	var all answers.Taken
	for _, of := range scopes {
		calls, err := from.OpenCalls(ctx, of)
		if err != nil {
			return err
		}
		taken, err := to.Take(ctx, of, counted(ctx, from.Sorted(ctx, of)), calls)
		all.Add(taken)
		if err != nil {
			return err
		}
	}
	stop()
	_, err = fmt.Fprintf(std.Out, "%s and %s copied\n", figures.Plural(int(all.Answers), "answer"), figures.Plural(int(all.Calls), "open call"))
	return err
}

// isSame reports whether two names are of one folder, or of one place on S3.
func isSame(a, b string) bool {
	if objects.Is(a) || objects.Is(b) {
		return strings.TrimRight(a, "/") == strings.TrimRight(b, "/")
	}
	first, err := os.Stat(a)
	if err != nil {
		return false // whoever opens it says what is wrong
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// open returns the stores of a state to which answers are written.
func (s *stored) open(ctx context.Context, std cli.Streams, name string) (*answers.Stores, error) {
	places, err := wire.OpenAnswers(ctx, name, &s.s3, std)
	if err != nil {
		return nil, err
	}
	return answers.NewStores(places, answers.Options{}), nil
}

// claim opens the stores of the services of scopes before anything is written to one of them.
func claim(ctx context.Context, to *answers.Stores, scopes []answers.Scope, state string) error {
	for _, of := range scopes {
		if _, err := to.Of(ctx, of.Service); err != nil {
			return wire.AnswersError(state, err)
		}
	}
	return nil
}

func newAnswersCompactCommand(std cli.Streams) *cobra.Command {
	var at stored
	return at.changing(&cobra.Command{
		Use:   "compact",
		Short: "Merge the files of stored answers",
		Long: `Merge the files of stored answers, so that each question is in one of them. Runs do
this by themselves from time to time. On S3, the files that were merged are deleted a day
later, by the next command that writes.`,
		Example: `  leadetl answers compact --state s3://leads/state/`,
		Args:    cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.Interrupted(c.Context(), at.compact(c.Context(), std))
		},
	})
}

func (s *stored) compact(ctx context.Context, std cli.Streams) (err error) {
	stores, err := s.stores(ctx, std)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stores.Close()) }()
	all, err := stores.All(ctx)
	if err != nil {
		return wire.AnswersError(s.state, err)
	}
	before, after := 0, 0
	for _, stored := range all {
		were, are, err := stored.Compact(ctx)
		if err != nil {
			return err
		}
		before, after = before+were, after+are
	}
	_, err = fmt.Fprintf(std.Out, "%s before, %d after\n", figures.Plural(before, "file"), after)
	return err
}
