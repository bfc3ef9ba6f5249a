package answerscmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/pipeline/answers"
)

func newAnswersExportCommand(std cli.Streams) *cobra.Command {
	var at stored
	var out string
	c := at.filtered(&cobra.Command{
		Use:   "export",
		Short: "Write stored answers as JSON lines, with keys and bodies",
		Long: `Write the stored answers as JSON lines, the oldest first: what was asked, what
became of it, and the answer as it was received. A body that is JSON is in
body; other text is in body_text, and what is no text in body_base64.

This is personal data: the keys that were asked about, and the answers. --out
makes a file for its owner alone, whole or not at all.`,
		Example: `  leadetl answers export --operation enrichment --out answers.jsonl`,
		Args:    cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			f, err := at.filter()
			if err != nil {
				return err
			}
			return at.on(c.Context(), func(s *answers.Store) error {
				if out == "" {
					return s.Export(c.Context(), std.Out, f)
				}
				return exportFile(c.Context(), s, out, f)
			})
		},
	})
	c.Flags().StringVar(&out, "out", "", "`file` to write, in place of one that is there (default: standard output)")
	return c
}

func exportFile(ctx context.Context, s *answers.Store, path string, f answers.Filter) error {
	file, err := atomicfile.Create(path)
	if err != nil {
		return cli.UsageError(fmt.Errorf("--out: %w", err))
	}
	if err := file.Chmod(0o600); err != nil {
		return errors.Join(err, file.Abort())
	}
	if err := s.Export(ctx, file, f); err != nil {
		return errors.Join(err, file.Abort())
	}
	return file.Commit()
}
