package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	root := newRoot(streams{in: in, out: out, err: errOut})
	root.SetArgs(args)
	c, err := root.ExecuteContextC(ctx)
	if err != nil {
		report(c, err, errOut)
	}
	return exitCode(err)
}

func newRoot(io streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "leadetl",
		Short: "Turn lists of identifiers into lead data",
		Long: `leadetl reads lists of emails, profile addresses, IP addresses or keyword
searches from CSV or Parquet, on local disk or S3, resolves each, normalizes
hashed emails, phones and companies, and writes a Parquet dataset that loads
everywhere. leadetl serve answers the same questions over HTTP.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(io.in)
	root.SetOut(io.out)
	root.SetErr(io.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usageError(flagError(c, err)) })
	root.SetUsageTemplate(usageTemplate)
	root.SetHelpCommand(newHelpCommand(root))
	root.AddCommand(newRunCommand(io), newPlanCommand(io), newVerifyCommand(io), newSchemaCommand(io), newReportCommand(io), newServeCommand(io), newAdminCommand(io), newDirectoryCommand(io), newAnswersCommand(io), newVersionCommand(io))
	root.InitDefaultCompletionCmd()
	arrange(root)
	return root
}
