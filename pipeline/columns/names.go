package columns

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/sinks/schema"
)

// Rename gives a kept column another name. Old is its name in the input, or the one that
// it would have in the output.
type Rename struct{ Old, New string }

// names decides what the kept columns are called: Snake first, then the prefix in_ for a
// name that is taken, Renames last. "" stands for a column that is left out. usual are the
// names without Snake and Renames. taken has the names of the other columns in lower case.
func (s Settings) names(taken map[string]bool) (names, usual []string, err error) {
	prefixed := func(name string) string {
		if taken[strings.ToLower(name)] {
			return prefix + name
		}
		return name
	}
	for i, name := range s.Kept {
		if s.DropIdentifier && strings.EqualFold(name, s.Identifier) {
			names, usual = append(names, ""), append(usual, "")
			continue
		}
		usual = append(usual, prefixed(name))
		if s.Snake {
			name = schema.Snake(name, i+1)
		}
		names = append(names, prefixed(name))
	}
	before := slices.Clone(names)
	renamed := map[int]bool{}
	for _, r := range s.Renames {
		i, err := s.toRename(r.Old, before, taken)
		switch {
		case err != nil:
			return nil, nil, err
		case renamed[i]:
			return nil, nil, fmt.Errorf("cannot rename column %q twice", s.Kept[i])
		case !schema.IsPlain(r.New):
			return nil, nil, fmt.Errorf("cannot rename column %q to %q: a name that every warehouse takes has letters, digits and underscores only, does not begin with a digit, and has at most %d bytes", r.Old, r.New, schema.MaxName)
		}
		names[i], renamed[i] = r.New, true
	}
	return names, usual, s.checkNames(names, taken)
}

// toRename returns the place of the kept column that is called old in the input, or else
// would be in the output.
func (s Settings) toRename(old string, before []string, taken map[string]bool) (int, error) {
	same := func(name string) bool { return strings.EqualFold(name, old) }
	i := slices.Index(s.Kept, old)
	for _, names := range [][]string{s.Kept, before} {
		if i < 0 {
			i = slices.IndexFunc(names, same)
		}
	}
	switch {
	case i >= 0 && before[i] != "":
		return i, nil
	case i >= 0:
		return 0, fmt.Errorf("cannot rename column %q: --drop-identifier leaves it out", old)
	case taken[strings.ToLower(old)]:
		return 0, fmt.Errorf("cannot rename column %q: it is not from the input, and its name is fixed", old)
	}
	return 0, fmt.Errorf("cannot rename column %q: it is not among the kept input columns%s", old, suggest.Name(old, s.Kept))
}

// checkNames refuses names that are the same. Case does not matter, because Athena,
// BigQuery and Snowflake ignore it.
func (s Settings) checkNames(names []string, taken map[string]bool) error {
	owner := map[string]string{}
	for i, name := range names {
		folded := strings.ToLower(name)
		other, twice := owner[folded]
		switch {
		case name == "":
		case taken[folded]:
			return fmt.Errorf("input column %q would be called %q in the output, as a column that is not from the input; choose another name with --rename %s", s.Kept[i], name, option(s.Kept[i], "NEW"))
		case twice:
			return fmt.Errorf("input columns %q and %q would both be called %q in the output; choose with --select, or name one with --rename %s", other, s.Kept[i], name, option(s.Kept[i], "NEW"))
		}
		owner[folded] = s.Kept[i]
	}
	return nil
}

// option is a value of --rename as a shell takes it.
func option(old, name string) string {
	if schema.IsPlain(old) {
		return old + "=" + name
	}
	return "'" + strings.ReplaceAll(old+"="+name, "'", `'\''`) + "'"
}
