package answerscmd

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/pipeline/answers"
)

func newAnswersExportCommand(std cli.Streams) *cobra.Command {
	var at stored
	var out, table string
	var since cliflag.Day
	c := at.filtered(at.changing(&cobra.Command{
		Use:   "export",
		Short: "Write stored answers and open calls as JSON lines, with keys and bodies",
		Long: `Write the stored answers as JSON lines, in the order of their key
hashes: the question, its outcome, and the answer as received. JSON
bodies are in body, other text in body_text, and binary bodies in body_base64. All
open calls come last: state says unknown or parked, sent_at when the call was sent,
resolution_id which task answers it. deadline is until when a parked call is waited
for, of an unknown call when the service forgets its idempotency key.

leadetl answers import reads these lines, in this version and later ones.

--parquet writes the answers as a table instead, without open calls, for DuckDB and
warehouses: to a file whose name ends in .parquet, or to files of a million rows in a
folder, on S3 too, with _SUCCESS after the last.

The output is personal data: the keys and the answers. With --out only the
owner can read the file, and an interrupted export writes no file.`,
		Example: `  leadetl answers export --operation enrichment --out answers.jsonl
  leadetl answers export --state s3://leads/state/ --parquet s3://leads/bought/ --since 2026-11-01`,
		Args: cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			f, err := at.filter()
			if err != nil {
				return err
			}
			f.Bodies, f.Since = true, since.Midnight()
			if table != "" {
				if out != "" {
					return cli.UsageError(errors.New("give either --out or --parquet"))
				}
				return at.exportTable(c.Context(), std, table, f)
			}
			return at.read(c.Context(), std, func(s *answers.Contents) error {
				ctx, stop := runview.Watch(c.Context(), std, "exporting", "answer", out != "" || !cli.IsTerminal(std.Out))
				defer stop()
				if err := expect(ctx, s, f); err != nil {
					return err
				}
				if out == "" {
					return answers.Export(std.Out, exported(ctx, s, f))
				}
				return exportFile(out, exported(ctx, s, f))
			})
		},
	}))
	c.Flags().StringVar(&out, "out", "", "`file` to write; replaces an existing one (default: standard output)")
	c.Flags().StringVar(&table, "parquet", "", "`file`, folder or s3://bucket/prefix/ for Parquet files in place of JSON lines")
	c.Flags().Var(&since, "since", "only answers received on this `day` or later, and all open calls, such as 2026-11-01")
	return c
}

// exported lists stored answers, and then the open calls. The calls are read first: one that is answered
// meanwhile is then both, and never neither.
func exported(ctx context.Context, from *answers.Contents, f answers.Filter) iter.Seq2[answers.Line, error] {
	return func(yield func(answers.Line, error) bool) {
		calls, err := from.Calls(ctx)
		if err != nil {
			yield(answers.Line{}, err)
			return
		}
		for i, err := range counted(ctx, from.List(ctx, f)) {
			if !yield(answers.Line{Item: i}, err) {
				return
			}
		}
		for i := range calls {
			if f.Selects(calls[i].Scope) && !yield(answers.Line{Call: &calls[i]}, nil) {
				return
			}
		}
	}
}

func exportFile(path string, lines iter.Seq2[answers.Line, error]) error {
	file, err := atomicfile.Create(path, 0o600)
	if err != nil {
		return cli.UsageError(fmt.Errorf("--out: %w", err))
	}
	if err := answers.Export(file, lines); err != nil {
		return errors.Join(err, file.Abort())
	}
	return file.Commit()
}
