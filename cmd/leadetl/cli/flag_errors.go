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
var flagOf = map[string]string{
	"i": "in", "input": "in", "o": "out", "output": "out", "keep": "select", "columns": "select", "fields": "select",
	"country": "default-region", "region": "default-region",
}

// suggestFlag ends a message about an unknown flag with a suggestion.
func suggestFlag(c *cobra.Command, name string) string {
	var known, written []string // written are pairs: a name, and how it is given
	for _, flag := range cliflag.Names(c.Flags()) {
		known, written = append(known, flag), append(written, strconv.Quote(flag), strconv.Quote("--"+flag))
	}
	for _, key := range keysOf(c) {
		flag := strings.ReplaceAll(key, "_", "-")
		known, written = append(known, flag), append(written, strconv.Quote(flag), strconv.Quote("--set "+key))
	}
	meant := ""
	for _, exact := range []string{name, flagOf[name]} { // name: -out instead of --out
		if slices.Contains(known, exact) {
			meant = fmt.Sprintf("; did you mean %q?", exact)
		}
	}
	if meant == "" && len(name) > 1 {
		meant = suggest.Name(name, known)
	}
	return strings.NewReplacer(written...).Replace(meant)
}
