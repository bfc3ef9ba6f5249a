package answerscmd

import (
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
bodies are in body, other text in body_text, and binary bodies in body_base64.

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
					return answers.Export(std.Out, s.List(c.Context(), f))
				}
				return exportFile(out, s.List(c.Context(), f))
			})
		},
	}))
	c.Flags().StringVar(&out, "out", "", "`file` to write; replaces an existing one (default: standard output)")
	return c
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
