package runcmd

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
)

// NewDoctorCommand returns the command doctor.
func NewDoctorCommand(std cli.Streams) *cobra.Command {
	f, repair := runFlags{}, false
	c := &cobra.Command{
		Use:   "doctor [OPERATION] --job FILE|FLAGS-OF-RUN | doctor --state URI [--repair]",
		Short: "Check what a run needs, without running or spending anything",
		Long: `Check what leadetl run with the same flags, or job file, needs: the settings, the
state, free disk space, the input, suppression lists, the output folder,
reference data or each resolver, its API key and credits, and the clock. It
checks only what is given.

It asks a service for the balance of the account, which costs nothing, and
compares it and the budgets with the plan of the run, if that is made within
10 s. Of a provider
it asks the address alone, without the key. In the
folders it can write to, on S3 too, it makes a small file or object and removes
it. It reads no input from standard input.

With --state alone it reads everything in a state, while no run uses it: stored
answers, open calls, logs, databases, and what unfinished runs and finished
datasets keep there. It says whether the state is whole and what is lost, and
exits with 0 or 1. With --repair it sets damaged files aside, keeps
all that can be read, and counts what is lost as spent.`,
		Example: `  leadetl doctor --job nightly.yaml
  leadetl doctor enrichment --in s3://leads/lists/ --resolver https://leads.example
  leadetl doctor --state s3://leads/state/`,
		Annotations: cli.ExitCodes(map[int]string{
			cli.ExitDone: "all checks passed", cli.ExitUsage: "a check failed that a person has to correct",
			cli.ExitBudget: "the account has no credits", cli.ExitTryAgain: "the service or S3 is out of reach", cli.ExitInterrupted: "interrupted",
		}),
		Args:      OneOperation,
		ValidArgs: resolution.OperationNames(),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		d := checkup{flags: &f, std: std}
		if err := f.applySet(); err != nil {
			return cli.UsageError(err)
		}
		if d.isAboutState(args) {
			if err := cliflag.ApplyEnvironment(f.all, "set"); err != nil {
				return cli.UsageError(err)
			}
			if err := d.examineState(c.Context(), repair); err != nil {
				return err
			}
			return d.conclude()
		}
		if repair {
			return cli.UsageError(errors.New("--repair goes with --state alone"))
		}
		d.examine(c.Context(), args)
		if c.Context().Err() != nil {
			return wire.ErrInterruptedEarly
		}
		return d.conclude()
	}
	f.register(c)
	c.Flags().BoolVar(&repair, "repair", false, "set damaged files of the state aside, and keep the rest")
	return c
}

// patience is the default time that doctor waits for a service or a store.
const patience = "10s"

const (
	// minFree is the free space below which a disk counts as full.
	minFree = 256 << 20
	// maxSkew is the maximum clock difference. S3 refuses more than 15
	// minutes.
	maxSkew = 5 * time.Minute
)

// checkup is one run of doctor.
type checkup struct {
	flags  *runFlags
	std    cli.Streams
	checks []check
	notes  []string // below the table
	// account are the credits of the only service that is asked; nil if it has not told them.
	account *int64
}

// check is one line of the table.
type check struct {
	what, note string
	err        error
	skipped    bool
}

func (d *checkup) ok(what, note string)   { d.checks = append(d.checks, check{what: what, note: note}) }
func (d *checkup) skip(what, note string) { d.checks = append(d.checks, check{what, note, nil, true}) }
func (d *checkup) failed(what string, e error) {
	d.checks = append(d.checks, check{what: what, err: e})
}

// report adds a check: failed with err, or passed with note.
func (d *checkup) report(what, note string, err error) bool {
	if err != nil {
		d.failed(what, err)
		return false
	}
	d.ok(what, note)
	return true
}

func (d *checkup) anyFailed() bool {
	return slices.ContainsFunc(d.checks, func(c check) bool { return c.err != nil })
}

// examine runs all checks.
func (d *checkup) examine(ctx context.Context, args []string) {
	f := d.flags
	operation, err := f.settle(ctx, args)
	err = errors.Join(err, cli.UsageError(f.checkSummary()))
	for _, name := range []string{"s3-give-up-after", "timeout"} {
		if !f.all.Changed(name) {
			err = errors.Join(err, f.all.Set(name, patience))
		}
	}
	var j job.Job
	known := false // whether j is valid
	switch {
	case err != nil:
		d.failed("settings", err)
	case operation == "":
		d.skip("settings", "no operation is named")
	default:
		j, err = f.described(operation)
		known = d.report("settings", operation, cli.UsageError(err))
	}
	if !objects.Is(f.state) {
		d.report("state folder", f.state, d.checkState())
		d.checkDisk("disk of --state", f.state)
	}
	log, err := f.log.Open(io.Discard)
	if err != nil {
		d.failed("log", cli.UsageError(err))
		return
	}
	store, err := f.s3.Open(ctx, log)
	if err != nil {
		d.failed("S3", cli.UsageError(err))
		return
	}
	if objects.Is(f.state) {
		d.report("state on S3", f.state+": list, write, read and remove", tryObjects(ctx, store, "state", f.state))
		d.checkDisk("disk of temporary files", os.TempDir())
	}
	d.checkInput(ctx, j, known, store)
	f.suppress.Reading.Objects = store
	if len(f.suppress.Lists) > 0 {
		lists, err := f.suppress.Open(ctx, f.dataset.job.DefaultRegion, f.dataset.job.NetworkHosts, log)
		if err != nil {
			d.failed("suppression lists", err)
		} else {
			d.ok("suppression lists", figures.Plural(lists.Entries(), "entry"))
		}
	}
	if f.out != "" {
		if err := f.checkOut(j); err != nil {
			d.failed("output", cli.UsageError(err))
		} else {
			d.checkOutput(ctx, store)
		}
	}
	clock, of := d.checkAnswers(ctx, operation, j, known)
	if clock.IsZero() && !slices.ContainsFunc(d.checks, func(c check) bool { return errors.Is(c.err, objects.ErrNotS3) }) {
		clock, of = d.storeClock(ctx), "S3"
	}
	d.checkClock(clock, of)
}

// checkState checks the state folder, and writes to it if it exists.
func (d *checkup) checkState() error {
	if err := wire.CheckRunState(d.flags.state); err != nil {
		return err
	}
	return checkWritable("state", d.flags.state)
}

// checkWritable checks whether a run could write to a local folder, or create
// it.
func checkWritable(flag, folder string) error {
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		above := wire.Existing(folder)
		if err := unix.Access(above, unix.W_OK|unix.X_OK); err != nil {
			return cli.UsageError(fmt.Errorf("--%s: %s cannot be made: %s may not be written to; change its permissions, or name another folder", flag, folder, above))
		}
		probe, err := os.MkdirTemp(above, ".leadetl-doctor-*")
		if err != nil { // as in /proc
			return cli.UsageError(fmt.Errorf("--%s: the folder %s cannot be made there; name another", flag, folder))
		}
		return os.Remove(probe)
	case err == nil && !info.IsDir():
		return cli.UsageError(fmt.Errorf("--%s: %s is a file; name a folder", flag, folder))
	case err != nil:
		return cli.UsageError(wire.FolderError(flag, err))
	}
	f, err := os.CreateTemp(folder, ".leadetl-doctor-*")
	if err != nil {
		return cli.UsageError(fmt.Errorf("--%s: %s may not be written to; change its permissions, or name another folder: %w", flag, folder, err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// checkDisk checks the free space of a folder's disk.
func (d *checkup) checkDisk(what, folder string) {
	var s unix.Statfs_t
	at := wire.Existing(filepath.Clean(folder))
	if err := unix.Statfs(at, &s); err != nil {
		d.skip(what, "not known")
		return
	}
	free := int64(s.Bavail) * int64(s.Bsize)
	if free < minFree {
		d.failed(what, fmt.Errorf("%s free at %s; make room", figures.Size(free), at))
		return
	}
	d.ok(what, figures.Size(free)+" free")
}

// checkInput opens the inputs as a run does.
func (d *checkup) checkInput(ctx context.Context, j job.Job, known bool, store *objects.Store) {
	uris := slices.DeleteFunc(slices.Clone(d.flags.in), func(uri string) bool { return uri == "-" })
	if len(uris) < len(d.flags.in) {
		d.skip("input", "standard input is not read")
	}
	if len(uris) == 0 {
		return
	}
	if arrival := d.flags.arrival; arrival.Within > 0 {
		arrival.Objects = store
		if err := arrival.There(ctx, uris); errors.Is(err, sources.ErrNotThere) {
			d.skip("input", err.Error()+"; a run waits for it")
			return
		}
	}
	options, err := d.flags.reading(store)
	if err != nil {
		d.failed("input", cli.UsageError(err))
		return
	}
	if known {
		options.Wanted = []string{j.IdentifierColumn()}
	}
	list, err := wire.OpenInput(ctx, uris, options)
	if err != nil {
		d.failed("input", err)
		return
	}
	defer list.Close()
	if known {
		if _, err = job.ChooseColumns(j, list, job.Source{Remote: d.flags.isRemote(), Suppress: len(d.flags.suppress.Lists) > 0}); err != nil {
			d.failed("input", cli.UsageError(err))
			return
		}
	}
	size := int64(0)
	for _, file := range list.Files() {
		size += max(file.Size, 0)
	}
	d.ok("input", figures.Plural(len(list.Files()), "file")+", "+figures.Size(size))
}

// checkOutput checks whether the dataset could be written. It uses a test
// object to check the permissions to list, write, read and delete.
func (d *checkup) checkOutput(ctx context.Context, store *objects.Store) {
	out := d.flags.out
	if !objects.Is(out) {
		d.report("output", out, checkWritable("out", out))
		d.checkDisk("disk of --out", out)
		return
	}
	d.report("output", out+": list, write, read and remove", tryObjects(ctx, store, "out", out))
}

// tryObjects writes, reads and deletes an object below a prefix to check the
// permissions.
func tryObjects(ctx context.Context, store *objects.Store, flag, uri string) error {
	folder, err := objects.ParseFolder(uri)
	if err != nil {
		return cli.UsageError(fmt.Errorf("--%s: %w", flag, err))
	}
	if _, _, err := store.ListFolder(ctx, folder); err != nil {
		return err
	}
	at := folder.Below("_leadetl-doctor-" + strings.ToLower(rand.Text())) // readers skip this name
	if _, err := store.Put(ctx, at, objects.ContentOf([]byte("written and removed by leadetl doctor\n"), "text/plain")); err != nil {
		return err
	}
	_, _, err = store.ReadFile(ctx, at)
	none := func(string) bool { return false } // lists unfinished uploads and keeps them
	return errors.Join(err, store.Remove(ctx, at), store.AbortUploads(ctx, folder, none))
}

// checkPlan compares the plan with the budgets, and with the credits of the account if it told
// them, as leadetl plan does. It needs all checks so far to have passed, and a plan within patience.
func (d *checkup) checkPlan(ctx context.Context, operation string) {
	if operation == "" || d.flags.out == "" || len(d.flags.in) == 0 || slices.Contains(d.flags.in, "-") || d.anyFailed() {
		return
	}
	planning := *d.flags
	planning.planning, planning.log.Quiet = true, true
	timed, done := context.WithTimeout(ctx, planPatience)
	defer done()
	var plan *pipeline.Plan
	run, closeRun, err := planning.open(timed, cli.Streams{Out: io.Discard, Err: io.Discard})
	if err == nil {
		plan, err = pipeline.MakePlan(timed, run)
		err = errors.Join(err, closeRun())
	}
	if err != nil {
		d.skip("credits for the list", "not compared; leadetl plan does")
		return
	}
	if d.account != nil {
		d.ok("credits for the list", runview.AccountNote(*d.account, plan.Calls.Credits))
	}
	if note := runview.BudgetNote(plan); note != "" {
		d.skip("budget", note)
	}
}

// planPatience is how long doctor plans at most.
const planPatience = 10 * time.Second

// storeClock returns the time of S3. It is zero if S3 is not used or sends no
// time. It sends no credentials.
func (d *checkup) storeClock(ctx context.Context) (clock time.Time) {
	if !slices.ContainsFunc(append(slices.Clone(d.flags.in), d.flags.out, d.flags.state), objects.Is) {
		return clock
	}
	endpoint := cmp.Or(d.flags.s3.Endpoint(), "https://s3.amazonaws.com")
	timed, done := context.WithTimeout(ctx, 5*time.Second)
	defer done()
	request, err := http.NewRequestWithContext(timed, http.MethodHead, endpoint, nil)
	if err != nil {
		return clock
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return clock
	}
	response.Body.Close()
	clock, _ = http.ParseTime(response.Header.Get("Date"))
	return clock
}

// checkClock compares the local clock with clock.
func (d *checkup) checkClock(clock time.Time, of string) {
	if clock.IsZero() {
		d.skip("clock", "not compared: no service or store says the time")
		return
	}
	off := time.Since(clock).Round(time.Second)
	if off.Abs() > maxSkew {
		d.failed("clock", cli.UsageError(fmt.Errorf("%s off from %s; set the clock (NTP)", off.Abs(), of)))
		return
	}
	d.ok("clock", "as "+of+" has it")
}

// conclude prints the table and chooses the exit code. Problems that the user
// has to correct take precedence over temporary ones.
func (d *checkup) conclude() error {
	table := tabwriter.NewWriter(d.std.Out, 0, 0, 2, ' ', 0)
	failed, codes := 0, map[int]bool{}
	for _, c := range d.checks {
		result, note := "ok", c.note
		switch {
		case c.err != nil:
			failed++
			codes[cli.ExitCode(c.err)] = true
			result, note = "failed", strings.ReplaceAll(cli.Reason(c.err), "\n", "; ")
		case c.skipped:
			result = "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", c.what, result, invisible.Escape(note))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, note := range d.notes {
		fmt.Fprintln(d.std.Out, note)
	}
	if failed == 0 {
		return nil
	}
	err := fmt.Errorf("%d of %s failed", failed, figures.Plural(len(d.checks), "check"))
	for _, code := range []int{cli.ExitUsage, cli.ExitFailure, cli.ExitBudget} {
		if codes[code] {
			return cli.WithCode(code, err)
		}
	}
	return cli.WithCode(cli.ExitTryAgain, err)
}
