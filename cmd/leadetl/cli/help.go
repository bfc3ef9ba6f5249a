package cli

import (
	"github.com/spf13/cobra"
)

// usageTemplate is what every help text ends with, no wider than 100 columns:
// how the command is called, what it knows, what it exits with.
var usageTemplate = `Usage:
  {{if .HasAvailableSubCommands}}{{.CommandPath}} COMMAND{{else}}{{.UseLine}}{{end}}
{{- if .HasExample}}

Examples:
{{.Example}}
{{- end}}
{{- if .HasAvailableSubCommands}}

Commands:
{{- range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}
{{- end}}{{end}}
{{- end}}
{{- if and .HasAvailableLocalFlags (not .HasAvailableSubCommands)}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 100 | trimTrailingWhitespaces}}
{{- end}}

Exit codes:
{{- with index .Annotations "` + exitCodesKey + `"}}{{.}}{{else}}` + exitCodeLines(commonExits) + `{{end}}
{{- if .HasAvailableSubCommands}}

Use "{{.CommandPath}} COMMAND --help" for more about a command.
{{- end}}
`

func newHelpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Say what a command does",
		Args:  cobra.ArbitraryArgs,

		DisableFlagsInUseLine: true,
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil {
				return UsageError(err)
			}
			if len(rest) > 0 && c.HasSubCommands() {
				return UsageError(unknownCommand(c, rest[0]))
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}
