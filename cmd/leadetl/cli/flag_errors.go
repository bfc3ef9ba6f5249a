package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/suggest"
)

// flagError describes an invalid flag in terms of the command line instead of
// the parser.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var wrong *pflag.InvalidValueError
	see := fmt.Sprintf("; see %s --help", c.CommandPath())
	switch {
	case errors.As(err, &wrong):
		return fmt.Errorf("--%s %q: %s%s", wrong.GetFlag().Name, wrong.GetValue(), cliflag.ExpectedValue(wrong), see)
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		name := unknown.GetSpecifiedName()
		return fmt.Errorf("unknown flag: --%s%s%s", name, suggestFlag(c, name), see)
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedShortnames()
		long, _, _ := strings.Cut(name, "=")
		return fmt.Errorf("unknown flag: -%s%s%s", name, suggestFlag(c, long), see)
	}
	return fmt.Errorf("%w%s", err, see)
}

// flagOf maps names that other programs use to our flags.
var flagOf = map[string]string{"i": "in", "input": "in", "o": "out", "output": "out"}

// suggestFlag ends a message about an unknown flag with a suggestion.
func suggestFlag(c *cobra.Command, name string) string {
	known, keys := cliflag.Names(c.Flags()), keysOf(c)
	for _, meant := range []string{name, flagOf[name]} { // name: -out instead of --out
		if slices.Contains(known, meant) {
			return fmt.Sprintf("; did you mean %q?", "--"+meant)
		}
	}
	if slices.Contains(keys, name) {
		return fmt.Sprintf("; it is a key of the job file, and of --set %s=VALUE", strings.ReplaceAll(name, "-", "_"))
	}
	var flags []string
	for _, flag := range append(known, keys...) {
		flags = append(flags, "--"+flag)
	}
	if len(name) == 1 {
		return ""
	}
	return suggest.Name("--"+name, flags)
}
