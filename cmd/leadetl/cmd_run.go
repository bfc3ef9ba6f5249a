package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/transforms/email"
)

// mostWorkers bounds the workers that are taken without being asked for: a
// machine of many cores is seldom ours alone, and rows are read by one of them.
const mostWorkers = 8

// runFlags are the flags of run, as they are on the command line.
type runFlags struct {
	job              string
	in               []string
	out              string
	column           string
	keep             []string
	dropIdentifier   bool
	partitionBy      []string
	delimiter        string
	directory        string
	includeProviders bool
	rowsPerPart      int
	compression      string
	hemProfiles      []string
	hemTypes         []string
	defaultRegion    string
	networkHosts     []string
	state            string
	overwrite        bool
	workers          int
	maxRejects       cliflag.Limit
	quiet            bool
	logFormat        string
	logLevel         string
	metricsListen    string
	remote           remoteFlags
	search           searchFlags
	suppress         wire.Suppress
	dropAnswers      string
	drop             *dropAnswers // nil without --drop-answers
	s3               wire.S3
	// planning says that nobody will be asked.
	planning bool
}

// The words --keep knows beside the names of columns.
const (
	keepAll  = "all"
	keepNone = "none"
)

func newRunCommand(std cli.Streams) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run OPERATION --in URI… --out FOLDER",
		Short: "Resolve a list and write a Parquet dataset",
		Long: `Resolve every row of a list and write a Parquet dataset.

Operations, and the column each is asked about:
  email_to_hem           email         hashed emails (HEMs) of an address
  network_to_hem         network_url   hashed emails of a profile
  network_to_phone       network_url   phone number of a profile
  ip_to_company          ip            company behind an IP address
  enrichment             network_url   contact, phone, HEMs and company of a profile
  deanonymization        ip            the same of the visitor seen behind an address
  keyword_to_lead        keywords      people who searched for words, a row for each
  keyword_to_lead_count  keywords      how many there are

A list of searches has more columns, all of them optional: those of the flags
from --cities on, with _ for -. Or those flags give one search, without --in.
Some of them may be given beside --in too, for rows that do not say.
email_to_hem needs nothing, and adds the network_url of people it finds in a
directory; the others answer from one (see leadetl directory --help).
A run that was stopped or killed goes on with the same command; the same
command on a finished dataset does nothing. Every flag is also a key of the
job file; flags win.`,
		Example: `  leadetl run email_to_hem --in emails.csv --out hems
  leadetl run ip_to_company --in 'visits/*.csv.gz' --column client --directory dir --out companies
  zcat big.csv.gz | leadetl run email_to_hem --in - --out hems
  leadetl run keyword_to_lead --keywords 'crm;erp' --states CA --directory dir --out leads
  leadetl run --job nightly.yaml`,
		Annotations: cli.ExitCodes(map[int]string{
			cli.ExitRejects:     "done, but rows failed or rejects passed --max-rejects",
			cli.ExitBudget:      "stopped by a budget or for want of credits; the same command goes on, given more",
			cli.ExitService:     "stopped: the service refuses the calls, or it or S3 is out of reach; the same command goes on",
			cli.ExitInterrupted: "interrupted; the same command goes on where it stopped",
		}),
		Args: oneOperation,
		RunE: func(c *cobra.Command, args []string) error {
			operation, err := f.settle(c.Flags(), args)
			if err != nil {
				return err
			}
			return f.run(c.Context(), operation, std)
		},
	}
	c.ValidArgs = operationNames()
	f.register(c.Flags())
	return c
}

// register makes f what the flags of a command set. Who says what a run would
// do takes the same flags as who does it.
func (f *runFlags) register(flags *pflag.FlagSet) {
	defaults := pipeline.DefaultJob("")
	flags.SortFlags = false
	flags.StringVar(&f.job, "job", "", "YAML `file` with the settings")
	flags.StringArrayVar(&f.in, "in", nil, "input `URI`: a path, a glob in quotes, s3://bucket/key, or - for standard input; CSV or Parquet, .gz and .zst too; may be given again")
	flags.StringVar(&f.out, "out", "", "`folder` of the dataset, made if missing, or s3://bucket/prefix/")
	flags.StringVar(&f.column, "column", "", "`name` of the identifier's column (default: as listed above)")
	flags.StringSliceVar(&f.keep, "keep", []string{keepAll}, "input `columns` carried to the output: all, none, or names with commas")
	flags.BoolVar(&f.dropIdentifier, "drop-identifier", false, "leave the identifier out of every file: its column, key, and the raw lines of rejects")
	registerPartitions(flags, &f.partitionBy)
	flags.StringVar(&f.delimiter, "delimiter", "", "`character` between CSV fields, or \"tab\" (default: detected)")
	flags.StringVar(&f.directory, "directory", "", "`folder` of the reference data, made by leadetl directory import")
	flags.BoolVar(&f.includeProviders, "include-providers", false, "keep access providers, hosting and VPNs as companies")
	flags.IntVar(&f.rowsPerPart, "rows-per-part", defaults.RowsPerPart, fmt.Sprintf("input `rows` of each Parquet file; of keyword_to_lead %d unless it is given", pipeline.SearchesPerPart))
	flags.StringVar(&f.compression, "compression", string(defaults.Compression), "Parquet `codec`: snappy, zstd or none")
	flags.StringSliceVar(&f.hemProfiles, "hem-profiles", []string{"plain"}, "`profiles` email_to_hem hashes by: plain (always there), uid2, google")
	flags.StringSliceVar(&f.hemTypes, "hem-types", defaults.HEMTypes, "`digests` of profile plain")
	flags.StringVar(&f.defaultRegion, "default-region", defaults.DefaultRegion, "`region` of phone numbers without a country code")
	flags.StringSliceVar(&f.networkHosts, "network-hosts", defaults.NetworkHosts, "`hosts` whose profile addresses are known by their form")
	f.search.register(flags)
	f.remote.register(flags)
	f.suppress.Register(flags, "who must not be in the dataset")
	flags.StringVar(&f.dropAnswers, "drop-answers", "", "`folder` for the answers to California DROP lists among --suppress: a file for each, of its name")
	f.s3.Register(flags)
	flags.StringVar(&f.state, "state", wire.DefaultStateDir(), "`folder` for stored answers and the progress of unfinished runs")
	flags.BoolVar(&f.overwrite, "overwrite", false, "replace the dataset that --out holds")
	flags.IntVar(&f.workers, "workers", min(runtime.GOMAXPROCS(0), mostWorkers), "`number` of parts in work at a time, about 100 MB each, one with a service; no influence on the dataset")
	flags.Var(&f.maxRejects, "max-rejects", "exit with 3 when more lines than this `limit` are rejected or malformed: a count, or a share such as 1% (default: no limit)")
	flags.StringVar(&f.metricsListen, "metrics-listen", "", "`address` of /metrics for Prometheus and of /healthz while the run goes on, such as 127.0.0.1:9464")
	flags.BoolVar(&f.quiet, "quiet", false, "print errors and warnings only")
	flags.StringVar(&f.logFormat, "log-format", "text", "`format` of the log: text or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "least `level` that is logged: debug, info, warn or error")
}

// settle applies the job file, if there is one, and says which operation is
// meant.
func (f *runFlags) settle(flags *pflag.FlagSet, args []string) (operation string, err error) {
	if f.job != "" {
		if err := cliflag.ApplyFile("job", f.job, flags, map[string]*string{"operation": &operation}); err != nil {
			return "", cli.UsageError(err)
		}
	}
	if len(args) == 1 {
		operation = args[0]
	}
	op := resolution.Operation(operation)
	if !flags.Changed("rows-per-part") {
		f.rowsPerPart = pipeline.DefaultJob(op).RowsPerPart
	}
	return operation, cli.UsageError(errors.Join(f.remote.check(flags, op, f.planning), f.search.check(flags, op, time.Now()), f.suppress.Check(flags)))
}

// operationNames are the operations that can be run.
func operationNames() (names []string) {
	for _, o := range slices.Concat(resolution.SingleRecord, resolution.Keyword) {
		names = append(names, string(o))
	}
	return names
}

// oneOperation refuses what people try before they read: inputs as arguments.
func oneOperation(_ *cobra.Command, args []string) error {
	if err := cli.AtMost(1, args); err != nil {
		return fmt.Errorf("%w; name inputs with --in", err)
	}
	return nil
}

// config is a job with its checked settings.
func (f *runFlags) config(operation string) (pipeline.Job, error) {
	var errs []error
	if operation == "" {
		errs = append(errs, errors.New("no operation; say which, as in: leadetl run email_to_hem"))
	} else if _, err := resolution.ParseOperation(operation); err != nil {
		errs = append(errs, err)
	}
	if len(f.in) == 0 && !f.search.isGiven() {
		errs = append(errs, errors.New("no --in; name the input"))
	}
	if f.out == "" {
		errs = append(errs, errors.New("no --out; name the output folder"))
	}
	if f.workers < 1 {
		errs = append(errs, fmt.Errorf("--workers is %d; it must be at least 1", f.workers))
	}
	job := pipeline.DefaultJob(resolution.Operation(operation))
	job.Column = f.column
	switch {
	case len(f.keep) == 0 || slices.Contains(f.keep, ""):
		errs = append(errs, errors.New("--keep names no column; write all, none, or names with commas"))
	case slices.Equal(f.keep, []string{keepAll}):
		job.KeepAll = true
	case slices.Equal(f.keep, []string{keepNone}):
		job.KeepAll = false
	default:
		job.KeepAll = false
		for _, name := range f.keep {
			job.Keep = append(job.Keep, strings.TrimSpace(name))
		}
	}
	job.DropIdentifier = f.dropIdentifier
	partitions, column, err := parsePartitions(f.partitionBy)
	errs = append(errs, err)
	job.Partitions, job.PartitionBy = partitions, column
	job.RowsPerPart = f.rowsPerPart
	job.Compression = sinks.Compression(f.compression)
	job.HEMTypes = f.hemTypes
	for _, name := range f.hemProfiles {
		p, err := email.ParseProfile(name)
		if err != nil {
			errs = append(errs, err)
		} else if p != email.Plain && !slices.Contains(job.HEMProfiles, p) {
			job.HEMProfiles = append(job.HEMProfiles, p)
		}
	}
	job.DefaultRegion = f.defaultRegion
	job.NetworkHosts = f.networkHosts
	job.IncludeProviders = f.includeProviders
	job.AsOf = f.search.asOf.Midnight()
	job.SearchDefaults = f.search.defaults(job.Operation)
	if errors.Join(errs...) == nil {
		errs = append(errs, job.Validate())
	}
	if f.out != "" {
		f.out = partitionFolder(f.out, partitions)
	}
	return job, errors.Join(errs...)
}

// run wires a job together and runs it.
func (f *runFlags) run(ctx context.Context, operation string, std cli.Streams) (err error) {
	run, closeRun, err := f.open(ctx, operation, std)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeRun()) }()
	if f.metricsListen != "" {
		closeMetrics, failed := listenMetrics(f.metricsListen, run.Progress, run.Log)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, closeMetrics()) }()
	}
	started := time.Now()
	stop := f.display(run.Log, std).Run(run.Progress)
	result, err := run.Do(ctx)
	stop()
	return f.close(result, err, runview.Summary{
		Operation: run.Job.Operation, Files: run.Input.Files(), Out: f.out, Report: wire.PathIn(f.out, sinks.ReportPageName),
		Took: time.Since(started), Result: result, Progress: run.Progress.Snapshot(),
	}, run.Log, std)
}

// display is where progress is shown.
func (f *runFlags) display(log *slog.Logger, std cli.Streams) runview.Display {
	return runview.Display{Terminal: std.Err, Log: log, Quiet: f.quiet}
}

// close prints what the run came to and decides on its exit code.
func (f *runFlags) close(result *pipeline.Result, err error, summary runview.Summary, log *slog.Logger, std cli.Streams) error {
	if err != nil && !f.quiet {
		err = errors.Join(err, summary.PrintStopped(std.Err))
	}
	if errors.Is(err, context.Canceled) && result == nil {
		return wire.ErrInterruptedEarly
	}
	if errors.Is(err, context.Canceled) {
		return cli.WithCode(cli.ExitInterrupted, fmt.Errorf("interrupted with %s done; the same command goes on from there", figures.Plural(result.Made+result.Skipped, "part")))
	}
	if err != nil && result != nil && (cli.ExitCode(err) == cli.ExitBudget || cli.ExitCode(err) == cli.ExitService) {
		return fmt.Errorf("%w; %s done, and the same command goes on from there", nextStep(err), figures.Plural(result.Made+result.Skipped, "part"))
	}
	if err != nil {
		return err
	}
	if !f.quiet {
		if err := summary.Print(std.Out); err != nil {
			return err
		}
	}
	if f.drop != nil && !f.drop.present() {
		return cli.UsageError(fmt.Errorf("the dataset is complete, and nothing is known any more that %s lacks; --overwrite makes both again", f.dropAnswers))
	}
	t := result.Totals
	if lines := t.Rows + t.Malformed; !f.maxRejects.IsSet() && t.Malformed*100 > lines {
		log.Warn("many lines are no rows; they are in _rejects, and --max-rejects makes them an error", "malformed", t.Malformed, "lines", lines)
	}
	log.Log(context.Background(), f.finishedLevel(), "run finished", "rows", t.Rows, "matched", t.Matched, "rejected", t.Rejected, "malformed", t.Malformed)
	if err := failedRows(t); err != nil {
		return err
	}
	if rejects := t.Rejected + t.Malformed; f.maxRejects.Exceeded(rejects, t.Rows+t.Malformed) {
		return cli.WithCode(cli.ExitRejects, fmt.Errorf("%d of %d lines were rejected, more than --max-rejects %s", rejects, t.Rows+t.Malformed, f.maxRejects.String()))
	}
	return nil
}

// finishedLevel is how important the totals are to who reads the log: people
// have the table, programs that asked for JSON have nothing else.
func (f *runFlags) finishedLevel() slog.Level {
	if f.logFormat == "json" {
		return slog.LevelInfo
	}
	return slog.LevelDebug
}
