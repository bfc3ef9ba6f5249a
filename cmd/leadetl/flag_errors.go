package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError says what is wrong with a flag in words of the command line
// instead of those of the parser.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var wrong *pflag.InvalidValueError
	see := fmt.Sprintf("; see %s --help", c.CommandPath())
	switch {
	case errors.As(err, &wrong):
		return fmt.Errorf("--%s %q: %s%s", wrong.GetFlag().Name, wrong.GetValue(), wanted(wrong), see)
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var names []string
		for _, name := range flagNames(c.Flags()) {
			names = append(names, "--"+name)
		}
		name := "--" + unknown.GetSpecifiedName()
		return fmt.Errorf("unknown flag: %s%s%s", name, guess(name, names), see)
	}
	return fmt.Errorf("%w%s", err, see)
}

// wanted says what a flag takes.
func wanted(e *pflag.InvalidValueError) string {
	switch e.GetFlag().Value.Type() {
	case "int", "int64":
		return "write a whole number"
	case "bool":
		return "write true or false"
	case "duration":
		return "write a time such as 30s or 8h"
	}
	return e.Unwrap().Error()
}

// flagNames are the names a command line or a job file may set.
func flagNames(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			names = append(names, f.Name)
		}
	})
	return names
}

// guess names what a mistyped name was probably meant to be, if anything.
func guess(name string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	if best := nearest(name, known); begins(best, name) || edits(name, best) <= max(2, len(name)/3) {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}

// nearest is the name that takes the fewest edits to reach, of those that
// begin so if there are any.
func nearest(name string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int {
		if begins(a, name) != begins(b, name) {
			if begins(a, name) {
				return -1
			}
			return 1
		}
		return cmp.Compare(edits(name, a), edits(name, b))
	})
}

// begins reports whether a name begins with what was typed, if that is enough
// to tell names by.
func begins(name, typed string) bool {
	return len(strings.TrimLeft(typed, "-")) >= 4 && strings.HasPrefix(name, typed)
}

// edits is the Levenshtein distance of two words.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
