package cliflag

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/internal/suggest"
)

// Variable is the environment variable of a flag: LEADETL_MAX_CREDITS for
// max-credits.
func Variable(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// ApplyEnvironment sets the flags that are not given from their environment
// variables, except the named ones. Empty variables are ignored. Variables of
// other names are ignored unless they are probably misspelled. The error joins
// all problems.
func ApplyEnvironment(flags *pflag.FlagSet, except ...string) error {
	var problems []error
	for _, name := range Names(flags) {
		value := os.Getenv(Variable(name))
		if value == "" || flags.Changed(name) || slices.Contains(except, name) {
			continue
		}
		if err := flags.Set(name, value); err != nil {
			problems = append(problems, settingError(Variable(name), err))
		}
	}
	return errors.Join(append(problems, misspelled(flags)...)...)
}

// misspelled finds environment variables that are close to that of a flag.
func misspelled(flags *pflag.FlagSet) (problems []error) {
	var known []string
	for _, name := range Names(flags) {
		known = append(known, Variable(name))
	}
	for _, pair := range os.Environ() {
		variable, value, _ := strings.Cut(pair, "=")
		name, ours := strings.CutPrefix(variable, variablePrefix)
		if !ours || value == "" || slices.Contains(known, variable) {
			continue
		}
		best := suggest.Nearest(variable, known)
		if suggest.Edits(variable, best) <= min(2, len(name)/3) && len(name) >= minMisspelled {
			problems = append(problems, fmt.Errorf("unknown environment variable %s; did you mean %s?", variable, best))
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return problems
}

const (
	variablePrefix = "LEADETL_"
	// minMisspelled is the minimum length of a name, without the prefix, to
	// report it as misspelled. Shorter names are similar to too many others.
	minMisspelled = 5
)

// settingError names the setting that has a wrong value.
func settingError(setting string, err error) error {
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("%s %q: %s", setting, wrong.GetValue(), ExpectedValue(wrong))
	}
	return fmt.Errorf("%s: %w", setting, err)
}

var (
	reference    = regexp.MustCompile(`\$?\$\{[^}]*\}?`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// expand replaces each ${NAME} by the environment variable NAME. $${NAME}
// stands for the text ${NAME}.
func expand(text string) (expanded string, err error) {
	var problems []string
	expanded = reference.ReplaceAllStringFunc(text, func(ref string) string {
		if escaped, ok := strings.CutPrefix(ref, "$$"); ok {
			return "$" + escaped
		}
		name, closed := strings.CutSuffix(strings.TrimPrefix(ref, "${"), "}")
		value, set := os.LookupEnv(name)
		switch {
		case !closed || !variableName.MatchString(name):
			problems = append(problems, fmt.Sprintf("%q is not a variable; write ${NAME}, or $${ for the text ${", ref))
		case !set:
			problems = append(problems, fmt.Sprintf("the environment variable %s is not set", name))
		}
		return value
	})
	if problems != nil {
		return "", errors.New(strings.Join(problems, "; "))
	}
	return expanded, nil
}
