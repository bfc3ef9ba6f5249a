package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/program"
)

const helpWidth = 100

// TestHelp holds every help text to the same form.
func TestHelp(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/home/ada/.local/state")
	more := map[string][]string{
		"leadetl run":              {"3  ", "4  ", "5  ", "130"},
		"leadetl plan":             {"3  ", "5  ", "130"},
		"leadetl survey":           {"5  ", "130"},
		"leadetl part":             {"5  ", "130"},
		"leadetl finish":           {"3  ", "5  ", "130"},
		"leadetl doctor":           {"4  ", "5  ", "130"},
		"leadetl head":             {"5  ", "130"},
		"leadetl export":           {"5  ", "130"},
		"leadetl find":             {"3  ", "130"},
		"leadetl provider try":     {"3  ", "4  ", "5  ", "130"},
		"leadetl directory import": {"5  ", "130"},
		"leadetl directory verify": {"130"},
		"leadetl answers stat":     {"130"},
		"leadetl answers list":     {"130"},
		"leadetl answers export":   {"130"},
		"leadetl answers forget":   {"3  ", "130"},
		"leadetl answers copy":     {"5  ", "130"},
		"leadetl answers compact":  {"5  ", "130"},
	}
	var out bytes.Buffer
	root := program.NewRoot(cli.Streams{Out: &out, Err: &out})
	for _, c := range all(root) {
		path := c.CommandPath()
		t.Run(path, func(t *testing.T) {
			out.Reset()
			root.SetArgs(append(strings.Fields(path)[1:], "--help"))
			if err := root.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			help := out.String()
			for line := range strings.Lines(help) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > helpWidth {
					t.Errorf("%d columns: %s", n, line)
				}
				if strings.TrimRight(line, " \n") != strings.TrimRight(line, "\n") {
					t.Errorf("ends in space: %q", line)
				}
			}
			_, codes, found := strings.Cut(help, "\nExit codes:\n")
			if !found {
				t.Fatalf("no exit codes in\n%s", help)
			}
			for _, code := range append([]string{"0  ", "1  ", "2  "}, more[path]...) {
				if !strings.Contains("\n"+codes, "\n  "+code+"  ") {
					t.Errorf("exit code %s is not in\n%s", code, codes)
				}
			}
		})
	}
}

// TestFlagTexts holds the flags to one wording: what is taken has a name of
// its own, and the text is a phrase, not a sentence.
func TestFlagTexts(t *testing.T) {
	for _, c := range all(program.NewRoot(cli.Streams{})) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			name, text := pflag.UnquoteUsage(f)
			if slices.Contains([]string{"string", "strings", "stringArray", "int", "limit|share"}, name) {
				t.Errorf("%s --%s takes a %q; say what it is in backquotes", c.CommandPath(), f.Name, name)
			}
			if strings.HasSuffix(text, ".") || text == "" {
				t.Errorf("%s --%s: %q is no phrase", c.CommandPath(), f.Name, text)
			}
		})
	}
}

// all is c and every command below it that help texts name.
func all(c *cobra.Command) []*cobra.Command {
	found := []*cobra.Command{c}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			found = append(found, all(below)...)
		}
	}
	return found
}
