package runcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/pipeline/order"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/pipeline/changes"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/sources"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/pipeline/steps"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// opening is a run that is being opened, step by step.
type opening struct {
	*runFlags
	wire.Closers // of what is open
	std          cli.Streams
	run          *job.Run
	store        *objects.Store
	kept         wire.State       // of earlier runs
	stored       *wire.RunAnswers // of kept
	options      sources.Options
	holder       objects.Holder // of the output
}

// open opens everything that a run needs. closeRun closes it.
func (f *runFlags) open(ctx context.Context, std cli.Streams) (run *job.Run, closeRun func() error, err error) {
	o := &opening{runFlags: f, std: std}
	defer func() { o.CloseOn(&err) }()
	for _, step := range []func(context.Context) error{
		o.readSettings, o.awaitInput, o.openState, o.openLists, o.openInput, o.takeProgress, o.openOutput, o.openResolvers,
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

// awaitInput waits for the input before anything is opened that another run could use in the meantime.
func (o *opening) awaitInput(ctx context.Context) error {
	if o.worker {
		return nil
	}
	return o.await(ctx, o.store, o.run.Log)
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
	o.suppress.Reading.Objects = o.store
	lists, err := o.suppress.OpenAll(ctx, o.run.Job.DefaultRegion, o.run.Job.NetworkHosts, o.run.Log)
	if err != nil {
		return err
	}
	o.run.Suppression = lists.Set
	if o.dropAnswers != "" {
		if o.drop, err = openDropAnswers(ctx, o.dropAnswers, o.store, o.suppress.Lists, lists.Drop, o.run.Log); err != nil {
			return wire.UnlessUnavailable(err)
		}
		o.run.SuppressedReported = o.drop.written
		o.run.ReportSuppressed = func(found suppression.Found) error { return o.drop.write(ctx, found) }
	}
	return cli.UsageError(o.beginOrder())
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
			return cli.UsageError(errors.New("max_new_keys reads the input twice; name a file in place of standard input"))
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
		if o.holder, err = o.share(); err != nil || !o.shared.alone {
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
		if err := o.openProgress(ctx); err != nil {
			return wire.UnlessUnavailable(err)
		}
		o.holder.LostAfter = o.turn.LostAfter
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
	return o.openChanges(ctx)
}

// openResolvers opens who is asked, and reserves memory for looking up.
func (o *opening) openResolvers(ctx context.Context) error {
	if o.directory != "" {
		o.Add(wire.ReserveHeap(wire.LookupReserve))
		wire.SetGC(wire.LookupGC)
	}
	if !o.isRemote() {
		return nil
	}
	wire.SetGC(wire.RemoteGC)
	o.stored = &wire.RunAnswers{State: o.kept}
	o.Add(o.stored.Close)
	return o.openOrder(ctx)
}

// checkOut refuses an output that the next run would read.
func (f *runFlags) checkOut(j job.Job) error {
	partitioned := j.PartitionBy != ""
	return errors.Join(wire.CheckNotRead("in", f.in, f.out, partitioned), wire.CheckNotRead("suppress", f.suppress.Lists, f.out, partitioned))
}

// openProgress opens the progress of the dataset in a state on S3, which holds the output.
func (o *opening) openProgress(ctx context.Context) error {
	state := o.kept.Runs()
	name, err := datasetName(o.out)
	if err != nil {
		return err
	}
	own, err := state.Progress(ctx, name, o.planning)
	if err != nil {
		return err
	}
	o.run.Journal = func(out string) (journal.Storage, error) {
		other, err := datasetName(out)
		if err != nil || other == name {
			return own, err
		}
		return state.Progress(ctx, other, true)
	}
	o.holder.Name = own.String()
	o.Add(own.Release)
	return nil
}

// share returns the holder of the output, which all processes of a shared run are.
func (o *opening) share() (holder objects.Holder, err error) {
	out, err := objects.ParseFolder(o.out)
	if err != nil || o.kept.Objects == nil {
		return holder, cli.UsageError(errors.Join(errors.New("a run of many processes needs --out and --state on S3"), err))
	}
	o.objects = o.kept.Objects
	return steps.Holder(o.objects, out.String())
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

// openEngine opens the embedded engine on a directory, for a step of the order.
func (o *opening) openEngine(step *order.Step, folder string) error {
	job := o.run.Job
	options := embedded.Options{IncludeProviders: job.IncludeProviders}
	if job.Operation.Gives() == resolution.GivesCount { // for other operations, rows are suppressed instead
		options.Listed = wire.ListedIn(o.run.Suppression)
	}
	kinds := needs(job.Operation)
	if folder == "" {
		if len(kinds) > 0 {
			return fmt.Errorf("%s needs reference data; name its folder with --directory (make one with leadetl directory import)", job.Operation)
		}
		step.Directory = embedded.New(nil, options)
		return nil
	}
	d, err := wire.OpenDirectory(folder)
	if err != nil {
		return err
	}
	o.Add(d.Close)
	if len(kinds) > 0 && !slices.ContainsFunc(kinds, d.Has) {
		var names []string
		for _, k := range kinds {
			names = append(names, string(k))
		}
		return fmt.Errorf("directory %s has no %s, which %s needs; import them with: leadetl directory import --directory %s --%s FILE",
			folder, strings.Join(names, " or "), job.Operation, folder, names[0])
	}
	engine := embedded.New(d, options)
	step.Directory, step.OtherPhoneRules = engine, d.HasOtherPhoneRules()
	if !engine.Pure(job.Operation) {
		step.Fingerprint = d.Fingerprint()
	}
	if o.planning {
		if err := d.CheckAll(reads(job.Operation)...); err != nil {
			return err
		}
		if slices.Contains(kinds, directory.IPRanges) && !job.IncludeProviders {
			for _, k := range d.Stat() { // a run warns about its own rows
				wire.WarnOfWords(o.run.Log, k.UnknownWords, k.Rows)
			}
		}
	}
	return nil
}

// changesFlags are the flags of what differs from an earlier dataset.
type changesFlags struct {
	from string
	with changes.Settings
}

// changesFromPrevious compares with the last finished dataset of the job.
const changesFromPrevious = "previous"

// openChanges reads the earlier datasets of the job, and opens the one to compare with.
func (o *opening) openChanges(ctx context.Context) error {
	out, err := datasetName(o.out)
	if err != nil {
		return cli.UsageError(err)
	}
	name, err := o.jobName()
	if err != nil {
		return cli.UsageError(err)
	}
	if o.run.Nights, err = o.kept.Runs().Nights(ctx, name, out); err != nil {
		return wire.UnlessUnavailable(err)
	}
	if o.changes.from == "" {
		return nil
	}
	o.run.Changes = &job.Changes{Settings: o.changes.with}
	from := o.changes.from
	if from == changesFromPrevious {
		if o.overwrite && len(o.run.Job.Partitions) == 0 {
			return cli.UsageError(errors.New("--changes-from previous: --overwrite replaces the dataset to compare with; give each night a folder, as with --partition-by dt=DATE"))
		}
		before := o.run.Nights.Before()
		if before == nil {
			return nil
		}
		from = before.Out
	} else if same, err := datasetName(from); err == nil && same == out {
		return cli.UsageError(fmt.Errorf("--changes-from %s is the dataset in --out; name an earlier one", from))
	}
	o.run.Changes.Before, err = changes.Open(ctx, from, sinks.Options{Objects: o.store, State: disk.Dir(o.kept.Folder)})
	if errors.Is(err, sinks.ErrNoDataset) && o.changes.from == changesFromPrevious {
		err = fmt.Errorf("%w; run its job again, name another one, or run once without --changes-from and load that dataset whole", err)
	}
	if err != nil {
		if suggest.IsClose(from, changesFromPrevious) {
			err = fmt.Errorf("did you mean %s? %w", changesFromPrevious, err)
		}
		return wire.UnlessUnavailable(fmt.Errorf("--changes-from: %w", err))
	}
	return nil
}

// jobName is what the nights of a job have in common: its name, or else the operation and the
// output without the folders of partitions.
func (o *opening) jobName() (string, error) {
	if o.name != "" {
		return o.name, nil
	}
	name, err := datasetName(schema.AbovePartitions(o.out, o.run.Job.Partitions))
	return string(o.run.Job.Operation) + " " + name, err
}
