package cliflag

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/suggest"
)

// Assignments is a list of name=value that changes settings with defaults. It
// is a pflag.SliceValue.
type Assignments struct {
	example string
	names   []string // nil for any
	set     func(name, value string) error
	given   []string
}

// NewAssignments is a list that calls set for each name=value. Messages show
// the example. Names are those in names, or any if it is nil.
func NewAssignments(example string, names []string, set func(name, value string) error) *Assignments {
	return &Assignments{example: example, names: names, set: set}
}

// Numbers sets numbers, which must be at least 1.
func Numbers(example string, numbers map[string]*int) *Assignments {
	return NewAssignments(example, slices.Sorted(maps.Keys(numbers)), func(name, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return errors.New("not a whole number of at least 1")
		}
		*numbers[name] = n
		return nil
	})
}

// Durations sets durations, which must not be 0.
func Durations(example string, durations map[string]*time.Duration) *Assignments {
	return NewAssignments(example, slices.Sorted(maps.Keys(durations)), func(name, value string) error {
		var a Age
		if err := a.Set(value); err != nil || a == 0 {
			return errors.New("not a time")
		}
		*durations[name] = time.Duration(a)
		return nil
	})
}

func (a *Assignments) String() string { return strings.Join(a.given, ",") }

// Type is the word for the value in help texts.
func (a *Assignments) Type() string { return "name=value" }

// Set adds a name=value.
func (a *Assignments) Set(text string) error { return a.Append(text) }

// Append adds a name=value.
func (a *Assignments) Append(text string) error {
	name, value, _ := strings.Cut(text, "=")
	name = strings.ReplaceAll(name, "-", "_")
	if a.names != nil && !slices.Contains(a.names, name) {
		return fmt.Errorf("unknown name %q%s; write it as in %s", name, suggest.Name(name, a.names), a.example)
	}
	if err := a.set(name, value); err != nil {
		return fmt.Errorf("%w; write it as in %s", err, a.example)
	}
	a.given = append(a.given, text)
	return nil
}

// Replace applies all of a list.
func (a *Assignments) Replace(all []string) error {
	for _, text := range all {
		if err := a.Append(text); err != nil {
			return err
		}
	}
	return nil
}

// GetSlice is what was given.
func (a *Assignments) GetSlice() []string { return a.given }

// Usage is the help text of the flag.
func (a *Assignments) Usage(what string) string {
	return fmt.Sprintf("%s, such as %s; may be given again; names: %s", what, a.example, strings.Join(a.names, ", "))
}
