package answerscmd

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/answers"
)

func newAnswersImportCommand(std cli.Streams) *cobra.Command {
	var at stored
	return at.changing(&cobra.Command{
		Use:   "import FILE",
		Short: "Read the lines of leadetl answers export into a state",
		Long: `Read what leadetl answers export wrote into a state. Answers are stored, and open
calls stay open and listed, so that nothing is bought twice. What the state has
already stays: the same command again, also after an interruption, reads only what
is missing.

A line that is not one of an export, or that gives another answer to a question
than the state has, stops the import before anything is written. The message has
its number.

What runs have spent is not in the lines, nor the progress of unfinished runs. So
finish those first. Use only one of the two states for runs from then on.`,
		Example: `  leadetl answers import answers.jsonl --state /var/lib/leadetl`,
		Args:    cli.OneArgument("file"),
		RunE: func(c *cobra.Command, args []string) error {
			return cli.Interrupted(c.Context(), at.importFile(c.Context(), std, args[0]))
		},
	})
}

func (s *stored) importFile(ctx context.Context, std cli.Streams, path string) (err error) {
	lines, err := answers.OpenImport(ctx, path, os.TempDir())
	if err != nil {
		return importError(err)
	}
	defer func() { err = errors.Join(err, lines.Close()) }()
	into, err := s.open(ctx, std, s.state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, into.Close()) }()
	if err := claim(ctx, into, lines.Scopes(), s.state); err != nil {
		return err
	}
	if err := lines.Check(ctx, into); err != nil {
		return importError(err)
	}
	taken, err := lines.Take(ctx, into)
	if err != nil {
		return importError(err)
	}
	_, err = fmt.Fprintf(std.Out, "%s and %s imported\n", figures.Plural(int(taken.Answers), "answer"), figures.Plural(int(taken.Calls), "open call"))
	return err
}

// importError distinguishes a line that cannot be imported from a failure.
func importError(err error) error {
	if _, line := errors.AsType[*answers.LineError](err); line {
		return cli.UsageError(err)
	}
	return err
}
