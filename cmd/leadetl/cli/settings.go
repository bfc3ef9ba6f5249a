package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Setting is a row of the table of a command's settings. Each is a flag, or a key of the job file
// alone, or both.
type Setting struct {
	Name string // of the flag; the key has _ for -
	To   any    // where the value goes; its default is there
	Use  Use
	Text string // what it means, in the form of pflag
	// Needs is another setting, without which it has no meaning.
	Needs string
	Words []string // values that shells complete
}

// Use says how a setting is given. A command adds marks of its own, from Marks on.
type Use uint

const (
	Everyday Use = 1 << iota // the short help shows the flag
	Key                      // it is no flag
	Whole                    // a value of the list may have commas
	Machine                  // its default is another one elsewhere, as its text says
	Marks
)

// Group is a part of a table below a heading.
type Group struct {
	Title    string
	Settings []Setting
}

// String is the setting in messages.
func (s Setting) String() string {
	if s.Use&Key != 0 {
		return strings.ReplaceAll(s.Name, "-", "_")
	}
	return "--" + s.Name
}

// Bind adds settings to a set of flags.
func Bind(flags *pflag.FlagSet, settings ...Setting) {
	for _, s := range settings {
		switch to := s.To.(type) {
		case *string:
			flags.StringVar(to, s.Name, *to, s.Text)
		case *bool:
			flags.BoolVar(to, s.Name, *to, s.Text)
		case *int:
			flags.IntVar(to, s.Name, *to, s.Text)
		case *int64:
			flags.Int64Var(to, s.Name, *to, s.Text)
		case *time.Duration:
			flags.DurationVar(to, s.Name, *to, s.Text)
		case *[]string:
			if s.Use&Whole != 0 {
				flags.StringArrayVar(to, s.Name, *to, s.Text)
			} else {
				flags.StringSliceVar(to, s.Name, *to, s.Text)
			}
		case pflag.Value:
			f := flags.VarPF(to, s.Name, "", s.Text)
			if usual, has := to.(interface{ Usual() string }); has {
				f.NoOptDefVal = usual.Usual()
			}
		default:
			panic(fmt.Sprintf("setting %s has a value of type %T", s.Name, to))
		}
		if f := flags.Lookup(s.Name); s.Use&Machine != 0 {
			f.DefValue = map[string]string{"int": "0"}[f.Value.Type()] // which help does not show
		}
	}
}

// keysKey annotates a command with the names of its settings that are no flags.
const keysKey = "keys"

// Register adds the settings of groups to all, and those that are flags to the command, whose help
// texts show them by group.
func Register(c *cobra.Command, all *pflag.FlagSet, groups ...Group) {
	all.SortFlags, c.Flags().SortFlags = false, false
	for _, g := range groups {
		Bind(all, g.Settings...)
		for _, s := range g.Settings {
			f := all.Lookup(s.Name)
			f.Annotations = map[string][]string{groupKey: {g.Title}}
			if s.Use&Everyday != 0 {
				f.Annotations[everydayKey] = []string{"true"}
			}
			if s.Use&Key != 0 {
				if c.Annotations == nil {
					c.Annotations = map[string]string{}
				}
				c.Annotations[keysKey] = strings.TrimPrefix(c.Annotations[keysKey]+","+s.String(), ",")
				continue
			}
			if all != c.Flags() {
				c.Flags().AddFlag(f)
			}
			if _, list := s.To.(*[]string); s.Words != nil && list {
				CompleteList(c, s.Name, s.Words...)
			} else if s.Words != nil {
				Complete(c, s.Name, s.Words...)
			}
		}
	}
}

// CheckNeeds refuses settings that are given without the one that they need.
func CheckNeeds(given *pflag.FlagSet, settings []Setting) error {
	var errs []error
	for _, s := range settings {
		if s.Needs != "" && given.Changed(s.Name) && !given.Changed(s.Needs) {
			errs = append(errs, fmt.Errorf("%s needs --%s", s, s.Needs))
		}
	}
	return errors.Join(errs...)
}

// keysOf are the names of the settings of a command that are no flags.
func keysOf(c *cobra.Command) []string {
	return slices.DeleteFunc(strings.Split(c.Annotations[keysKey], ","), func(name string) bool { return name == "" })
}

// keyRow is the row of a setting that is no flag in a list of flags.
var keyRow = regexp.MustCompile(`(?m)^      --=(.*?)   `)

// SettingsText lists all settings with type, default and meaning, and for whom they are.
func SettingsText(groups []Group, who func(Setting) string) string {
	var b strings.Builder
	for _, g := range groups {
		rows := pflag.NewFlagSet(g.Title, pflag.ContinueOnError)
		rows.SortFlags = false
		Bind(rows, g.Settings...)
		for _, s := range g.Settings {
			f := rows.Lookup(s.Name)
			f.Usage += who(s)
			if s.Use&Key != 0 {
				f.Name = "=" + s.String()
			}
		}
		fmt.Fprintf(&b, "%s:\n%s\n", g.Title, keyRow.ReplaceAllString(rows.FlagUsagesWrapped(helpWidth), "      $1      "))
	}
	return b.String()
}
