package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/internal/rows"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/orgtype"
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

// importFlags are the flags of directory import.
type importFlags struct {
	directory string
	s3        wire.S3
	given     map[directory.Kind]*[]string
	options   directory.Options
	badLines  cliflag.Share
	fields    imports.Fields
}

func newDirectoryImportCommand(std cli.Streams) *cobra.Command {
	f := importFlags{given: map[directory.Kind]*[]string{}, options: directory.DefaultOptions()}
	f.badLines = cliflag.NewShare(f.options.MaxBadLines)
	f.options.Called, f.options.OrgTypes = map[string]string{}, map[string]string{}
	c := &cobra.Command{
		Use:   "import --directory FOLDER --KIND FILE…",
		Short: "Replace kinds of reference data from files",
		Long: `Replace kinds of reference data from what --in of leadetl run takes: a path, a
folder, a quoted glob, s3://bucket/key, or - for standard input; CSV (.gz and .zst
too) or Parquet, and CSV on standard input. Columns are found by name, in any order;
other columns are ignored. --map says what the files call a column, for every kind
that has it. Lists in a cell are separated by semicolons.

` + columnsHelp(directory.People) + columnsHelp(directory.Companies) + `  ip-ranges  cidr, or range_start and range_end (inclusive), with
             company_domain or name, org_type; or a local MMDB file
  searches   keyword searched_at network_url email city state zip_code
             job_title lead_type
  visits     ip network_url seen_at confidence

Bad lines are skipped and reported with file, line and reason. When more than
--max-bad-lines are bad, the import fails and the old data stays.

A word of org_type that is not known counts as a provider, whose company is not the
visitor's; --org-type gives it a kind.`,
		Example: `  leadetl directory import --directory dir --people people.csv --companies companies.csv
  leadetl directory import --directory dir --people 's3://crm/*.parquet' --map emails=E-Mail
  leadetl directory import --directory dir --ip-ranges GeoIP2-Enterprise.mmdb
  leadetl directory import --directory dir --ip-ranges ranges.csv --org-type 'retail store=business'`,
		Annotations: cli.ExitCodes(map[int]string{cli.ExitTryAgain: "S3 out of reach, or reference data in use by another import; run the same command later", cli.ExitInterrupted: "interrupted; the old data stays"}),
		Args:        cli.NoArguments,
		RunE:        func(c *cobra.Command, _ []string) error { return f.run(c.Context(), std) },
	}
	f.register(c.Flags())
	var assigned []string
	for _, column := range importColumns() {
		assigned = append(assigned, column+"=")
	}
	cli.CompleteList(c, "map", assigned...)
	return c
}

// columnsHelp lists the columns of a kind, the key first.
func columnsHelp(k directory.Kind) string {
	columns := directory.ColumnsOf(k)
	lines := runview.Wrap(columns[0]+", "+strings.Join(columns[1:], " "), 65)
	return fmt.Sprintf("  %-10s ", k) + strings.Join(lines, "\n"+strings.Repeat(" ", 13)) + "\n"
}

// importColumns returns the columns of all kinds.
func importColumns() (columns []string) {
	for _, k := range directory.Kinds {
		columns = append(columns, directory.ColumnsOf(k)...)
	}
	slices.Sort(columns)
	return slices.Compact(columns)
}

func (f *importFlags) register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&f.directory, "directory", "", "`folder` of the directory, made if missing")
	of := map[directory.Kind]string{directory.IPRanges: "IP ranges, also MMDB", directory.Searches: "keyword searches"}
	for _, k := range directory.Kinds {
		f.given[k] = flags.StringArray(string(k), nil, "input `URI` of "+cmp.Or(of[k], string(k)))
	}
	called := cliflag.NewAssignments("emails=E-Mail", importColumns(), func(column, name string) error {
		if f.options.Called[column] = name; name == "" {
			return errors.New("no name")
		}
		return nil
	})
	flags.Var(called, "map", "`column=name` where the files call a column something else; repeatable")
	flags.Var(&f.badLines, "max-bad-lines", "maximum `share` of bad lines to skip; with more the import fails")
	flags.StringVar(&f.options.DefaultRegion, "default-region", f.options.DefaultRegion, "`region` of phone numbers without a country code")
	flags.StringSliceVar(&f.options.NetworkHosts, "network-hosts", f.options.NetworkHosts, "`hosts` of profile URLs")
	flags.BoolVar(&f.options.DropReplaced, "drop-replaced", false, "drop the searches that are replaced at once, and those that are kept for pages of searches under way: they may name people who asked to be deleted")
	flags.StringSliceVar(&f.fields.Name, "mmdb-name", nil, "`fields` of an MMDB file with the name; the first non-empty one is used")
	flags.StringSliceVar(&f.fields.Domain, "mmdb-domain", nil, "`fields` of an MMDB file with the domain")
	flags.StringSliceVar(&f.fields.Type, "mmdb-type", nil, "`fields` of an MMDB file with the type of organization")
	kinds := cliflag.NewAssignments("circus=business", nil, func(word, kind string) error {
		if !slices.Contains(orgtype.Kinds, kind) {
			return fmt.Errorf("unknown kind %q%s; the kinds are %s", kind, suggest.Name(kind, orgtype.Kinds), strings.Join(orgtype.Kinds, ", "))
		}
		if f.options.OrgTypes[word] = kind; word == "" {
			return errors.New("no word")
		}
		return nil
	})
	flags.Var(kinds, "org-type", "`word=kind`: kind of organization of a word of IP ranges, such as circus=business; repeatable")
	f.s3.RegisterReading(flags)
}

func (f *importFlags) run(ctx context.Context, std cli.Streams) error {
	if f.directory == "" {
		return cli.UsageError(errors.New("no --directory; name the folder"))
	}
	files, err := importFiles(f.given)
	if err != nil {
		return cli.UsageError(err)
	}
	log := std.Log()
	if f.options.Open, err = openFiles(ctx, &f.s3, std, log); err != nil {
		return cli.UsageError(err)
	}
	f.options.MaxBadLines = f.badLines.Fraction()
	overrideFields(&f.options.Fields, f.fields)
	counting, stop := runview.Watch(ctx, std, "importing", "byte", true)
	report, err := directory.Import(counting, f.directory, files, f.options)
	stop()
	printPlaces(std.Err, report)
	for _, k := range report.Kinds {
		wire.WarnOfWords(log, k.UnknownWords, k.Rows)
	}
	if err != nil {
		return cli.DataError(err)
	}
	return printImport(std.Out, report)
}

// importFiles returns the files of the flags, at most one URI per kind, so that
// the result of an import does not depend on the order of two files.
func importFiles(given map[directory.Kind]*[]string) (files directory.Files, err error) {
	standardInput := 0
	for _, k := range directory.Kinds {
		to := files.Of(k)
		switch uris := *given[k]; {
		case len(uris) > 1:
			return files, fmt.Errorf("--%s is given %d times; name all files at once, with a quoted glob", k, len(uris))
		case len(uris) == 1 && uris[0] == "":
			return files, fmt.Errorf("--%s is empty; name a file", k)
		case len(uris) == 1:
			*to = uris[0]
			if *to == "-" {
				standardInput++
			}
		}
	}
	switch {
	case standardInput > 1:
		return files, errors.New("standard input can be only one of the kinds")
	case files == directory.Files{}:
		return files, errors.New("nothing to import; name at least one of --people, --companies, --ip-ranges, --searches, --visits")
	}
	return files, nil
}

// openFiles returns how imports open their files.
func openFiles(ctx context.Context, s3 *wire.S3, std cli.Streams, log *slog.Logger) (imports.OpenFiles, error) {
	store, err := s3.Open(ctx, log)
	return func(ctx context.Context, uri string) (*sources.List, error) {
		list, err := wire.OpenInput(ctx, []string{uri}, sources.Options{Stdin: std.In, Objects: store, Wanted: importColumns()})
		if err == nil {
			wire.TellLeftOut(log, list)
		}
		return list, err
	}, err
}

func overrideFields(to *imports.Fields, given imports.Fields) {
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

// shownBadLines is how many places per kind are printed. All are counted.
const shownBadLines = 20

// printPlaces lists the lines and cells that were left out.
func printPlaces(to io.Writer, report directory.Report) {
	list := func(what string, places []imports.BadLine, count int64) {
		shown := places[:min(len(places), shownBadLines)]
		for _, b := range shown {
			fmt.Fprintf(to, "%s: %s\n", what, invisible.Escape(b.String()))
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
		notes := []string{"from " + invisible.Escape(rows.Shown(k.Source))}
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
		Short: "Show what reference data holds",
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
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", k.Kind, figures.Grouped(k.Rows), figures.Grouped(k.Keys), figures.Size(k.Bytes), invisible.Escape(k.Source), k.Imported.UTC().Format(time.RFC3339))
			}
			fmt.Fprintf(table, "fingerprint\t%s\n", d.Fingerprint())
			if err := table.Flush(); err != nil {
				return err
			}
			return printOrgTypes(std.Out, d.Stat())
		},
	}
	c.Flags().StringVar(&dir, "directory", "", "`folder` of the directory")
	return c
}

// printOrgTypes lists the words of org_type that an import gave a kind, and those without one.
func printOrgTypes(to io.Writer, stats []directory.KindStat) (err error) {
	for _, k := range stats {
		for _, word := range slices.Sorted(maps.Keys(k.OrgTypes)) {
			_, failed := fmt.Fprintf(to, "org_type %s: %s, from --org-type\n", word, k.OrgTypes[word])
			err = errors.Join(err, failed)
		}
		for _, w := range k.UnknownWords {
			_, failed := fmt.Fprintf(to, "org_type %s: not known, %s\n", w.Word, figures.Plural(w.Rows, "row"))
			err = errors.Join(err, failed)
		}
	}
	return err
}

func newDirectoryVerifyCommand(std cli.Streams) *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "verify --directory FOLDER",
		Short: "Read all reference data and check it",

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
