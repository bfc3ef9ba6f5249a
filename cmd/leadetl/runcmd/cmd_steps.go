package runcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/sourcegraph/conc/pool"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/observe"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/pipeline/steps"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
)

// The steps of a run that have a command.
const (
	stepSurvey = "survey"
	stepPart   = "part"
	stepFinish = "finish"
)

// stepFlags are the flags of a step, and those of the run that it is a step of.
type stepFlags struct {
	runFlags
	step      string
	index, of int // -1 and 0 for all
	windowMiB int
	asJSON    bool
}

// sameFlags ends the help texts of all steps.
const sameFlags = `
All steps of a run take the same flags as leadetl run, best from one job file.
--state and --out must be on S3. To ask a service, use leadetl run with --state on
S3: any machine can resume it.`

// The variables in which schedulers give a process its number among others, and
// how many these are.
var (
	indexVariables = []string{"JOB_COMPLETION_INDEX", "AWS_BATCH_JOB_ARRAY_INDEX", "SLURM_ARRAY_TASK_ID"}
	ofVariables    = []string{"AWS_BATCH_JOB_ARRAY_SIZE", "SLURM_ARRAY_TASK_COUNT"}
)

// NewSurveyCommand returns the command survey.
func NewSurveyCommand(std cli.Streams) *cobra.Command {
	f := &stepFlags{step: stepSurvey, index: -1, windowMiB: steps.DefaultWindowBytes >> 20}
	return f.command(std, "Begin a run on many machines: count the rows of its input", `Begin a run whose parts are made on many machines: count the rows of the input,
and divide it into windows for leadetl part. It reads each CSV file once, and of
Parquet only the footers.

It is safe to repeat, and to run on several machines at once. With --index and
--of, each of them counts its share of the files, and the last one divides.
`+sameFlags, `  leadetl survey --job emails.yaml --json
  leadetl survey email_to_hem --in s3://in/ --out s3://leads/hems/ --state s3://leads/state/`,
		map[int]string{cli.ExitTryAgain: "", cli.ExitInterrupted: ""}, f.survey, f.shareOf("file"), cli.Group{Title: "Survey", Settings: []cli.Setting{
			{Name: "window-mib", To: &f.windowMiB, Text: "`MiB` of input in a window; a packed file cannot be divided"},
			{Name: "json", To: &f.asJSON, Text: "print rows, parts and windows as JSON"},
		}})
}

// NewPartCommand returns the command part.
func NewPartCommand(std cli.Streams) *cobra.Command {
	f := &stepFlags{step: stepPart, index: -1}
	return f.command(std, "Make the parts of a window of a run on many machines", `Make the parts of one window of a run that leadetl survey has begun, or of every
Nth window with --of N. Without --index it makes all windows that are missing.

The number of the window is taken from Kubernetes Indexed Jobs, AWS Batch arrays
and Slurm arrays. A number beyond the last window is no error: there is nothing
to do. It is safe to repeat, also after kill -9, and to run twice at once: the
parts are the same, byte for byte.
`+sameFlags, `  leadetl part --job emails.yaml --index 3
  leadetl part --job emails.yaml --index 3 --of 20`,
		map[int]string{cli.ExitTryAgain: "", cli.ExitInterrupted: ""}, f.part, f.shareOf("window"))
}

// NewFinishCommand returns the command finish.
func NewFinishCommand(std cli.Streams) *cobra.Command {
	f := &stepFlags{step: stepFinish, index: -1}
	return f.command(std, "Publish the dataset of a run on many machines", `Publish the dataset when leadetl part has made all windows: write the report, the
manifest and _SUCCESS, and remove the objects of the run from --state. If parts
are missing, it names their windows, and exits with 5. It is safe to repeat.
`+sameFlags, `  leadetl finish --job emails.yaml`,
		map[int]string{cli.ExitRejects: "", cli.ExitTryAgain: "", cli.ExitInterrupted: ""}, f.finish)
}

// command returns the command of a step.
func (f *stepFlags) command(std cli.Streams, short, long, example string, exits map[int]string, do func(ctx context.Context, r *opened, std cli.Streams) error, more ...cli.Group) *cobra.Command {
	c := &cobra.Command{
		Use: f.step + " OPERATION --in URI… --out URI --state URI", Short: short, Long: long, Example: example,
		Annotations: cli.ExitCodes(exits), Args: OneOperation, ValidArgs: resolution.OperationNames(),
		RunE: func(c *cobra.Command, args []string) (err error) {
			started := time.Now()
			operation, err := f.settle(c.Context(), args)
			if err == nil {
				err = cli.UsageError(errors.Join(f.checkSummary(), f.checkStep()))
			}
			if f.step != stepSurvey { // which has waited for it
				f.arrival = sources.Arrival{}
			}
			var made *report.Report
			if err == nil {
				made, err = f.do(c.Context(), operation, std, do)
			}
			if f.step != stepFinish { // one process tells how the run ended
				f.notice = observe.Notice{}
			}
			return f.end(c.Context(), made, operation, started, err, std)
		},
	}
	f.register(c, more...)
	return c
}

// shareOf are the settings that give a process its share of the work, which is many of one.
func (f *stepFlags) shareOf(one string) cli.Group {
	return cli.Group{Title: "Share", Settings: []cli.Setting{
		{Name: "index", To: &f.index, Use: cli.Everyday, Text: "`number` of the " + one + ", from 0 (default: all " + one + "s; in arrays of jobs, the number of the job)"},
		{Name: "of", To: &f.of, Use: cli.Everyday, Text: "`number` of processes, of which this is --index: do every Nth of the " + one + "s (default: the size of an AWS Batch or Slurm array)"},
	}}
}

// checkStep refuses what only a run in one piece can do, and reads what a
// scheduler tells this process.
func (f *stepFlags) checkStep() error {
	var errs []error
	if f.isRemote() {
		errs = append(errs, fmt.Errorf("%s makes no calls to a service; leave out --resolver and resolvers, or use leadetl run with --state %s, which any machine can resume", f.step, orExample(f.state)))
	}
	if !objects.Is(f.state) {
		errs = append(errs, fmt.Errorf("--state %s: machines share a state on S3; give --state s3://bucket/prefix/, or use leadetl run", f.state))
	}
	if f.out != "" && !objects.Is(f.out) {
		errs = append(errs, fmt.Errorf("--out %s: machines write to S3; give --out s3://bucket/prefix/, or use leadetl run", f.out))
	}
	if f.lineage.IsGiven() || f.metricsListen != "" || f.metricsFile != "" || f.cluster.on != "" {
		errs = append(errs, fmt.Errorf("openlineage_url, metrics_listen, metrics_file and --on are for leadetl run; %s does without", f.step))
	}
	if f.step == stepSurvey && f.windowMiB < 1 {
		errs = append(errs, fmt.Errorf("--window-mib is %d; it must be at least 1", f.windowMiB))
	}
	if f.step != stepFinish {
		errs = append(errs, fromScheduler(f.all, "index", &f.index, indexVariables))
		if f.index >= 0 {
			errs = append(errs, fromScheduler(f.all, "of", &f.of, ofVariables))
		}
		errs = append(errs, f.checkIndex(f.all))
	}
	return errors.Join(errs...)
}

func orExample(state string) string {
	if objects.Is(state) {
		return state
	}
	return "s3://bucket/prefix/"
}

func (f *stepFlags) checkIndex(flags *pflag.FlagSet) error {
	switch {
	case flags.Changed("index") && f.index < 0:
		return fmt.Errorf("--index is %d; it must be at least 0", f.index)
	case flags.Changed("of") && f.of < 1:
		return fmt.Errorf("--of is %d; it must be at least 1", f.of)
	case f.of > 0 && f.index < 0:
		return errors.New("--of goes with --index")
	case f.of > 0 && f.index >= f.of:
		return fmt.Errorf("--index %d is not below --of %d; numbers begin at 0", f.index, f.of)
	}
	return nil
}

// fromScheduler reads a flag that is not given from the first variable that is
// set.
func fromScheduler(flags *pflag.FlagSet, name string, value *int, variables []string) error {
	if flags.Changed(name) {
		return nil
	}
	for _, variable := range variables {
		text := os.Getenv(variable)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fmt.Errorf("%s is %q, which is not a number; give --%s", variable, text, name)
		}
		*value = n
		return nil
	}
	return nil
}

// share returns the numbers of what this process has to do, out of n.
func (f *stepFlags) share(n int) (numbers []int) {
	for i := range n {
		if f.index < 0 || i == f.index || f.of > 0 && i%f.of == f.index {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// opened is a run whose step is to be done.
type opened struct {
	*steps.Run
	run    *job.Run
	close  func() error   // the run
	report *report.Report // set by the step that publishes
}

// do opens a run, and does a step of it.
func (f *stepFlags) do(ctx context.Context, operation string, std cli.Streams, do func(context.Context, *opened, cli.Streams) error) (made *report.Report, err error) {
	f.shared = &sharing{alone: f.step == stepFinish}
	run, closeRun, err := f.open(ctx, std)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeRun()) }()
	r := &opened{run: run, close: closeRun}
	if f.step == stepSurvey {
		r.Run, err = steps.OpenSized(ctx, run, f.objects, int64(f.windowMiB)<<20)
	} else {
		r.Run, err = steps.Join(ctx, run, f.objects)
	}
	if err == nil {
		err = do(ctx, r, std)
	}
	switch {
	case errors.Is(err, context.Canceled):
		err = cli.WithCode(cli.ExitInterrupted, errors.New("interrupted; run the same command to resume"))
	case errors.Is(err, steps.ErrNotBegun):
		err = cli.UsageError(fmt.Errorf("%s: %w; begin with leadetl survey and the same flags", f.out, err))
	case errors.Is(err, steps.ErrNotDivided):
		err = cli.WithCode(cli.ExitTryAgain, fmt.Errorf("%s: %w; wait until leadetl survey has ended", f.out, err))
	case errors.As(err, new(*steps.MissingError)):
		err = cli.WithCode(cli.ExitTryAgain, fmt.Errorf("%s: %w; make them with leadetl part, then run the same command", f.out, err))
	}
	return r.report, err
}

// survey counts the rows of this process's files, and divides if it was the last.
func (f *stepFlags) survey(ctx context.Context, r *opened, std cli.Streams) error {
	ctx, stop := f.display(r.run.Log, std).Work(ctx, "counting", "byte")
	defer stop()
	counting := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError().WithMaxGoroutines(f.workers)
	for _, file := range f.share(r.Files()) {
		counting.Go(func(ctx context.Context) error { return r.Survey(ctx, file) })
	}
	err := counting.Wait()
	stop()
	if err != nil {
		return err
	}
	if r.Finished() {
		if f.asJSON { // a scheduler starts no parts
			return json.NewEncoder(std.Out).Encode(map[string]int64{"files": int64(r.Files()), "windows": 0})
		}
		return f.say(std, "%s: already finished\n", f.out)
	}
	d, err := r.Divide(ctx)
	if errors.Is(err, steps.ErrNotDivided) && f.index >= 0 {
		return f.say(std, "other files are still to be surveyed\n")
	}
	if err != nil {
		return err
	}
	if f.asJSON {
		return json.NewEncoder(std.Out).Encode(map[string]int64{
			"files": int64(r.Files()), "rows": d.Rows, "malformed": d.Malformed, "parts": int64(d.Parts), "windows": int64(len(d.Windows)),
		})
	}
	return f.say(std, "%s with %s: %s in %s\n", figures.Plural(int64(r.Files()), "file"), figures.Plural(d.Rows, "row"),
		figures.Plural(int64(d.Parts), "part"), figures.Plural(int64(len(d.Windows)), "window"))
}

// part makes the windows of this process.
func (f *stepFlags) part(ctx context.Context, r *opened, std cli.Streams) error {
	if r.Finished() {
		return f.say(std, "%s: already finished\n", f.out)
	}
	d, err := r.Division(ctx)
	if err != nil {
		return err
	}
	mine := f.share(len(d.Windows))
	if len(mine) == 0 {
		return f.say(std, "nothing to do: there are %s, numbered from 0\n", figures.Plural(int64(len(d.Windows)), "window"))
	}
	for _, window := range mine {
		done, err := r.Make(ctx, window)
		if err != nil {
			return err
		}
		if err := f.say(std, "window %d of %d: %s with %s, %d made now\n", window, len(d.Windows),
			figures.Plural(int64(done.Parts.All()), "part"), figures.Plural(done.Totals.Rows, "row"), done.Parts.Made); err != nil {
			return err
		}
	}
	return nil
}

// finish publishes the dataset, and ends as a run does.
func (f *stepFlags) finish(ctx context.Context, r *opened, std cli.Streams) error {
	started := time.Now()
	ctx, stop := f.display(r.run.Log, std).Work(ctx, "finishing", "part")
	result, err := r.Finish(ctx)
	stop()
	if errors.As(err, new(*steps.MissingError)) {
		return err
	}
	r.report = reportOf(result, r.run)
	notClosed := r.close() // takes time if the state is on S3
	return errors.Join(f.close(result, err, r.run.Input.Files(), r.run.Progress, started, r.run.Log, std), notClosed)
}

// say prints what was done, unless it is to be quiet.
func (f *stepFlags) say(std cli.Streams, format string, args ...any) error {
	if f.log.Quiet || f.asJSON {
		return nil
	}
	_, err := fmt.Fprintf(std.Out, format, args...)
	return err
}
