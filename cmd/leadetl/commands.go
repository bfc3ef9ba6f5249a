package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/resolution"
)

// arrange gives every command its errors of usage, from c downwards.
func arrange(c *cobra.Command) {
	switch {
	case c.HasSubCommands():
		group(c)
	case c.Parent().Name() == "completion": // cobra's own
		c.Args = usage(noArguments)
	default:
		c.Args = usage(c.Args)
	}
	for _, below := range c.Commands() {
		arrange(below)
	}
}

// group makes a command that only holds others print its help when it is
// called alone, and refuse what is none of them. Its flags are not parsed, so
// that of "leadetl rnu --in a.csv" the rnu is what is wrong.
func group(c *cobra.Command) {
	c.DisableFlagParsing = true
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 || slices.Contains(args, "--help") || slices.Contains(args, "-h"):
			return c.Help()
		case strings.HasPrefix(args[0], "-"):
			return usageError(fmt.Errorf("unknown flag: %s; see %s --help", args[0], c.CommandPath()))
		}
		return usageError(unknownCommand(c, args[0]))
	}
}

func unknownCommand(c *cobra.Command, name string) error {
	var names []string
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			names = append(names, below.Name())
		}
	}
	hint := cliflag.Suggest(name, names)
	if _, err := resolution.ParseOperation(name); err == nil {
		hint = fmt.Sprintf("; did you mean %q?", "leadetl run "+name)
	}
	return fmt.Errorf("unknown command %q%s; see %s --help", name, hint, c.CommandPath())
}

// usage reports what check finds wrong with the arguments as usage.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return usageError(fmt.Errorf("%w; see %s --help", err, c.CommandPath()))
		}
		return nil
	}
}

func noArguments(_ *cobra.Command, args []string) error { return atMost(0, args) }

func atMost(n int, args []string) error {
	if len(args) > n {
		return fmt.Errorf("%q is one argument too many", args[n])
	}
	return nil
}

// oneArgument wants exactly one argument, and says what it is.
func oneArgument(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("no %s given", what)
		}
		return atMost(1, args)
	}
}
