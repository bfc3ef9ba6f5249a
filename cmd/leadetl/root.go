package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// streams are the three standard streams of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	root := newRoot(streams{in, out, errOut})
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(errOut, "leadetl:", err)
	}
	return exitCode(err)
}

func newRoot(io streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "leadetl",
		Short: "Turn lists of identifiers into lead data",
		Long: `leadetl reads lists of emails, profile addresses or IP addresses from CSV or
Parquet, resolves each, normalizes hashed emails, phones and companies, and
writes a Parquet dataset that loads everywhere.`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	root.SetIn(io.in)
	root.SetOut(io.out)
	root.SetErr(io.err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError(fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
	})
	root.AddCommand(newRunCommand(io), newDirectoryCommand(io), newVersionCommand(io))
	root.InitDefaultCompletionCmd()
	return root
}

// noArguments and the like report a wrong count of arguments as usage.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usageError(fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
		}
		return nil
	}
}
