// Package runcmd holds the commands run, plan and doctor, and sets up a run
// from its flags.
package runcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/stats"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/observe"
	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/pipeline/objectstate"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/orgtype"
)

// maxDefaultWorkers bounds the default of --workers: a machine with many cores
// usually runs other programs too, and one worker reads all rows.
const maxDefaultWorkers = 8

// runFlags are the flags of run and plan.
type runFlags struct {
	jobFile   string
	set       []string
	operation string
	tableOf
	in        []string
	delimiter string
	encoding  string
	skipLines int
	out       string
	overwrite bool
	state     string
	workers   int
	demands
	asked
	lineage       observe.Lineage
	notice        observe.Notice
	arrival       sources.Arrival
	dropAnswers   string
	metricsListen string
	metricsFile   string
	search        searchFlags
	suppress      wire.Suppress
	name          string // of the job
	changes       changesFlags
	s3            wire.S3
	summaryJSON   string
	log           cli.LogFlags
	cluster       clusterFlags

	planning bool         // make no calls and write nothing
	drop     *dropAnswers // nil without --drop-answers

	shared  *sharing           // nil unless other processes work on the run too
	objects *objectstate.State // the state of a shared run
	worker  bool               // a worker does the run that its client has asked for
	turn    objectstate.Turn   // of workers that do the run one after another; zero for others
}

// NewRunCommand returns the command run.
func NewRunCommand(std cli.Streams) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run OPERATION --in URI… --out FOLDER",
		Short: "Resolve a list and write a Parquet dataset",
		Long: `Resolve every row of a list and write a Parquet dataset.

Operations, and the column each looks up:
  email_to_hem           email         hashed emails (HEMs) of an address
  network_to_hem         network_url   hashed emails of a profile
  network_to_phone       network_url   phone number of a profile
  ip_to_company          ip            company behind an IP address
  enrichment             network_url   contact, phone, HEMs and company of a profile
  deanonymization        ip            the same for the visitor behind an IP address
  keyword_to_lead        keywords      people who searched for words, one row each
  keyword_to_lead_count  keywords      number of these people

email_to_hem needs no reference data; with --directory it adds the network_url
of people it finds there. The other operations need --directory, or --resolver
with the address of a service. A job file may ask several resolvers one after
another, with the keys want, providers and resolvers: docs/resolvers.md.

A list of searches may have a column for each setting of group Searches. Without
--in, these are one search. With --in, some of them are defaults for rows that
have no value.

To resume an interrupted run, run the same command. On a finished dataset it
does nothing.

--sample N makes a real dataset of N lines, to look at before buying: answers
that it buys are stored, and the run of the whole input does not pay for them
again. Give it an --out of its own.

Settings are keys of the job file, of --set KEY=VALUE, and environment variables,
rate and LEADETL_RATE; most are flags, too: --rate. leadetl help settings lists all.
Flags and --set win over the environment, which wins over the file. In the file,
${NAME} is an environment variable, and paths that begin with ./ are relative to
the file's folder.`,
		Example: `  leadetl run email_to_hem --in emails.csv --out hems
  leadetl run ip_to_company --in 'visits/*.csv.gz' --id-column client --directory dir --out c
  zcat big.csv.gz | leadetl run email_to_hem --in - --out hems
  leadetl run keyword_to_lead --keywords 'crm;erp' --states CA --directory dir --out leads
  leadetl run --job nightly.yaml`,
		Annotations: cli.ExitCodes(map[int]string{cli.ExitRejects: "", cli.ExitBudget: "", cli.ExitTryAgain: "", cli.ExitInterrupted: ""}),
		Args:        OneOperation,
		ValidArgs:   resolution.OperationNames(),
		RunE: func(c *cobra.Command, args []string) error {
			started := time.Now()
			operation, err := f.settle(c.Context(), args)
			if err == nil {
				err = cli.UsageError(f.checkSummary())
			}
			var made *report.Report
			switch {
			case err != nil:
			case f.cluster.on != "":
				made, err = f.runOn(c.Context(), operation, std)
			default:
				made, err = f.run(c.Context(), operation, std)
			}
			return f.end(c.Context(), made, operation, started, err, std)
		},
	}
	f.register(c)
	return c
}

// reading says how the inputs are read.
func (f *runFlags) reading(store *objects.Store) (sources.Options, error) {
	delimiter, err := wire.ParseDelimiter(f.delimiter)
	if !slices.Contains(sources.Encodings, f.encoding) {
		err = errors.Join(err, fmt.Errorf("encoding is %q%s", f.encoding, suggest.OneOf(f.encoding, sources.Encodings)))
	}
	if f.skipLines < 0 {
		err = errors.Join(err, fmt.Errorf("skip_lines is %d; it is a number of lines", f.skipLines))
	}
	return sources.Options{Delimiter: delimiter, Encoding: f.encoding, SkipLines: f.skipLines, Objects: store}, err
}

// keys are those of a job that have keys of their own.
func (f *runFlags) keys() cliflag.Keys {
	return cliflag.Keys{Trees: f.order.trees(), See: "leadetl help settings lists all keys"}
}

// applySet applies --set, once.
func (f *runFlags) applySet() error {
	set := f.set
	f.set = nil
	return cliflag.ApplySettings("job", set, f.all, f.keys())
}

// settle applies --set, the environment and the job file, in this order of
// precedence, and returns the operation.
func (f *runFlags) settle(ctx context.Context, args []string) (operation string, err error) {
	flags := f.all
	if err := errors.Join(f.applySet(), cliflag.ApplyEnvironment(flags, "set")); err != nil {
		return "", cli.UsageError(err)
	}
	if f.jobFile != "" {
		if err := cliflag.ApplyFile(ctx, "job", f.jobFile, flags, f.keys()); err != nil {
			return "", cli.UsageError(err)
		}
	}
	if err := f.settleResolvers(flags); err != nil {
		return "", cli.UsageError(err)
	}
	operation = cmp.Or(strings.Join(args, " "), f.operation)
	f.operation = operation
	op := resolution.Operation(operation)
	f.limited = flags.Changed("max-rejects")
	if !flags.Changed("rows-per-part") {
		f.dataset.job.RowsPerPart = job.Default(op).RowsPerPart
	}
	return operation, cli.UsageError(errors.Join(f.check(op), f.dataset.check(flags), f.lineage.Check(), f.notice.Check(ctx), f.checkArrival(), f.checkCluster(op), f.remote.check(flags, f.isRemote(), f.isService()), f.checkCallback(op), f.search.check(f.given(ofList), flags, op, time.Now())))
}

// OneOperation refuses a second argument, which is probably an input.
func OneOperation(_ *cobra.Command, args []string) error {
	if err := cli.AtMost(1, args); err != nil {
		return fmt.Errorf("%w; name inputs with --in, globs in quotes", err)
	}
	return nil
}

// job returns the job that the flags describe. Its error joins all problems.
func (f *runFlags) job(operation string) (job.Job, error) {
	var errs []error
	if len(f.in) == 0 && !f.search.isGiven() {
		missing := "no --in; name the input"
		if resolution.Operation(operation).IsKeyword() {
			missing = "no --in or --keywords; name a list of searches, or the words of one"
		}
		errs = append(errs, errors.New(missing))
	}
	if f.out == "" {
		errs = append(errs, errors.New("no --out; name the output folder"))
	}
	if f.minRows < 0 {
		errs = append(errs, fmt.Errorf("min_rows is %d; it cannot be less than 0", f.minRows))
	}
	if f.workers < 1 {
		errs = append(errs, fmt.Errorf("--workers is %d; it must be at least 1", f.workers))
	}
	return f.described(operation, errs...)
}

// described is the job as far as its flags describe it, unless something is missing.
func (f *runFlags) described(operation string, missing ...error) (job.Job, error) {
	job, err := f.dataset.Job(operation)
	from, bad := f.order.columnsFrom()
	job.From = from
	if err := errors.Join(append(missing, bad, err)...); err != nil {
		return job, err
	}
	f.search.apply(&job)
	f.out = partitionFolder(f.out, job.Partitions)
	return job, job.Validate()
}

// run sets up a job and runs it. made is the report of the run, nil if the run
// ended before it read a row.
func (f *runFlags) run(ctx context.Context, operation string, std cli.Streams) (made *report.Report, err error) {
	run, closeRun, err := f.open(ctx, std)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeRun()) }()
	end, err := f.tellMetrics(ctx, run.Progress, run.Log)
	if err != nil {
		return nil, err
	}
	defer func() { err = end(err) }()
	told, err := f.lineage.Begin(run)
	if err != nil {
		return nil, cli.UsageError(err)
	}
	started := time.Now()
	stop := f.display(run.Log, std).Run(ctx, run.Progress, f.remote.timeout)
	result, err := pipeline.Do(ctx, run)
	stop()
	notClosed := closeRun() // takes time if the state is on S3
	made = reportOf(result, run)
	err = f.close(result, err, run.Input.Files(), run.Progress, started, run.Log, std)
	told.End(result, err)
	return made, errors.Join(err, notClosed)
}

// display returns where to show progress.
func (f *runFlags) display(log *slog.Logger, std cli.Streams) runview.Display {
	return runview.Display{Terminal: std.Err, Log: log, Quiet: f.log.Quiet}
}

// close prints the result of the run and chooses its exit code.
func (f *runFlags) close(result *finish.Result, err error, files []sources.File, progress *stats.Progress, started time.Time, log *slog.Logger, std cli.Streams) error {
	summary := runview.Summary{
		Operation: resolution.Operation(f.operation), Files: files, Sample: f.dataset.job.Sample, Out: f.out, Report: wire.PathIn(f.out, sinks.ReportPageName),
		Took: time.Since(started), Result: result, Progress: progress.Snapshot(),
	}
	if err != nil && !f.log.Quiet {
		err = errors.Join(err, summary.PrintStopped(std.Err))
	}
	if errors.Is(err, context.Canceled) && result == nil {
		return wire.ErrInterruptedEarly
	}
	if errors.Is(err, context.Canceled) {
		return cli.WithCode(cli.ExitInterrupted, fmt.Errorf("interrupted with %s done; run the same command to resume", figures.Plural(result.Parts.All(), "part")))
	}
	if err != nil && result != nil && isResumable(err) {
		resume := "run the same command to resume"
		if cli.ExitCode(err) == cli.ExitUsage {
			resume = "correct it, then run the same command"
		}
		return fmt.Errorf("%w; %s done; %s", nextStep(err), figures.Plural(result.Parts.All(), "part"), resume)
	}
	if err != nil {
		return err
	}
	if !f.log.Quiet && f.summaryJSON != standardOutput {
		if err := summary.Print(std.Out); err != nil {
			return err
		}
	}
	if f.drop != nil && !f.drop.written {
		return cli.UsageError(fmt.Errorf("the dataset is complete, but %s lacks responses that only a new run can write; use --overwrite to make both again", f.dropAnswers))
	}
	t := result.Totals
	f.warnOfRejects(t, log)
	warnOfPassed(t, log)
	wire.WarnOfWords(log, orgtype.InReasons(t.Reasons["no_match"]), t.Rows)
	level := slog.LevelDebug    // users see the table
	if f.log.Format == "json" { // programs have only the log
		level = slog.LevelInfo
	}
	log.Log(context.Background(), level, "run finished", "rows", t.Rows, "matched", t.Matched, "rejected", t.Rejected, "malformed", t.Malformed)
	return f.judge(t)
}
