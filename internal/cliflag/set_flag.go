package cliflag

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/internal/suggest"
)

// setFlag is the flag with key=value pairs for ApplySettings; it is not a key.
const setFlag = "set"

// ApplySettings sets flags from key=value pairs. The keys are those of the
// settings file that the flag nameFlag names. Keys of list flags may be
// repeated. other is as in ApplyFile. The error joins every problem.
func ApplySettings(nameFlag string, pairs []string, flags *pflag.FlagSet, other Keys) error {
	keys := settingsKeys{nameFlag: nameFlag, flags: flags, other: other}
	given, seen := givenFlags(flags), map[string]bool{}
	var problems []error
	for _, pair := range pairs {
		written, value, ok := strings.Cut(pair, "=")
		name := strings.ReplaceAll(written, "_", "-")
		switch {
		case !ok:
			problems = append(problems, fmt.Errorf("--set %q: write key=value", pair))
			continue
		case !keys.known(name):
			problems = append(problems, fmt.Errorf("--set: %w", keys.unknown(written)))
			continue
		case given[name]:
			problems = append(problems, fmt.Errorf("--set %s: --%s is also given; use one of them", written, name))
			continue
		case seen[name] && !keys.takesList(name):
			problems = append(problems, fmt.Errorf("--set %s is given twice; leave one of them out", written))
			continue
		}
		seen[name] = true
		if other.Trees[name] != nil {
			problems = append(problems, fmt.Errorf("--set %s: write it in the %s file, since it has keys and lists of its own", written, nameFlag))
		} else if err := flags.Set(name, value); err != nil {
			problems = append(problems, settingError("--set "+written, err))
		}
	}
	return errors.Join(problems...)
}

func givenFlags(flags *pflag.FlagSet) map[string]bool {
	given := map[string]bool{}
	flags.VisitAll(func(flag *pflag.Flag) { given[flag.Name] = flag.Changed })
	return given
}

// Keys are keys of a settings file with lists and keys of their own, which they receive. Words of
// names are separated by -.
type Keys struct {
	Trees map[string]*Tree
	See   string // what lists all keys
}

// settingsKeys are the keys of a settings file.
type settingsKeys struct {
	nameFlag string
	flags    *pflag.FlagSet
	other    Keys
}

func (k settingsKeys) known(name string) bool {
	if k.other.Trees[name] != nil {
		return true
	}
	return k.flags.Lookup(name) != nil && name != k.nameFlag && name != setFlag && name != "help" && name != "help-all"
}

func (k settingsKeys) takesList(name string) bool {
	flag := k.flags.Lookup(name)
	if flag == nil {
		return false
	}
	_, ok := flag.Value.(pflag.SliceValue)
	return ok
}

// takesPairs reports whether a flag takes a list of name=value.
func (k settingsKeys) takesPairs(name string) bool {
	if !k.takesList(name) {
		return false
	}
	kind, _ := pflag.UnquoteUsage(k.flags.Lookup(name))
	return strings.Contains(kind, "=")
}

// unknown is the error of an unknown key.
func (k settingsKeys) unknown(written string) error {
	keys := slices.Collect(maps.Keys(k.other.Trees))
	for _, name := range Names(k.flags) {
		if k.known(name) {
			keys = append(keys, strings.ReplaceAll(name, "-", "_"))
		}
	}
	if hint := suggest.Name(strings.ReplaceAll(written, "-", "_"), keys); hint != "" {
		return fmt.Errorf("unknown key %q%s", written, hint)
	}
	return fmt.Errorf("unknown key %q; %s", written, cmp.Or(k.other.See, "the keys are the flags that --help lists"))
}
