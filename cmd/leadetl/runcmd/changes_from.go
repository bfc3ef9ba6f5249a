package runcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/changes"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/sinks"
)

// changesFlags are the flags of what differs from an earlier dataset.
type changesFlags struct {
	from string
	with changes.Settings
}

// changesFromPrevious compares with the last finished dataset of the job.
const changesFromPrevious = "previous"

func (f *changesFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.from, "changes-from", "", "write the rows that differ from an earlier `dataset` to _changes: its folder or URI, or previous, the last finished one of this operation and --out in --state")
	flags.StringVar(&f.with.By, "changes-by", "", "`column` of the input that identifies a row there, best your own id (default: key)")
	flags.StringSliceVar(&f.with.Compare, "changes-compare", nil, "`columns` to compare too: "+strings.Join(changes.NotCompared, ", "))
	flags.StringSliceVar(&f.with.Was, "changes-was", nil, "`columns` whose earlier values are written too, as was_COLUMN")
}

// check refuses settings of changes without a dataset.
func (f *changesFlags) check() error {
	if f.from == "" && (f.with.By != "" || len(f.with.Compare) > 0 || len(f.with.Was) > 0) {
		return errors.New("--changes-by, --changes-compare and --changes-was need --changes-from; name a dataset, or previous")
	}
	return nil
}

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
