package cli

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the maximum width of a help text.
const helpWidth = 100

// The annotations of flags and commands from which help texts are made.
const (
	groupKey     = "group"      // of a flag: its heading
	everydayKey  = "everyday"   // of a flag: the short help shows it
	exitCodesKey = "exit-codes" // of a command
)

// helpAll is the flag that prints all groups of a command.
const helpAll = "help-all"

// addHelpAll gives a command with groups the flag --help-all.
func addHelpAll(c *cobra.Command) {
	if !isGrouped(c) {
		return
	}
	all := c.Flags().Bool(helpAll, false, "list all flags")
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if *all {
			return c.Help()
		}
		return run(c, args)
	}
}

func isGrouped(c *cobra.Command) (grouped bool) {
	c.Flags().VisitAll(func(f *pflag.Flag) { grouped = grouped || f.Annotations[groupKey] != nil })
	return grouped
}

// usage writes the end of every help text: how to call the command, its flags
// and its exit codes.
func usage(c *cobra.Command) error {
	out := bufio.NewWriter(c.OutOrStderr())
	call := c.UseLine()
	if c.HasAvailableSubCommands() {
		call = c.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(out, "Usage:\n  %s\n", call)
	if c.HasExample() {
		fmt.Fprintf(out, "\nExamples:\n%s\n", c.Example)
	}
	switch {
	case c.HasAvailableSubCommands():
		fmt.Fprint(out, "\nCommands:\n")
		for _, below := range c.Commands() {
			if below.IsAvailableCommand() {
				fmt.Fprintf(out, "  %-*s %s\n", below.NamePadding(), below.Name(), below.Short)
			}
		}
	case isGrouped(c):
		writeGroups(out, c)
	case c.HasAvailableLocalFlags():
		writeFlags(out, "Flags", c.LocalFlags())
	}
	codes := c.Annotations[exitCodesKey]
	switch {
	case c.HasAvailableSubCommands():
		codes = exitCodeLines(allExits())
	case codes == "":
		codes = exitCodeLines(commonExits)
	}
	fmt.Fprintf(out, "\nExit codes:%s\n", codes)
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(out, "\nUse \"%s COMMAND --help\" for more about a command, and for its exit codes.\n", c.CommandPath())
	}
	return out.Flush()
}

func writeFlags(out *bufio.Writer, title string, flags *pflag.FlagSet) {
	fmt.Fprintf(out, "\n%s:\n%s\n", title, strings.TrimRight(flags.FlagUsagesWrapped(helpWidth), " \n"))
}

// writeGroups writes the flags below their headings: all flags with --help-all,
// otherwise the everyday ones.
func writeGroups(out *bufio.Writer, c *cobra.Command) {
	flags := c.LocalFlags()
	all := flags.Lookup(helpAll).Value.String() == "true"
	var titles []string
	groups := map[string]*pflag.FlagSet{}
	hidden := 0
	flags.VisitAll(func(f *pflag.Flag) {
		title := "Help"
		if group := f.Annotations[groupKey]; group != nil {
			title = group[0]
			if !all && f.Annotations[everydayKey] == nil {
				hidden++
				return
			}
		}
		if groups[title] == nil {
			groups[title] = pflag.NewFlagSet(title, pflag.ContinueOnError)
			groups[title].SortFlags = false
			titles = append(titles, title)
		}
		groups[title].AddFlag(f)
	})
	for _, title := range titles {
		writeFlags(out, title, groups[title])
	}
	if hidden > 0 {
		fmt.Fprintf(out, "\n%d more flags are listed by --%s.\n", hidden, helpAll)
	}
	if keys := len(keysOf(c)); keys > 0 {
		fmt.Fprintf(out, "\n%d settings are no flags, but keys of the job file and of --set: leadetl help settings.\n", keys)
	}
}

// ExitCodes annotates a command with its own exit codes, in addition to the
// common ones. An empty text means the text of exitTable.
func ExitCodes(own map[int]string) map[string]string {
	all := maps.Clone(commonExits)
	maps.Copy(all, own)
	return map[string]string{exitCodesKey: exitCodeLines(all)}
}

// exitCodeLines lists exit codes for a help text.
func exitCodeLines(meanings map[int]string) string {
	var b strings.Builder
	for _, row := range exitTable {
		if text, has := meanings[row.code]; has {
			fmt.Fprintf(&b, "\n  %-5d%s", row.code, cmp.Or(text, row.means))
		}
	}
	return b.String()
}

// newHelpCommand returns the command help. settings prints those of a job.
func newHelpCommand(root *cobra.Command, settings func(io.Writer) error) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND|settings]",
		Short: "Describe a command, or all settings of a job",
		Args:  cobra.ArbitraryArgs,

		DisableFlagsInUseLine: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if slices.Equal(args, []string{"settings"}) {
				return settings(root.OutOrStdout())
			}
			c, rest, err := root.Find(args)
			if err != nil {
				return UsageError(err)
			}
			if len(rest) > 0 && c.HasSubCommands() {
				return UsageError(unknownCommand(c, rest[0], "settings"))
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}
