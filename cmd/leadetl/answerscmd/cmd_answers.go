// Package answerscmd holds the commands of leadetl answers, which list, export,
// copy and forget what runs have bought.
package answerscmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
)

// NewCommand returns the command leadetl answers.
func NewCommand(std cli.Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "answers",
		Short: "Show, export, import and forget answers that runs have bought",
		Long: `Runs with --resolver URL store every answer they buy, and every call without an
answer that may have been billed, in the folder answers of their state folder.

stat, list and export change nothing: they work beside a run, on a full disk and
in a folder that cannot be written to, and show what is on disk when they begin.
The others need that no run uses the folder.

leadetl answers copy puts them on S3, and back.`,
	}
	c.AddCommand(newAnswersStatCommand(std), newAnswersListCommand(std), newAnswersExportCommand(std), newAnswersImportCommand(std), newAnswersForgetCommand(std),
		newAnswersCopyCommand(std), newAnswersCompactCommand(std), newAnswersRunsCommand(std))
	return c
}

// stored selects the answers that a command works on.
type stored struct {
	state     string
	service   string
	operation string
	s3        wire.S3
}

// command adds what all answers commands share.
func (s *stored) command(c *cobra.Command) *cobra.Command {
	c.Annotations = cli.ExitCodes(map[int]string{
		cli.ExitTryAgain:    "stored answers in use by another process, or S3 out of reach; run the same command later",
		cli.ExitInterrupted: "interrupted",
	})
	c.Flags().SortFlags = false
	return c
}

// changing is command for commands that change a folder or S3.
func (s *stored) changing(c *cobra.Command) *cobra.Command {
	s.command(c)
	c.Flags().StringVar(&s.state, "state", wire.DefaultStateDir(), "`folder` with the state of runs, or s3://bucket/prefix/")
	s.s3.Register(c.Flags())
	return c
}

// reading is command for commands that read from a folder or S3.
func (s *stored) reading(c *cobra.Command) *cobra.Command {
	s.command(c)
	c.Flags().StringVar(&s.state, "state", wire.DefaultStateDir(), "`folder` with the state of runs, or s3://bucket/prefix/")
	s.s3.RegisterReading(c.Flags())
	return c
}

// filtered adds the flags that select answers.
func (s *stored) filtered(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&s.service, "service", "", "only answers of the service at this `URL`, or of this provider")
	c.Flags().StringVar(&s.operation, "operation", "", "only answers to this `operation`, or to this question of a provider")
	return c
}

// filter returns the filter from the flags.
func (s *stored) filter() (answers.Filter, error) {
	op := resolution.Operation(s.operation)
	if _, known := resolution.ParseOperation(s.operation); op != "" && !known && !(answers.Scope{Operation: op}).IsProvider() {
		return answers.Filter{}, cli.UsageError(fmt.Errorf("unknown --operation %q%s", s.operation, suggest.OneOf(s.operation, resolution.OperationNames())))
	}
	return answers.Filter{Service: strings.TrimRight(s.service, "/"), Operation: op}, nil
}

// stores opens no store yet. The error is a usage error if nothing is stored.
func (s *stored) stores(ctx context.Context, std cli.Streams) (*answers.Stores, error) {
	places, err := wire.OpenAnswers(ctx, s.state, &s.s3, std)
	if err != nil {
		return nil, err
	}
	_, err = wire.StoredAnswers(ctx, places, s.state)
	return answers.NewStores(places, answers.Options{}), err
}

// read runs work on the contents of a folder or S3. A run may use it at the same time.
func (s *stored) read(ctx context.Context, std cli.Streams, work func(*answers.Contents) error) (err error) {
	places, err := wire.OpenAnswers(ctx, s.state, &s.s3, std)
	if err != nil {
		return err
	}
	contents, err := wire.ReadAnswers(ctx, places, s.state)
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	defer func() { err = errors.Join(err, contents.Close()) }()
	return cli.Interrupted(ctx, work(contents))
}
