package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/progress"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/pipeline/audience"
	"github.com/leadetl/leadetl/pipeline/find"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/schema"
)

// exportFlags are the flags of export.
type exportFlags struct {
	out, format string
	selected    []string
	where       []string
	rowsPerFile int64
	overwrite   bool
	quiet       bool
	suppress    wire.Suppress
	s3          wire.S3
	audienceFlags
}

func newExportCommand(std cli.Streams) *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export DATASET",
		Short: "Write the rows of a dataset as CSV or JSON Lines",
		Long: `Write the rows of a finished dataset as CSV or JSON Lines, in their order: to a
file whose name ends in .csv or .jsonl, and .gz or .zst if it is compressed; to
files of a folder, export-00000.csv and so on, _SUCCESS last; or to standard
output.

CSV has a header. Null is an empty cell, and an empty text is "". Lists of texts
are joined by semicolons; where that would say something else, a JSON list is in
the cell. Lists of structs are always JSON.

A file appears when it is complete. After a kill the same command begins anew.
--for PLATFORM writes the file that the upload page of an ad platform takes: people
once each, hashed by its rules, of the list's own keys. leadetl talks to no platform.
--since EARLIER writes two such exports: OUT/remove, of the people of that dataset who are
no longer in this one, and OUT/add. Upload remove first.

--suppress leaves out the rows that name somebody on a list in any of their columns,
written or not. With --since they count as gone.

DATASET may also be the _changes, _rejects, _suppressed or _asked of a dataset, or
what leadetl changes has written. Of a folder with several nights, name one.

What is written is the data of the dataset, and so personal data.`,
		Example: `  leadetl export out/leads --out leads.csv
  leadetl export out/leads/dt=2026-11-28 --out - --format jsonl --where outcome=matched
  leadetl export s3://leads/hems/ --out s3://crm/hems/ --format csv.gz --select id,hem_sha256
  leadetl export out/leads --for meta --out meta.csv --from phone=Mobile --country US`,
		Annotations: cli.ExitCodes(map[int]string{cli.ExitTryAgain: "S3 out of reach; run the same command later", cli.ExitInterrupted: "interrupted; run the same command again"}),
		Args:        oneDataset,
	}
	flags := c.Flags()
	flags.SortFlags = false
	suppress := f.suppress.Settings("to leave out")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := cli.CheckNeeds(flags, suppress); err != nil {
			return cli.UsageError(err)
		}
		return f.run(c.Context(), args[0], std)
	}
	flags.StringVar(&f.out, "out", "", "`file`, folder, s3://bucket/key, s3://bucket/prefix/, or - for standard output")
	flags.StringVar(&f.format, "format", "", "`format` of files in a folder and of -: "+strings.Join(formats, ", ")+" (default: csv; of a file, what its name says)")
	flags.StringSliceVar(&f.selected, "select", nil, "`columns` to write, in this order, and groups of those not named: all, input, answers, flat (default: all)")
	flags.StringArrayVar(&f.where, "where", nil, "`COLUMN=VALUE` that a row must have, compared as text; null is an empty text; repeatable: all must hold")
	flags.Int64Var(&f.rowsPerFile, "rows-per-file", 0, "`rows` of a file in a folder at most (default 1,000,000)")
	flags.BoolVar(&f.overwrite, "overwrite", false, "replace the file, or the export in the folder")
	flags.BoolVar(&f.quiet, "quiet", false, "print errors only")
	cli.Bind(flags, suppress...)
	f.register(flags)
	f.s3.Register(flags)
	return c
}

func (f *exportFlags) run(ctx context.Context, dataset string, std cli.Streams) error {
	if err := f.check(); err != nil {
		return cli.UsageError(err)
	}
	where, err := job.ParseConditions(f.where)
	if err != nil {
		return cli.UsageError(err)
	}
	people, err := f.settings()
	if err != nil {
		return cli.UsageError(err)
	}
	log := std.Warnings()
	x, err := f.open(ctx, dataset, people, conditions(where), log)
	if err != nil {
		return err
	}
	if err := f.leaveOut(ctx, x, log); err != nil {
		return err
	}
	if f.since != "" {
		return f.writeChanges(ctx, x, people, std, log)
	}
	to, err := f.target(ctx, std, log)
	if err != nil {
		return err
	}
	rows, err := f.write(ctx, to, x, std)
	switch list, isList := x.of.(*list); {
	case err != nil:
		return err
	case f.quiet:
		return nil
	case isList && f.out == "-":
		return list.summary(std.Err, "standard output")
	case isList:
		return list.summary(std.Out, f.out)
	case f.out == "-":
		return nil
	}
	leftOut := ""
	if n := x.scan.LeftOut; n > 0 {
		leftOut = fmt.Sprintf("; %s of people on suppression lists left out", figures.Plural(n, "row"))
	}
	_, err = fmt.Fprintf(std.Out, "%s exported to %s%s\n", figures.Plural(rows, "row"), f.out, leftOut)
	return err
}

// exported is a dataset of which something is written.
type exported struct {
	*sinks.Reader
	manifest *sinks.Manifest
	scan     *sinks.Scan
	of       content
}

// open opens a dataset, and checks that what is written of it can be read.
func (f *exportFlags) open(ctx context.Context, dataset string, people audience.Settings, where [][2]string, log *slog.Logger) (*exported, error) {
	opened, err := wire.OpenDataset(ctx, dataset, &f.s3, log)
	if err != nil {
		return nil, wire.UnlessUnavailable(err)
	}
	if night, others, err := newestNight(ctx, opened); err != nil || night != "" {
		if err == nil {
			err = fmt.Errorf("%w of its own: it holds %s; name one of them, such as %s", sinks.ErrNoDataset, strings.Join(append(others, night), ", "), opened.Path(night))
		}
		return nil, wire.UnlessUnavailable(fmt.Errorf("%s: %w", dataset, err))
	}
	m, err := exportable(ctx, opened)
	if err != nil {
		return nil, wire.UnlessUnavailable(fmt.Errorf("%s: %w", dataset, err))
	}
	if err := checkOutcomes(m, where, log); err != nil {
		return nil, cli.UsageError(err)
	}
	scan, of, err := f.contentOf(m, people, where, dataset)
	if err != nil {
		return nil, cli.UsageError(fmt.Errorf("%s: %w", dataset, err))
	}
	if err := m.CheckRows(ctx, opened, scan); err != nil {
		return nil, wire.UnlessUnavailable(err)
	}
	return &exported{opened, m, scan, of}, nil
}

// leaveOut leaves out the rows that name somebody on the suppression lists, which are read by the rules of the
// dataset.
func (f *exportFlags) leaveOut(ctx context.Context, x *exported, log *slog.Logger) (err error) {
	if len(f.suppress.Lists) == 0 {
		return nil
	}
	if x.manifest.Operation == "" {
		return cli.UsageError(errors.New("--suppress needs a dataset, not a table beside one"))
	}
	if f.suppress.Reading.Objects, err = f.s3.Open(ctx, log); err != nil {
		return cli.UsageError(err)
	}
	rules := job.Default("")
	_ = json.Unmarshal(x.manifest.Job, &struct {
		Region *string   `json:"default_region"`
		Hosts  *[]string `json:"network_hosts"`
	}{&rules.DefaultRegion, &rules.NetworkHosts}) // what a dataset does not depend on is as usual
	who, err := f.suppress.Open(ctx, rules.DefaultRegion, rules.NetworkHosts, log)
	if err != nil {
		return err
	}
	rows := find.NewRows(x.manifest, who)
	if len(rows.Columns()) == 0 {
		return cli.UsageError(errors.New("--suppress: no column of the dataset has identifiers or hashes, so nobody on the lists would be found; make it again with leadetl run --suppress"))
	}
	x.scan.Without(rows.Columns(), rows.Named)
	return wire.UnlessUnavailable(x.manifest.CheckRows(ctx, x.Reader, x.scan))
}

// write writes what is wanted of a dataset, and returns the number of its rows.
func (f *exportFlags) write(ctx context.Context, to *exportTarget, x *exported, std cli.Streams) (int64, error) {
	counting, stop := runview.Watch(ctx, std, "exporting", "row", !f.quiet && (f.out != "-" || !cli.IsTerminal(std.Out)))
	defer stop()
	progress.Of(counting).Expect(x.manifest.Totals.Rows)
	wire.SetGC(wire.VerifyGC)
	wire.SetHeap(wire.VerifyHeap)
	return to.write(counting, x.Reader, x.manifest, x.scan, x.of)
}

// contentOf is what is read of a dataset, and what is written of it.
func (f *exportFlags) contentOf(m *sinks.Manifest, people audience.Settings, where [][2]string, dataset string) (*sinks.Scan, content, error) {
	if people.Platform != nil {
		return newList(m, people, where, dataset, f.rowsPerFile)
	}
	scan, err := m.NewScan(f.selected, where)
	if err != nil {
		return nil, nil, err
	}
	return scan, newTable(schema.Names(scan.Columns), f.format), nil
}

// checkOutcomes refuses an outcome that no row can have, and warns of a reason that is close to one that rows have.
func checkOutcomes(m *sinks.Manifest, where [][2]string, log *slog.Logger) error {
	if m.Operation == "" {
		return nil
	}
	var reasons []string
	for _, byReason := range m.Totals.Reasons {
		reasons = slices.AppendSeq(reasons, maps.Keys(byReason))
	}
	for _, is := range where {
		switch column := strings.ToLower(is[0]); {
		case column == "outcome" && !slices.Contains(outcome.Words, is[1]):
			return fmt.Errorf("--where %s=%s: there is no such outcome%s", is[0], is[1], suggest.OneOf(is[1], outcome.Words))
		case column == "reason" && !slices.Contains(reasons, is[1]) && suggest.Name(is[1], reasons) != "":
			log.Warn("no row has this reason"+suggest.Name(is[1], reasons), "where", is[0]+"="+is[1])
		}
	}
	return nil
}

func conditions(where []job.Condition) (all [][2]string) {
	for _, c := range where {
		all = append(all, [2]string{c.Column, c.Value})
	}
	return all
}

// exportable is the manifest of a finished dataset or of a table beside one.
func exportable(ctx context.Context, opened *sinks.Reader) (*sinks.Manifest, error) {
	m, err := sinks.ReadManifest(opened)
	if err == nil {
		if err := sinks.CheckFinished(opened); err != nil {
			return nil, fmt.Errorf("%w: there is no %s of its %s, so its run has not finished; run its command again", sinks.ErrNoDataset, sinks.SuccessName, sinks.ManifestName)
		}
		return m, nil
	}
	if !errors.Is(err, sinks.ErrNoDataset) {
		return nil, err
	}
	return tableBeside(ctx, opened, err)
}

// formats are those of files.
var formats = []string{"csv", "csv.gz", "csv.zst", "jsonl", "jsonl.gz", "jsonl.zst"}

// otherFormats end the names of files that are not written, so that no folder gets such a name. Nor does
// one get a misspelled format.
var otherFormats = []string{"json", "ndjson", "txt", "tsv", "xlsx", "parquet", "gz", "gzip", "zst", "zstd", "bz2", "xz", "zip", "xls", "ods", "avro", "orc"}

// check checks flags, and completes them.
func (f *exportFlags) check() error {
	ofName := ""
	for _, format := range formats {
		if strings.HasSuffix(f.out, "."+format) {
			ofName = format
		}
	}
	isOne := ofName != "" || f.out == "-"
	ends := strings.TrimPrefix(path.Ext(filepath.ToSlash(f.out)), ".")
	switch {
	case f.out == "":
		return errors.New("no --out; name a file such as leads.csv, a folder, or - for standard output")
	case f.format != "" && !slices.Contains(formats, f.format):
		return fmt.Errorf("--format %s is none of the formats%s", f.format, suggest.OneOf(f.format, formats))
	case ofName != "" && f.format != "" && f.format != ofName:
		return fmt.Errorf("--out %s is %s by its name, not --format %s", f.out, ofName, f.format)
	case ofName == "" && (slices.Contains(otherFormats, ends) || suggest.Name(ends, formats) != ""):
		return fmt.Errorf("--out %s: name a file that ends in .%s, or a folder", f.out, strings.Join(formats, ", ."))
	case isOne && f.rowsPerFile != 0:
		return fmt.Errorf("--rows-per-file needs a folder; --out %s is one file", f.out)
	case f.rowsPerFile < 0:
		return fmt.Errorf("--rows-per-file is %d; it must be at least 1", f.rowsPerFile)
	}
	switch {
	case ofName != "":
		f.format = ofName
	case f.format == "":
		f.format = formats[0]
	}
	if f.rowsPerFile == 0 && f.platform == "" {
		f.rowsPerFile = 1_000_000
	}
	return f.checkAudience()
}
