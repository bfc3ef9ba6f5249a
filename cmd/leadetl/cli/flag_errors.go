package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/internal/cliflag"
)

// flagError says what is wrong with a flag in words of the command line
// instead of those of the parser.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var wrong *pflag.InvalidValueError
	see := fmt.Sprintf("; see %s --help", c.CommandPath())
	switch {
	case errors.As(err, &wrong):
		return fmt.Errorf("--%s %q: %s%s", wrong.GetFlag().Name, wrong.GetValue(), cliflag.ExpectedValue(wrong), see)
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var names []string
		for _, name := range cliflag.Names(c.Flags()) {
			names = append(names, "--"+name)
		}
		name := "--" + unknown.GetSpecifiedName()
		return fmt.Errorf("unknown flag: %s%s%s", name, cliflag.Suggest(name, names), see)
	}
	return fmt.Errorf("%w%s", err, see)
}
