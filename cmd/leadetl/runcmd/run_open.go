package runcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/pipeline/changes"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/sources"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/objectstate"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/pipeline/steps"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// opening is a run that is being opened, step by step.
type opening struct {
	*runFlags
	wire.Closers // of what is open
	std          cli.Streams
	operation    string
	run          *job.Run
	store        *objects.Store
	kept         wire.State // of earlier runs
	options      sources.Options
	holder       objects.Holder // of the output
}

// open opens everything that a run needs. closeRun closes it.
func (f *runFlags) open(ctx context.Context, operation string, std cli.Streams) (run *job.Run, closeRun func() error, err error) {
	o := &opening{runFlags: f, std: std, operation: operation}
	defer func() { o.CloseOn(&err) }()
	for _, step := range []func(context.Context) error{
		o.readSettings, o.openState, o.openLists, o.openInput, o.takeProgress, o.openOutput, o.openResolvers,
	} {
		if err := step(ctx); err != nil {
			return nil, nil, err
		}
	}
	return o.run, o.Close, nil
}

func (o *opening) readSettings(ctx context.Context) error {
	log, err := o.log.Open(o.std.Err)
	if err != nil {
		return cli.UsageError(err)
	}
	settings, err := o.job(o.operation)
	if err != nil {
		return cli.UsageError(err)
	}
	if err := o.checkOut(settings); err != nil {
		return cli.UsageError(err)
	}
	if o.store, err = o.s3.Open(ctx, log); err != nil {
		return cli.UsageError(err)
	}
	if o.options, err = o.reading(o.store); err != nil {
		return cli.UsageError(err)
	}
	o.options.Stdin, o.options.Sample, o.options.Wanted = o.std.In, settings.Sample, []string{settings.IdentifierColumn()}
	o.run = &job.Run{
		Job: settings, StateName: o.state, Overwrite: o.overwrite, Workers: o.workers, Program: cli.ProgramVersion(), Log: log, Progress: &stats.Progress{},
	}
	return nil
}

func (o *opening) openState(ctx context.Context) error {
	state, closeState, err := wire.OpenState(ctx, o.state, o.store)
	if err != nil {
		return err
	}
	o.Add(closeState)
	if state.Objects != nil && o.turn.Name != "" {
		state.Objects.HeldBy(o.turn)
	}
	if o.planning && state.Objects == nil {
		var remove func() error
		if state.Folder, remove, err = wire.StateToPlan(state.Folder); err != nil {
			return cli.UsageError(wire.FolderError("state", err))
		}
		o.Add(remove)
	}
	o.kept, o.run.StateDir = state, state.Folder
	return nil
}

// openLists opens suppression lists, then reference data, whose answers these are compared with.
func (o *opening) openLists(ctx context.Context) error {
	if err := o.openSuppression(ctx, o.run, o.store); err != nil {
		return err
	}
	closeDirectories, err := o.openDirectories(o.run)
	if err == nil {
		o.Add(closeDirectories)
	}
	return err
}

func (o *opening) openInput(ctx context.Context) (err error) {
	uris := o.in
	if o.search.isGiven() {
		if uris, err = o.search.list(&o.options); err != nil {
			return err
		}
	}
	input, err := wire.OpenInput(ctx, uris, o.options)
	if err != nil {
		return err
	}
	o.Add(input.Close)
	o.run.Input = input
	wire.TellLeftOut(o.run.Log, input)
	if err := wire.CheckApart(o.out, input.Files()); err != nil {
		return cli.UsageError(err)
	}
	if o.isRemote() && o.remote.offline && o.kept.Objects == nil && !wire.HoldsAnswers(ctx, o.state) {
		return errNothingStored(o.state)
	}
	if share := o.remote.maxNewKeys; share.String() != "" {
		if input.ReadOnce() {
			return cli.UsageError(errors.New("--max-new-keys reads the input twice; name a file in place of standard input"))
		}
		o.run.MaxNewKeys = new(share.Fraction())
	}
	return nil
}

// takeProgress takes the progress of the dataset, so that no other process makes it.
func (o *opening) takeProgress(ctx context.Context) (err error) {
	if err := os.MkdirAll(o.kept.Folder, 0o700); err != nil {
		return cli.UsageError(wire.FolderError("state", err))
	}
	switch {
	case o.shared != nil:
		if o.holder, err = o.openSharing(o.kept.Objects); err != nil || !o.shared.alone {
			return err
		}
		folder, err := o.kept.Runs().RunFolder(o.out)
		if err != nil {
			return err
		}
		held, err := folder.Claim(ctx)
		if err != nil {
			return wire.UnlessUnavailable(err)
		}
		o.Add(held.Release)
	case o.kept.Objects != nil:
		var release func() error
		if o.holder.Name, release, err = o.openProgress(ctx, o.kept.Runs(), o.run); err != nil {
			return wire.UnlessUnavailable(err)
		}
		o.holder.LostAfter = o.turn.LostAfter
		o.Add(release)
	}
	return nil
}

// openOutput opens the dataset, and those that it is compared with.
func (o *opening) openOutput(ctx context.Context) error {
	output, err := sinks.Open(ctx, o.out, sinks.Options{
		Objects: o.store, State: disk.Dir(o.kept.Folder), Holder: o.holder, Look: o.planning, Share: o.shared != nil && !o.shared.alone,
	})
	if err != nil {
		return wire.UnlessUnavailable(wire.FolderError("out", err))
	}
	o.Add(output.Close)
	o.run.Output = output
	return o.openChanges(ctx, o.run, o.kept, o.store)
}

// openResolvers opens who is asked, and reserves memory for looking up.
func (o *opening) openResolvers(ctx context.Context) error {
	if o.directory != "" {
		wire.SetGC(wire.LookupGC)
		o.Add(wire.ReserveHeap(wire.LookupReserve))
	}
	if !o.isRemote() {
		return nil
	}
	wire.SetGC(wire.RemoteGC)
	stored := &answersOf{State: o.kept}
	o.Add(stored.Close)
	closeOrder, err := o.openOrder(ctx, o.run, stored)
	if err == nil {
		o.Add(closeOrder)
	}
	return err
}

// checkOut refuses an output that the next run would read.
func (f *runFlags) checkOut(j job.Job) error {
	partitioned := j.PartitionBy != ""
	return errors.Join(wire.CheckNotRead("in", f.in, f.out, partitioned), wire.CheckNotRead("suppress", f.suppress.Lists, f.out, partitioned))
}

// openSuppression opens the lists, and prepares the DROP responses.
func (f *runFlags) openSuppression(ctx context.Context, run *job.Run, store *objects.Store) (err error) {
	f.suppress.Reading.Objects = store
	if f.dropAnswers != "" {
		if f.drop, err = openDropAnswers(ctx, f.dropAnswers, &f.suppress, run.Log); err != nil {
			return wire.UnlessUnavailable(err)
		}
		run.SuppressedReported = f.drop.present()
		run.ReportSuppressed = func(found suppression.Found) error { return f.drop.write(ctx, found) }
	}
	run.Suppression, err = f.suppress.Open(ctx, run.Job.DefaultRegion, run.Job.NetworkHosts, run.Log)
	return err
}

// openProgress opens the progress of the dataset in a state on S3. It returns
// the name of the journal. release lets other processes use it.
func (f *runFlags) openProgress(ctx context.Context, state *journal.State, run *job.Run) (holder string, release func() error, err error) {
	name, err := datasetName(f.out)
	if err != nil {
		return "", nil, err
	}
	own, err := state.Progress(ctx, name, f.planning)
	if err != nil {
		return "", nil, err
	}
	run.Journal = func(out string) (journal.Storage, error) {
		other, err := datasetName(out)
		if err != nil || other == name {
			return own, err
		}
		return state.Progress(ctx, other, true)
	}
	return own.String(), own.Release, nil
}

// openSharing returns the holder of the output, which all processes of a shared
// run are.
func (f *runFlags) openSharing(state *objectstate.State) (holder objects.Holder, err error) {
	out, err := objects.ParseFolder(f.out)
	if err != nil || state == nil {
		return holder, cli.UsageError(errors.Join(errors.New("a run of many processes needs --out and --state on S3"), err))
	}
	f.objects = state
	return steps.Holder(state, out.String())
}

// datasetName returns a unique name of a dataset, regardless of how its address
// is spelled.
func datasetName(out string) (string, error) {
	if at, err := objects.ParseFolder(out); err == nil {
		return at.String(), nil
	}
	return journal.DatasetName(out)
}

// needs lists the kinds of reference data for an operation. At least one of
// them must exist.
func needs(op resolution.Operation) (kinds []directory.Kind) {
	for _, k := range op.Facts().Needs {
		kinds = append(kinds, directory.Kind(k))
	}
	return kinds
}

// reads returns the kinds of reference data that answers to an operation may
// come from.
func reads(op resolution.Operation) []directory.Kind {
	kinds := needs(op)
	if op.Gives() != resolution.GivesCompany && !slices.Contains(kinds, directory.People) {
		kinds = append(kinds, directory.People)
	}
	return append(kinds, directory.Companies)
}

// openResolver opens the embedded engine on the directory. answers identifies
// the data of its answers; it is "" if the answers depend on no data.
func (f *runFlags) openResolver(folder string, job job.Job, lists *suppression.Set, log *slog.Logger) (r *embedded.Engine, answers string, closer func() error, err error) {
	options := embedded.Options{IncludeProviders: job.IncludeProviders}
	if job.Operation.Gives() == resolution.GivesCount { // for other operations, rows are suppressed instead
		options.Listed = wire.ListedIn(lists)
	}
	kinds := needs(job.Operation)
	if folder == "" {
		if len(kinds) > 0 {
			return nil, "", nil, fmt.Errorf("%s needs reference data; name its folder with --directory (make one with leadetl directory import)", job.Operation)
		}
		return embedded.New(nil, options), "", func() error { return nil }, nil
	}
	d, err := wire.OpenDirectory(folder)
	if err != nil {
		return nil, "", nil, err
	}
	if len(kinds) > 0 && !slices.ContainsFunc(kinds, d.Has) {
		var names []string
		for _, k := range kinds {
			names = append(names, string(k))
		}
		return nil, "", nil, errors.Join(fmt.Errorf("directory %s has no %s, which %s needs; import them with: leadetl directory import --directory %s --%s FILE",
			folder, strings.Join(names, " or "), job.Operation, folder, names[0]), d.Close())
	}
	r = embedded.New(d, options)
	if !r.Pure(job.Operation) {
		answers = d.Fingerprint()
	}
	if f.planning {
		if err := d.CheckAll(reads(job.Operation)...); err != nil {
			return nil, "", nil, errors.Join(err, d.Close())
		}
		if slices.Contains(kinds, directory.IPRanges) && !job.IncludeProviders {
			for _, k := range d.Stat() { // a run warns about its own rows
				wire.WarnOfWords(log, k.UnknownWords, k.Rows)
			}
		}
	}
	return r, answers, d.Close, nil
}

// changesFlags are the flags of what differs from an earlier dataset.
type changesFlags struct {
	from string
	with changes.Settings
}

// changesFromPrevious compares with the last finished dataset of the job.
const changesFromPrevious = "previous"

// openChanges reads the earlier datasets of the job, and opens the one to compare with.
func (f *runFlags) openChanges(ctx context.Context, run *job.Run, state wire.State, store *objects.Store) error {
	out, err := datasetName(f.out)
	if err != nil {
		return cli.UsageError(err)
	}
	name, err := f.jobName(run.Job)
	if err != nil {
		return cli.UsageError(err)
	}
	if run.Nights, err = state.Runs().Nights(ctx, name, out); err != nil {
		return wire.UnlessUnavailable(err)
	}
	if f.changes.from == "" {
		return nil
	}
	run.Changes = &job.Changes{Settings: f.changes.with}
	from := f.changes.from
	if from == changesFromPrevious {
		if f.overwrite && len(run.Job.Partitions) == 0 {
			return cli.UsageError(errors.New("--changes-from previous: --overwrite replaces the dataset to compare with; give each night a folder, as with --partition-by dt=DATE"))
		}
		before := run.Nights.Before()
		if before == nil {
			return nil
		}
		from = before.Out
	} else if same, err := datasetName(from); err == nil && same == out {
		return cli.UsageError(fmt.Errorf("--changes-from %s is the dataset in --out; name an earlier one", from))
	}
	run.Changes.Before, err = changes.Open(ctx, from, sinks.Options{Objects: store, State: disk.Dir(state.Folder)})
	if errors.Is(err, sinks.ErrNoDataset) && f.changes.from == changesFromPrevious {
		err = fmt.Errorf("%w; run its job again, name another one, or run once without --changes-from and load that dataset whole", err)
	}
	if err != nil {
		return wire.UnlessUnavailable(fmt.Errorf("--changes-from: %w", err))
	}
	return nil
}

// jobName is what the nights of a job have in common: its name, or else the operation and the
// output without the folders of partitions.
func (f *runFlags) jobName(j job.Job) (string, error) {
	if f.name != "" {
		return f.name, nil
	}
	out := strings.TrimSuffix(f.out, "/")
	if folders := strings.TrimPrefix(partitionFolder("", j.Partitions), "/"); folders != "" {
		out = strings.TrimSuffix(strings.TrimSuffix(out, folders), "/")
	}
	if out == "" {
		out = "."
	}
	name, err := datasetName(out)
	return string(j.Operation) + " " + name, err
}
