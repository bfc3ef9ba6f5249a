package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
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
		if key := strings.ReplaceAll(name, "-", "_"); slices.Contains(keysOf(c), key) {
			return fmt.Errorf("--%s is a key, not a flag: write --set %s=VALUE, or have it in the job file; leadetl help settings lists all", name, key)
		}
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
	known := cliflag.Names(c.Flags())
	for _, meant := range []string{name, flagOf[name]} { // name: -out instead of --out
		if slices.Contains(known, meant) {
			return fmt.Sprintf("; did you mean %q?", "--"+meant)
		}
	}
	if len(name) == 1 {
		return ""
	}
	var flags, asKey []string // asKey are pairs: a flag that is a key, and how it is written
	for _, flag := range known {
		flags = append(flags, "--"+flag)
	}
	for _, key := range keysOf(c) {
		flag := "--" + strings.ReplaceAll(key, "_", "-")
		flags, asKey = append(flags, flag), append(asKey, strconv.Quote(flag), strconv.Quote("--set "+key))
	}
	return strings.NewReplacer(asKey...).Replace(suggest.Name("--"+name, flags))
}
