package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/pipeline/changes"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/verify"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/warehouse"
)

// verifyFlags are the flags of verify.
type verifyFlags struct {
	workers   int
	target    string
	asJSON    bool
	quiet     bool
	logFormat string
	s3        wire.S3
}

func newVerifyCommand(std cli.Streams) *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use:   "verify DATASET",
		Short: "Check that a dataset is complete and its values are correct",
		Long: `Read a finished dataset back and check it.

Every file of the manifest must exist with its size and SHA-256, and no other
file that readers would load as data. Arrow, which wrote the files, and parquet-go,
which shares no code with it, must read the same columns and types in each footer.
Every value and null that Arrow reads must be in the pages that parquet-go unpacks,
and parquet-go decodes the first page of each column in the first row group itself.
Outcomes and reasons are counted from the rows and compared with the manifest.
Rows must be in the order of the input, hashes must be those of their keys, and
hashes, phones and IP ranges must be well formed. If the dataset has _changes and the
earlier dataset still exists, that one with the changes must be this one.

Each issue is printed on a line, with file, row group, column and row, all
counted from 1, and never with a value. With --target, verify also lists what
that warehouse does not accept: names, types, values that are too long.`,
		Example: `  leadetl verify out/hems
  leadetl verify out/hems --target redshift
  leadetl verify out/hems --json
  leadetl verify s3://leads/hems/`,
		Annotations: cli.ExitCodes(map[int]string{
			cli.ExitRejects:     "issues found, or the dataset does not load into --target; see standard output",
			cli.ExitTryAgain:    "S3 out of reach; run the same command later",
			cli.ExitInterrupted: "interrupted",
		}),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("no dataset; name one, as in: leadetl verify out/hems")
			}
			return cli.AtMost(1, args)
		},
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), args[0], std) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.IntVar(&f.workers, "workers", min(runtime.GOMAXPROCS(0), 8), "`number` of columns read at a time, about 200 MB for each")
	flags.StringVar(&f.target, "target", "", "`warehouse` whose limits are checked: "+strings.Join(warehouse.Names(warehouse.Warehouses), ", "))
	flags.BoolVar(&f.asJSON, "json", false, "print JSON")
	flags.BoolVar(&f.quiet, "quiet", false, "print issues only")
	flags.StringVar(&f.logFormat, "log-format", "text", "`format` of the log: text or json")
	f.s3.RegisterReading(flags)
	cli.Complete(c, "target", warehouse.Names(warehouse.Warehouses)...)
	cli.Complete(c, "log-format", cli.LogFormats...)
	return c
}

func (f *verifyFlags) run(ctx context.Context, dataset string, std cli.Streams) error {
	if f.workers < 1 {
		return cli.UsageError(fmt.Errorf("--workers is %d; it must be at least 1", f.workers))
	}
	log, err := (&cli.LogFlags{Format: f.logFormat, Level: "info", Quiet: f.quiet}).Open(std.Err)
	if err != nil {
		return cli.UsageError(err)
	}
	var target warehouse.Dialect
	if f.target != "" {
		if target, err = warehouse.Parse(f.target, warehouse.Warehouses); err != nil {
			return cli.UsageError(err)
		}
	}
	opened, dataset, err := openNight(ctx, dataset, &f.s3, log)
	if err != nil {
		return wire.UnlessUnavailable(err)
	}
	started := time.Now()
	ctx, stop := runview.Display{Terminal: std.Err, Log: log, Quiet: f.quiet}.Work(ctx, "verifying", "row")
	defer stop()
	wire.SetGC(wire.VerifyGC)
	wire.SetHeap(wire.VerifyHeap)
	result, err := verify.Check(ctx, opened, verify.Options{Rules: VerifyRules, Workers: f.workers})
	if _, other := errors.AsType[*format.Error](err); other || errors.Is(err, sinks.ErrNoDataset) {
		return cli.UsageError(fmt.Errorf("%s: %w", dataset, err))
	}
	if err != nil {
		return cli.Interrupted(ctx, err)
	}
	v := verification{dataset: dataset, result: result, target: target}
	if result.Whole() && result.Manifest.Changes != nil {
		if v.changes, err = f.checkChanges(ctx, opened, result, log); err != nil {
			return err
		}
	}
	v.took = time.Since(started)
	if target != "" && result.Manifest != nil {
		if v.issues, err = issuesOf(target, result); err != nil {
			return err
		}
	}
	switch {
	case f.asJSON:
		err = v.printJSON(std.Out)
	case v.fails() > 0 || !result.Whole() || !f.quiet:
		err = v.print(std.Out)
	}
	switch {
	case err != nil:
		return err
	case !result.Whole():
		return cli.WithCode(cli.ExitRejects, fmt.Errorf("%s: %s found", dataset, figures.Plural(len(result.Failures)+result.More, "issue")))
	case v.fails() > 0:
		return cli.WithCode(cli.ExitRejects, fmt.Errorf("%s: verified, but it does not load into %s: %s", dataset, target, figures.Plural(v.fails(), "reason")))
	}
	return nil
}

// checkChanges checks that the earlier dataset with the changes is this one, and adds the
// problems to the result. It returns how they were checked.
func (f *verifyFlags) checkChanges(ctx context.Context, opened *sinks.Reader, r *verify.Result, log *slog.Logger) (how string, err error) {
	made := r.Manifest.Changes
	var before *changes.Dataset
	if made.From != "" {
		options, err := wire.ReadOptions(ctx, made.From, &f.s3, log)
		if err != nil {
			return "", err
		}
		before, err = changes.Open(ctx, made.From, options)
		if errors.Is(err, sinks.ErrNoDataset) || err == nil && !made.IsSince(before.Manifest) {
			return "not compared: the earlier dataset is gone or was made again", nil
		}
		if err != nil {
			return "", wire.UnlessUnavailable(err)
		}
	}
	work, err := os.MkdirTemp("", "leadetl-changes-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	problems, err := changes.Check(ctx, before, changes.Dataset{Dir: opened.Dir(), Files: opened, Manifest: r.Manifest}, opened, made, work)
	for _, problem := range problems {
		r.Failures = append(r.Failures, verify.Failure{File: sinks.ChangesFolder, Problem: problem})
	}
	if before == nil {
		return made.String() + ", compared", err
	}
	return made.String() + ", compared with both datasets", err
}

// issuesOf checks a dataset against the limits of a warehouse.
func issuesOf(target warehouse.Dialect, r *verify.Result) ([]warehouse.Issue, error) {
	var longest []int64
	for _, c := range r.Columns {
		longest = append(longest, c.Longest)
	}
	return warehouse.Issues(target, tableOf(r.Manifest), longest)
}

// VerifyRules returns the rules of a dataset from the writer's schema.
// Columns are only ever added, so an older schema is part of the current one.
func VerifyRules(m *sinks.Manifest) (verify.Rules, bool) {
	op, known := resolution.ParseOperation(m.Operation)
	if !known || m.SchemaVersion < 1 || m.SchemaVersion > columns.SchemaVersion {
		return verify.Rules{}, false
	}
	return verify.Rules{
		Own: columns.Every(op, m.Selected(), m.Own()), Rejects: columns.RejectsColumns(), Suppressed: columns.SuppressedColumns(), Asked: columns.AskedColumns(),
		HashesKey: op.Identifier() == resolution.Email, SeveralRows: op.Gives() == resolution.GivesLeads || slices.ContainsFunc(m.Schema, func(c sinks.Column) bool { return c.Name == "source_part" }),
	}, true
}
