package answerscmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/objectstate"
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

On S3 the answers are Parquet files, sorted by key hash, which DuckDB and others
read. The store has to support conditional writes.

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
			return interrupted(c.Context(), at.copy(c.Context(), std, args[0], args[1]))
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
	from, closeFrom, err := s.open(ctx, std, fromName, answers.Options{MustExist: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeFrom()) }()
	scopes, err := from.Scopes(ctx)
	if err != nil {
		return err
	}
	if len(scopes) == 0 {
		return cli.UsageError(fmt.Errorf("%s has no stored answers to copy", fromName))
	}
	to, closeTo, err := s.open(ctx, std, toName, answers.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeTo()) }()
	release, err := claim(ctx, to, scopes, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	ctx, stop, err := runview.Watch(ctx, std, "copying", "answer", true)
	if err != nil {
		return err
	}
	defer stop()
	if counts, ok := from.(source); ok {
		if err := expect(ctx, counts, f); err != nil {
			return err
		}
	}
	var all answers.Taken
	for _, of := range scopes {
		if !f.Selects(of) {
			continue
		}
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

// open opens one end of a copy.
func (s *stored) open(ctx context.Context, std cli.Streams, name string, o answers.Options) (_ answers.Keeper, closeIt func() error, err error) {
	if objects.Is(name) {
		state, err := wire.OpenObjectState(ctx, name, &s.s3, std)
		return state, func() error { return nil }, err
	}
	store, err := wire.OpenAnswers(name, o)
	if err != nil {
		return nil, nil, err
	}
	return store, store.Close, nil
}

// claim keeps other processes from writing answers of the services of scopes.
// An open folder does that by itself.
func claim(ctx context.Context, to answers.Keeper, scopes []answers.Scope, f answers.Filter) (release func() error, err error) {
	state, onS3 := to.(*objectstate.State)
	if !onS3 {
		return func() error { return nil }, nil
	}
	var services []string
	for _, of := range scopes {
		if f.Selects(of) {
			services = append(services, of.Service)
		}
	}
	lease, err := state.Claim(ctx, services...)
	if err != nil {
		return nil, err
	}
	return lease.Release, nil
}

func newAnswersCompactCommand(std cli.Streams) *cobra.Command {
	var at stored
	c := at.filtered(at.writing(&cobra.Command{
		Use:   "compact --state s3://BUCKET/PREFIX/",
		Short: "Merge the files of answers on S3",
		Long: `Merge the files of answers of each service and operation on S3, so that each
question is in one of them. Copying does this by itself from time to time. The
files that were merged are deleted a day later, by the next command that writes.`,
		Example: `  leadetl answers compact --state s3://leads/state/`,
		Args:    cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return interrupted(c.Context(), at.compact(c.Context(), std))
		},
	}))
	return c
}

func (s *stored) compact(ctx context.Context, std cli.Streams) (err error) {
	f, err := s.filter()
	if err != nil {
		return err
	}
	if !objects.Is(s.state) {
		return cli.UsageError(errors.New("--state: only answers on S3 are compacted; name s3://bucket/prefix/"))
	}
	state, err := wire.OpenObjectState(ctx, s.state, &s.s3, std)
	if err != nil {
		return err
	}
	scopes, err := state.Scopes(ctx)
	if err != nil {
		return err
	}
	release, err := claim(ctx, state, scopes, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	before, after := 0, 0
	for _, of := range scopes {
		if !f.Selects(of) {
			continue
		}
		were, are, err := state.Compact(ctx, of)
		if err != nil {
			return err
		}
		before, after = before+were, after+are
	}
	_, err = fmt.Fprintf(std.Out, "%s before, %d after\n", figures.Plural(before, "file"), after)
	return err
}
