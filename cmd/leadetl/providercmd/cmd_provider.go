// Package providercmd holds the commands of leadetl provider, which show, check and try entries of providers.
package providercmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/resolution/provider"
)

// NewCommand returns the command leadetl provider.
func NewCommand(std cli.Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "provider",
		Short: "Show, check and try the entries of providers",
		Long: `Show the entries of providers that the program brings along, and check and try
entries of your own. An entry says how an HTTP API of others is asked, and what
its answers mean: docs/reference/entries.md.`,
	}
	c.AddCommand(newProviderListCommand(std), newProviderShowCommand(std), newProviderCheckCommand(std), newTryCommand(std), newProviderSchemaCommand(std))
	return c
}

func newProviderListCommand(std cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the providers that the program has entries for",
		Long: `List the providers that the program has entries for: what each is asked about, how
many keys a request has, the most credits that an answer costs, the day on which
the provider's documentation was read, and the day on which somebody has tried
the entry with a key. A verifier checks a value that another resolver found.`,
		Example: `  leadetl provider list`,
		Args:    cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			table := tabwriter.NewWriter(std.Out, 0, 0, 3, ' ', 0)
			fmt.Fprintln(table, "NAME\tASKED ABOUT\tKEYS IN A REQUEST\tCREDITS AT MOST\tDOCUMENTED\tTRIED")
			entries := provider.Shipped()
			for _, name := range entries.Names() {
				e := entries[name]
				asked, keys := askedAbout(e)
				fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\n", name, asked, keys, e.Price.Max(), e.Documented, e.Tried)
			}
			return table.Flush()
		},
	}
}

// askedAbout says what an entry is asked about, and how many keys a request has at most.
func askedAbout(e *provider.Entry) (asked string, keys int) {
	var kinds []string
	for _, kind := range e.Kinds() {
		kinds = append(kinds, string(kind))
		keys = max(keys, e.BatchSize(kind))
	}
	if asked = strings.Join(kinds, ", "); e.Check != "" {
		asked += " (verifier)"
	}
	return asked, keys
}

func newProviderShowCommand(std cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Print an entry of the program",
		Long: `Print the entry of a provider that the program has: to read what it leaves out, or
to begin an entry of your own. One of yours with the same name is used in its place.`,
		Example: `  leadetl provider show pdl > providers.yaml`,
		Args:    cli.OneArgument("name of a provider"),
		RunE: func(_ *cobra.Command, args []string) error {
			file, is := provider.ShippedFile(args[0])
			if !is {
				return cli.UsageError(fmt.Errorf("there is no entry %q in the program%s; leadetl provider list shows them", args[0], suggest.Name(args[0], provider.ShippedNames())))
			}
			_, err := std.Out.Write(file)
			return err
		},
	}
}

func newProviderCheckCommand(std cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check entries with documented answers, without a network",
		Long: `Check a file of entries. Beside it, NAME.answers.yaml may have answers as the
documentation of provider NAME shows them, each with what it has to be read as;
those are compared with what the entry makes of them.

It connects to nothing, and needs no key.`,
		Example: `  leadetl provider check providers.yaml`,
		Args:    cli.OneArgument("file"),
		RunE: func(_ *cobra.Command, args []string) error {
			content, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			entries, err := provider.Parse(args[0], content)
			if err != nil {
				return cli.UsageError(err)
			}
			wrong := 0
			for _, name := range entries.Names() {
				n, err := checkEntry(entries[name], filepath.Join(filepath.Dir(args[0]), name+".answers.yaml"), std)
				if err != nil {
					return err
				}
				wrong += n
			}
			if wrong > 0 {
				return cli.UsageError(fmt.Errorf("%s reads %s otherwise than documented", args[0], figures.Plural(int64(wrong), "answer")))
			}
			return nil
		},
	}
}

func newProviderSchemaCommand(std cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of entries, which editors take",
		Long: `Print the JSON Schema of a file of entries. An editor with it knows the members, and
marks what has a wrong form.`,
		Example: `  leadetl provider schema > entries.schema.json`,
		Args:    cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := std.Out.Write(provider.Schema)
			return err
		},
	}
}

// checkEntry says what an entry is and what is wrong with it, and counts that.
func checkEntry(e *provider.Entry, file string, std cli.Streams) (wrong int, err error) {
	asked, keys := askedAbout(e)
	fmt.Fprintf(std.Out, "%s: asked about %s, keys in a request: %d, credits of an answer at most: %d\n", e.Name, asked, keys, e.Price.Max())
	if e.TrustsOrder() {
		fmt.Fprintf(std.Out, "%s: an answer to a batch belongs to a key by its order alone; name with id or echo where it says its key, if it does\n", e.Name)
	}
	for _, warning := range e.Warnings() {
		fmt.Fprintf(std.Out, "%s: warning: %s\n", e.Name, warning)
	}
	content, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		_, err = fmt.Fprintf(std.Out, "%s: no documented answers; write some into %s, or let leadetl provider try --save do it\n", e.Name, file)
		return 0, err
	}
	if err != nil {
		return 0, err
	}
	answers, err := provider.ParseDocumented(file, content)
	if err != nil {
		return 0, cli.UsageError(err)
	}
	for _, d := range answers {
		differences := e.Differences(d)
		wrong += min(len(differences), 1)
		for _, difference := range differences {
			fmt.Fprintln(std.Out, difference)
		}
	}
	if difference := e.NoCost(answers); difference != "" {
		wrong++
		fmt.Fprintln(std.Out, difference)
	}
	if wrong == 0 {
		_, err = fmt.Fprintf(std.Out, "%s: documented answers: %d, all read as they say\n", e.Name, len(answers))
	}
	return wrong, err
}
