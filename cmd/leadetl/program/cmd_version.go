package program

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/pipeline/columns"
)

func newVersionCommand(std cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program, its schema and its rules",
		Args:  cli.NoArguments,

		DisableFlagsInUseLine: true,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(std.Out, versionText())
			return err
		},
	}
}

// versionText returns the output of leadetl version and leadetl --version.
func versionText() string {
	return fmt.Sprintf("%s\nschema %d, rules %d, %s\n", cli.ProgramVersion(), columns.SchemaVersion, columns.RulesVersion, runtime.Version())
}
