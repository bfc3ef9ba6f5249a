package answerscmd

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/pipeline/answers"
)

func newAnswersExportCommand(std cli.Streams) *cobra.Command {
	var at stored
	var out string
	c := at.filtered(at.reading(&cobra.Command{
		Use:   "export",
		Short: "Write stored answers as JSON lines, with keys and bodies",
		Long: `Write the stored answers as JSON lines, oldest first (those on S3 in the order of
their key hashes): the question, its outcome, and the answer as received. JSON
bodies are in body, other text in body_text, and binary bodies in body_base64. Open
calls with an answer that could not be read come last, with their state as outcome.

The output is personal data: the keys and the answers. With --out only the
owner can read the file, and an interrupted export writes no file.`,
		Example: `  leadetl answers export --operation enrichment --out answers.jsonl`,
		Args:    cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			f, err := at.filter()
			if err != nil {
				return err
			}
			f.Bodies = true
			return at.read(c.Context(), std, func(s source) error {
				if out == "" {
					return answers.Export(std.Out, exported(c.Context(), s, f))
				}
				return exportFile(out, exported(c.Context(), s, f))
			})
		},
	}))
	c.Flags().StringVar(&out, "out", "", "`file` to write; replaces an existing one (default: standard output)")
	return c
}

// exported lists stored answers, and then the kept bodies of open calls.
func exported(ctx context.Context, from source, f answers.Filter) iter.Seq2[answers.Item, error] {
	return func(yield func(answers.Item, error) bool) {
		for i, err := range from.List(ctx, f) {
			if !yield(i, err) {
				return
			}
		}
		for _, calls := range []iter.Seq2[answers.OpenCall, error]{from.Unknown(ctx), from.Parked(ctx)} {
			for c, err := range calls {
				var i answers.Item
				if err == nil {
					i, err = c.Item()
				}
				if (err != nil || len(i.Body) > 0 && f.Selects(c.Scope)) && !yield(i, err) {
					return
				}
			}
		}
	}
}

func exportFile(path string, items iter.Seq2[answers.Item, error]) error {
	file, err := atomicfile.Create(path)
	if err != nil {
		return cli.UsageError(fmt.Errorf("--out: %w", err))
	}
	if err := file.Chmod(0o600); err != nil {
		return errors.Join(err, file.Abort())
	}
	if err := answers.Export(file, items); err != nil {
		return errors.Join(err, file.Abort())
	}
	return file.Commit()
}
