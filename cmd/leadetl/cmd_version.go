package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/pipeline/columns"
)

// version is set by the build (-ldflags "-X main.version=v1.2.3").
var version = ""

// programVersion is the name and version that go into manifests.
func programVersion() string {
	if version != "" {
		return "leadetl " + version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return "leadetl " + info.Main.Version
	}
	return "leadetl (devel)"
}

func newVersionCommand(std cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program, its schema and its rules",
		Args:  cli.NoArguments,

		DisableFlagsInUseLine: true,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(std.Out, "%s\nschema %d, rules %d, %s\n",
				programVersion(), columns.SchemaVersion, columns.RulesVersion, runtime.Version())
			return err
		},
	}
}
