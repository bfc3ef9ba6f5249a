package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runcmd"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/pipeline/changes"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/sinks/warehouse"
	"github.com/leadetl/leadetl/sources"
)

// schemaFlags are the flags of schema: those flags of run that decide on
// columns, and the names in the statements.
type schemaFlags struct {
	job              runcmd.JobFlags
	in               []string
	resolver         string
	dataset          string
	s3               wire.S3
	dialect          string
	table            string
	location         string
	redshiftManifest bool
	changes          bool
	load             string

	unnamed bool // the names in --in may be data, which errors do not show
}

var loads = []string{"append", "replace"}

func newSchemaCommand(std cli.Streams) *cobra.Command {
	f := schemaFlags{job: runcmd.DefaultJobFlags()}
	dialects := warehouse.Names(warehouse.Dialects)
	c := &cobra.Command{
		Use:   "schema OPERATION|--dataset DATASET --dialect DIALECT",
		Short: "Print the table of an operation's dataset, and the statement that loads it",
		Long: `Print the table that fits a dataset and the statement that loads it; a source of
dbt; or the data dictionary: every column with type, unit, meaning and rule.

Dialects: ` + strings.Join(dialects, ", ") + `.

The columns are those of an operation under the flags of leadetl run that decide
on them, or, with --dataset, those of a finished dataset. Columns of the input are
known by --select, --in or --dataset.

It connects to no warehouse. Fill in BUCKET, PREFIX, DATASET and INTEGRATION where it
prints them.`,
		Example: `  leadetl schema email_to_hem --select id,email,answers --dialect snowflake
  leadetl schema --dataset out/hems --dialect bigquery --location gs://lake/hems
  leadetl schema --dataset out/hems/dt=2026-11-28 --dialect postgres --load replace | psql
  leadetl schema --dataset out/hems --redshift-manifest --location s3://lake/hems
  leadetl schema enrichment --dialect markdown`,
		Annotations: cli.ExitCodes(map[int]string{cli.ExitTryAgain: "S3 out of reach; run the same command later"}),
		Args:        runcmd.OneOperation,
		ValidArgs:   resolution.OperationNames(),
		RunE: func(c *cobra.Command, args []string) error {
			operation := ""
			if len(args) == 1 {
				operation = args[0]
			}
			return f.run(c.Context(), operation, std)
		},
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.dialect, "dialect", "", "`name`: "+strings.Join(dialects, ", "))
	flags.StringVar(&f.dataset, "dataset", "", "finished `DATASET` whose columns are taken")
	flags.StringVar(&f.table, "table", "", "`name` of the table, such as leads or crm.leads (default: the operation, with --changes and _latest)")
	flags.StringVar(&f.location, "location", "", "`URI` where the warehouse finds the dataset, without the folders of --partition-by")
	flags.StringVar(&f.load, "load", loads[0], "`how`: append the rows to the table, or replace those with the same constants of --partition-by, all without any")
	flags.BoolVar(&f.redshiftManifest, "redshift-manifest", false, "print the files of --dataset as COPY … MANIFEST of Redshift takes them; needs --location")
	flags.BoolVar(&f.changes, "changes", false, "print a table of the latest row of each key, and the MERGE that takes the changes of --dataset over")
	flags.StringArrayVar(&f.in, "in", nil, "input `URI` whose columns are kept, as leadetl run would")
	cli.Bind(flags, f.job.ColumnSettings()...)
	f.s3.RegisterReading(flags)
	flags.StringVar(&f.resolver, "resolver", runcmd.EmbeddedResolver, "who answers, `embedded` or the URL of a service: a service's answer to email_to_hem has hashed_emails")
	cli.Complete(c, "dialect", dialects...)
	cli.Complete(c, "load", loads...)
	return c
}

func (f *schemaFlags) run(ctx context.Context, operation string, std cli.Streams) error {
	var errs []error
	if (operation == "") == (f.dataset == "") {
		errs = append(errs, errors.New("name an operation or a --dataset, one of them"))
	}
	if f.redshiftManifest && (f.dataset == "" || f.location == "") {
		errs = append(errs, errors.New("--redshift-manifest needs --dataset and --location"))
	}
	if f.changes && (f.dataset == "" || f.redshiftManifest) {
		errs = append(errs, errors.New("--changes needs --dataset, whose run had --changes-from, and no --redshift-manifest"))
	}
	if f.redshiftManifest && f.dialect == "" {
		f.dialect = string(warehouse.Redshift)
	}
	dialect, err := warehouse.Parse(f.dialect, warehouse.Dialects)
	if f.dialect == "" {
		err = fmt.Errorf("no --dialect; it is one of %s", strings.Join(warehouse.Names(warehouse.Dialects), ", "))
	}
	switch {
	case !slices.Contains(loads, f.load):
		errs = append(errs, fmt.Errorf("--load is %q%s", f.load, suggest.OneOf(f.load, loads)))
	case f.load != loads[0] && (f.changes || f.redshiftManifest || err == nil && !slices.Contains(warehouse.Warehouses, dialect)):
		errs = append(errs, errors.New("--load replace needs the --dialect of a warehouse, and neither --changes nor --redshift-manifest"))
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return cli.UsageError(err)
	}
	if f.dataset != "" {
		return f.ofDataset(ctx, dialect, std)
	}
	table, err := f.ofOperation(ctx, operation, std)
	if err != nil {
		return err
	}
	return f.print(dialect, table, std.Out)
}

// ofOperation returns the table of an operation under the flags.
func (f *schemaFlags) ofOperation(ctx context.Context, operation string, std cli.Streams) (warehouse.Table, error) {
	j, err := f.job.Job(operation)
	if err == nil {
		err = j.Validate()
	}
	if err != nil {
		return warehouse.Table{}, cli.UsageError(err)
	}
	var input []string
	var known *sources.List // if the columns of the input are known
	switch whole := columns.SelectsInput(j.Select); {
	case len(f.in) > 0:
		store, err := f.s3.Open(ctx, std.Warnings())
		if err != nil {
			return warehouse.Table{}, cli.UsageError(err)
		}
		list, err := wire.OpenInput(ctx, f.in, sources.Options{Stdin: std.In, Objects: store})
		if err != nil {
			return warehouse.Table{}, err
		}
		defer list.Close()
		input = list.Files()[0].Columns
		known = list
		f.unnamed = slices.ContainsFunc(list.Files(), sources.File.NamesMayBeData)
	case whole && len(j.Renames) > 0:
		return warehouse.Table{}, cli.UsageError(errors.New("--rename names input columns, which are not known here; name them with --select, or the input with --in"))
	case whole:
		fmt.Fprintln(std.Err, "leadetl: input columns that are carried over are not listed; name them with --select, --in or --dataset")
	}
	if len(f.in) == 0 && j.PartitionBy != "" && columns.SelectsInput(j.Select) {
		input = []string{j.PartitionBy} // part of the input columns, which are not listed
	}
	layout, err := j.Layout(input, job.Source{Remote: f.resolver != runcmd.EmbeddedResolver})
	if err == nil && known != nil {
		err = known.Check(layout.Kept())
	}
	if err != nil && f.unnamed {
		err = errors.New("the columns of --in cannot be named so; which is not shown, because their names may be data; name those that you want with --select")
	}
	if err != nil {
		return warehouse.Table{}, cli.UsageError(err)
	}
	return warehouse.Table{
		Name: f.table, Operation: operation, Version: columns.SchemaVersion, Columns: layout.Columns(),
		Partitions: j.Partitions, PartitionBy: layout.Partition(), Location: f.location, Replace: f.load == loads[1],
	}, nil
}

// ofDataset prints the table of a finished dataset, or its manifest for
// Redshift.
func (f *schemaFlags) ofDataset(ctx context.Context, dialect warehouse.Dialect, std cli.Streams) error {
	opened, dataset, err := openNight(ctx, f.dataset, &f.s3, std.Log())
	if err != nil {
		return wire.UnlessUnavailable(err)
	}
	f.dataset = dataset
	m, err := sinks.ReadManifest(opened)
	if _, other := errors.AsType[*format.Error](err); other || errors.Is(err, sinks.ErrNoDataset) {
		return cli.UsageError(fmt.Errorf("%s: %w", f.dataset, err))
	}
	if err != nil {
		return err
	}
	table := tableOf(m)
	table.Name, table.Location, table.Replace = f.table, cmp.Or(f.location, f.around(m)), f.load == loads[1]
	if f.changes {
		return f.printMerge(dialect, table, m, std.Out)
	}
	if f.redshiftManifest {
		table.Location = f.location
		return printRedshiftManifest(table, m, std.Out)
	}
	return f.print(dialect, table, std.Out)
}

// around returns the location of the dataset or, for a partition, of the folder
// that contains all partitions. It is empty if the location is local and the
// warehouse cannot read it.
func (f *schemaFlags) around(m *sinks.Manifest) string {
	local := !strings.Contains(f.dataset, "://")
	reads := []string{string(warehouse.DuckDB), string(warehouse.Spark), string(warehouse.Postgres)}
	if local && !slices.Contains(reads, strings.ToLower(f.dialect)) {
		return ""
	}
	place := strings.TrimSuffix(f.dataset, "/")
	if local {
		place = filepath.ToSlash(filepath.Clean(f.dataset))
	}
	if len(m.Partitions) > 0 {
		place = strings.TrimSuffix(place, "/"+schema.PartitionPath(m.Partitions))
	}
	return place
}

// tableOf returns the table of a dataset.
func tableOf(m *sinks.Manifest) warehouse.Table {
	return warehouse.Table{
		Operation: m.Operation, Version: m.SchemaVersion, Columns: columns.Describe(resolution.Operation(m.Operation), m.Schema, m.KeptFrom()),
		Partitions: m.Partitions, PartitionBy: m.PartitionBy,
	}
}

// check refuses a table that the warehouse would not take.
func (f *schemaFlags) check(dialect warehouse.Dialect, t warehouse.Table) error {
	if dialect == warehouse.Markdown {
		return nil
	}
	issues, err := warehouse.Issues(dialect, t, nil)
	if err != nil {
		return err
	}
	var refused []error
	for _, issue := range issues {
		if f.unnamed && issue.Column != "" {
			issue.Column = "(its name may be data)"
		}
		if issue.Fails {
			refused = append(refused, fmt.Errorf("%s: %s", dialect, invisible.Escape(issue.String())))
		}
	}
	switch advice := adviceOf(issues); {
	case advice == "":
	case f.unnamed:
		refused = append(refused, errors.New("run it with --normalize-names snake, or --rename OLD=NEW"))
	default:
		refused = append(refused, errors.New(invisible.Escape(advice)))
	}
	return cli.UsageError(errors.Join(refused...))
}

func (f *schemaFlags) print(dialect warehouse.Dialect, t warehouse.Table, to io.Writer) error {
	if err := f.check(dialect, t); err != nil {
		return err
	}
	text, err := warehouse.Write(dialect, t)
	if err != nil {
		return err
	}
	_, err = io.WriteString(to, text)
	return err
}

// adviceOf returns the first advice among issues.
func adviceOf(issues []warehouse.Issue) string {
	for _, issue := range issues {
		if issue.Advice != "" {
			return issue.Advice
		}
	}
	return ""
}

// printMerge prints the statements that take the changes of a dataset over.
func (f *schemaFlags) printMerge(dialect warehouse.Dialect, t warehouse.Table, m *sinks.Manifest, to io.Writer) error {
	made := m.Changes
	if made == nil {
		return cli.UsageError(fmt.Errorf("%s has no changes; run it with --changes-from", f.dataset))
	}
	shape, err := changes.ShapeOf(m)
	if err != nil {
		return cli.UsageError(err)
	}
	with := changes.Settings{By: made.By, Compare: made.Compare, Was: made.Was}
	all := shape.Columns(with)
	n := shape.Width()
	t.Name = cmp.Or(t.Name, t.Operation+"_latest") // a table of nights has no row_hash
	if err := f.check(dialect, warehouse.Table{Name: t.Name, Columns: all}); err != nil {
		return err
	}
	merge := warehouse.Merge{Table: t, By: shape.Key(with), Since: made.Since, Answers: make([]bool, n)}
	merge.Columns = all[:n]
	for i := range n {
		merge.Answers[i] = shape.IsAnswer(i)
	}
	for _, c := range all[n:] {
		merge.Changes = append(merge.Changes, c.Name)
	}
	text, err := warehouse.WriteMerge(dialect, merge)
	if err != nil {
		return cli.UsageError(err)
	}
	_, err = io.WriteString(to, text)
	return err
}

func printRedshiftManifest(t warehouse.Table, m *sinks.Manifest, to io.Writer) error {
	var files []warehouse.File
	for _, p := range m.Parts {
		for _, f := range p.Data() {
			files = append(files, warehouse.File{Name: f.Name, Bytes: f.Bytes})
		}
	}
	data, err := warehouse.RedshiftManifest(t.Folder(), files)
	if err != nil {
		return err
	}
	_, err = to.Write(data)
	return err
}
