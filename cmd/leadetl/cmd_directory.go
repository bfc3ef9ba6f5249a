package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/resolution/directory/ranges"
)

func newDirectoryCommand(std cli.Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "directory",
		Short: "Import, show and check reference data",
		Long: `The embedded engine answers from a directory: a folder of reference data made
from your files. An import replaces all data of a kind, or changes nothing.`,
	}
	c.AddCommand(newDirectoryImportCommand(std), newDirectoryStatCommand(std), newDirectoryVerifyCommand(std))
	return c
}

func newDirectoryImportCommand(std cli.Streams) *cobra.Command {
	var dir string
	var files directory.Files
	options := directory.DefaultOptions()
	badLines := cliflag.NewShare(options.MaxBadLines)
	var fields ranges.Fields
	c := &cobra.Command{
		Use:   "import --directory FOLDER --KIND FILE…",
		Short: "Replace kinds of reference data from files",
		Long: `Replace kinds of reference data from CSV or Parquet files. Columns are found by
name, in any order; other columns are ignored. Lists in a cell are separated by
semicolons.

  people     network_url, first_name last_name headline job_title seniority
             department email emails phone phones street zip_code city state
             company_domain last_seen_at
  companies  domain, name website_url network_url industry revenue
             employee_count year_founded street zip_code city state about
  ip-ranges  cidr, or range_start and range_end (inclusive), with
             company_domain or name, org_type; or any MMDB file
  searches   keyword searched_at network_url email city state zip_code
             job_title lead_type
  visits     ip network_url seen_at confidence

Bad lines are skipped and reported with file, line and reason. When more than
--max-bad-lines are bad, the import fails and the old data stays.`,
		Example: `  leadetl directory import --directory dir --people people.csv --companies companies.csv
  leadetl directory import --directory dir --ip-ranges GeoIP2-Enterprise.mmdb`,
		Annotations: cli.ExitCodes(map[int]string{cli.ExitTryAgain: "directory in use by another import; run the same command later", cli.ExitInterrupted: "interrupted; the old data stays"}),
		Args:        cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if dir == "" {
				return cli.UsageError(errors.New("no --directory; name the folder"))
			}
			if files == (directory.Files{}) {
				return cli.UsageError(errors.New("nothing to import; name at least one of --people, --companies, --ip-ranges, --searches, --visits"))
			}
			options.MaxBadLines = badLines.Fraction()
			overrideFields(&options.Fields, fields)
			report, err := directory.Import(c.Context(), dir, files, options)
			printPlaces(std.Err, report)
			if err != nil {
				return cli.DataError(err)
			}
			return printImport(std.Out, report)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&dir, "directory", "", "`folder` of the directory, made if missing")
	flags.StringVar(&files.People, "people", "", "`file` of people")
	flags.StringVar(&files.Companies, "companies", "", "`file` of companies")
	flags.StringVar(&files.IPRanges, "ip-ranges", "", "`file` of IP ranges, CSV or MMDB")
	flags.StringVar(&files.Searches, "searches", "", "`file` of keyword searches")
	flags.StringVar(&files.Visits, "visits", "", "`file` of visits")
	flags.Var(&badLines, "max-bad-lines", "maximum `share` of bad lines to skip; with more the import fails")
	flags.StringVar(&options.DefaultRegion, "default-region", options.DefaultRegion, "`region` of phone numbers without a country code")
	flags.StringSliceVar(&options.NetworkHosts, "network-hosts", options.NetworkHosts, "`hosts` of profile URLs")
	flags.StringSliceVar(&fields.Name, "mmdb-name", nil, "`fields` of an MMDB file with the name; the first non-empty one is used")
	flags.StringSliceVar(&fields.Domain, "mmdb-domain", nil, "`fields` of an MMDB file with the domain")
	flags.StringSliceVar(&fields.Type, "mmdb-type", nil, "`fields` of an MMDB file with the type of organization")
	return c
}

func overrideFields(to *ranges.Fields, given ranges.Fields) {
	if given.Name != nil {
		to.Name = given.Name
	}
	if given.Domain != nil {
		to.Domain = given.Domain
	}
	if given.Type != nil {
		to.Type = given.Type
	}
}

// shownBadLines is how many places of a kind are printed; all are counted.
const shownBadLines = 20

// printPlaces lists the lines and cells that were left out.
func printPlaces(to io.Writer, report directory.Report) {
	list := func(what string, places []imports.BadLine, count int64) {
		shown := places[:min(len(places), shownBadLines)]
		for _, b := range shown {
			fmt.Fprintf(to, "%s: %s\n", what, b)
		}
		if more := count - int64(len(shown)); more > 0 && len(shown) > 0 {
			fmt.Fprintf(to, "%s: and %s more\n", what, figures.Grouped(more))
		}
	}
	for _, k := range report.Kinds {
		list("skipped", k.BadLines, k.Bad)
		list("left out", k.DroppedCells, k.Dropped)
	}
}

func printImport(to io.Writer, report directory.Report) error {
	table := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	for _, k := range report.Kinds {
		notes := []string{"from " + k.Source}
		if k.Replaced > 0 {
			notes = append(notes, figures.Plural(k.Replaced, "duplicate key"))
		}
		if k.Bad > 0 {
			notes = append(notes, figures.Plural(k.Bad, "bad line")+" skipped")
		}
		if k.Dropped > 0 {
			notes = append(notes, figures.Plural(k.Dropped, "bad cell")+" left out")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", k.Kind, figures.Plural(k.Rows, "row"), k.Took.Round(10*time.Millisecond), strings.Join(notes, ", "))
	}
	return table.Flush()
}

func newDirectoryStatCommand(std cli.Streams) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "stat --directory FOLDER",
		Short: "Show what a directory holds",
		Args:  cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			d, err := wire.OpenDirectory(dir)
			if err != nil {
				return err
			}
			defer d.Close()
			table := tabwriter.NewWriter(std.Out, 0, 0, 3, ' ', 0)
			fmt.Fprintln(table, "KIND\tROWS\tKEYS\tSIZE\tFROM\tIMPORTED")
			for _, k := range d.Stat() {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", k.Kind, figures.Grouped(k.Rows), figures.Grouped(k.Keys), figures.Size(k.Bytes), k.Source, k.Imported.UTC().Format(time.RFC3339))
			}
			fmt.Fprintf(table, "fingerprint\t%s\n", d.Fingerprint())
			return table.Flush()
		},
	}
	c.Flags().StringVar(&dir, "directory", "", "`folder` of the directory")
	return c
}

func newDirectoryVerifyCommand(std cli.Streams) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "verify --directory FOLDER",
		Short: "Read a whole directory and check it",

		Annotations: cli.ExitCodes(map[int]string{cli.ExitInterrupted: "interrupted"}),
		Args:        cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := wire.OpenDirectory(dir)
			if err != nil {
				return err
			}
			defer d.Close()
			if err := d.Verify(c.Context()); err != nil {
				return cli.DataError(err)
			}
			_, err = fmt.Fprintf(std.Out, "%s: verified, %s\n", dir, figures.Plural(len(d.Stat()), "kind"))
			return err
		},
	}
	c.Flags().StringVar(&dir, "directory", "", "`folder` of the directory")
	return c
}
