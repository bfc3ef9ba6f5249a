package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/resolution"
)

// Setup completes the root command: streams, help, the output of --version and of
// help settings, and the messages and exit codes for wrong usage.
func Setup(root *cobra.Command, std Streams, version string, settings func(io.Writer) error) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return UsageError(flagError(c, err)) })
	root.SetUsageFunc(usage)
	root.SetHelpCommand(newHelpCommand(root, settings))
	root.InitDefaultCompletionCmd()
	checkUsage(root)
	run := root.RunE
	root.RunE = func(c *cobra.Command, args []string) error {
		if slices.Equal(args, []string{"--version"}) {
			_, err := fmt.Fprint(std.Out, version)
			return err
		}
		return run(c, args)
	}
}

// checkUsage makes c and its subcommands report wrong usage as usage errors.
func checkUsage(c *cobra.Command) {
	switch {
	case c.HasSubCommands():
		group(c)
	case c.Parent().Name() == "completion": // added by cobra
		c.Args = reportUsage(NoArguments)
	default:
		c.Args = reportUsage(c.Args)
		addHelpAll(c)
	}
	for _, below := range c.Commands() {
		checkUsage(below)
	}
}

// group makes a command with subcommands print its help when it is called
// alone, and refuse unknown subcommands. It does not parse flags, so that the
// error about "leadetl rnu --in a.csv" is about rnu.
func group(c *cobra.Command) {
	c.DisableFlagParsing = true
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 || slices.Contains(args, "--help") || slices.Contains(args, "-h"):
			return c.Help()
		case strings.HasPrefix(args[0], "-"):
			return UsageError(fmt.Errorf("unknown flag: %s; see %s --help", args[0], c.CommandPath()))
		}
		return UsageError(unknownCommand(c, args[0]))
	}
}

// unknownCommand is the error of a name that is no command below c, and none of others.
func unknownCommand(c *cobra.Command, name string, others ...string) error {
	names := others
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			names = append(names, below.Name())
		}
	}
	hint := suggest.Name(name, names)
	if _, known := resolution.ParseOperation(name); known {
		hint = fmt.Sprintf("; did you mean %q?", "leadetl run "+name)
	}
	return fmt.Errorf("unknown command %q%s; see %s --help", name, hint, c.CommandPath())
}

// reportUsage turns the errors of check into usage errors.
func reportUsage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		err := strayValue(c.Flags(), args)
		if err == nil {
			err = check(c, args)
		}
		if err != nil {
			return UsageError(fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
		}
		return nil
	}
}

// strayValue refuses an argument that is meant for a flag whose value needs a =.
func strayValue(flags *pflag.FlagSet, args []string) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if f.NoOptDefVal == "" || f.Value.Type() == "bool" {
			return
		}
		for _, arg := range args {
			if isValue := strings.IndexAny(arg, "0123456789") == 0 || arg == "true" || arg == "false"; isValue && err == nil {
				err = fmt.Errorf("unexpected argument %q; write --%s=%s", arg, f.Name, arg)
			}
		}
	})
	return err
}

// NoArguments refuses arguments.
func NoArguments(_ *cobra.Command, args []string) error { return AtMost(0, args) }

// AtMost refuses more than n arguments.
func AtMost(n int, args []string) error {
	if len(args) > n {
		return fmt.Errorf("unexpected argument %q", args[n])
	}
	return nil
}

// OneArgument requires one argument; what describes it.
func OneArgument(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("no %s given", what)
		}
		return AtMost(1, args)
	}
}
