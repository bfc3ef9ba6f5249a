package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/pipeline/changes"
	"github.com/leadetl/leadetl/sinks"
)

// changesFlags are the flags of changes.
type changesFlags struct {
	out       string
	overwrite bool
	settings  changes.Settings
	verify    bool
	quiet     bool
	s3        wire.S3
}

func newChangesCommand(std cli.Streams) *cobra.Command {
	var f changesFlags
	c := &cobra.Command{
		Use:   "changes OLD NEW --out FOLDER",
		Short: "Write the rows in which two datasets differ",
		Long: `Compare two finished datasets of one operation and write the rows that differ
to FOLDER/part-00000.parquet and so on, _SUCCESS last: the columns of the datasets,
and
  change        added, changed, removed or without_key
  changed       names of the columns that differ
  was_COLUMN    value in OLD, for columns that --was names
  since         job_id of OLD
  key_hash      in place of the key and all else, of removed rows, if NEW has
                suppression lists: hex SHA-256 of since, a colon and the key
  row_hash      tells rows with one key apart, in NEW
  was_row_hash  the same in OLD

Rows are found by --by, best a column of your own ids, or by key, and rejected rows
by the identifier as it was written. Of rows with one key, those of the same content
are paired first, the others in their order. What has neither key nor identifier and
is in one dataset only is without_key. Compared are the kept input columns, outcome,
reason and the operation's own columns. A row that failed or was skipped in NEW is
changed in outcome and reason, not in the answer it had. Suppressed rows are in
neither dataset.

After a kill the same command begins again; of finished changes it repeats the counts.

The operation, the columns and the version of the rules must be the same. Inputs,
folders and budgets may differ. A run compares with the night before by
--changes-from.`,
		Example: `  leadetl changes out/hems/dt=2026-11-23 out/hems/dt=2026-11-24 --out out/changes
  leadetl changes old new --out diff --by id --was company_name,phone
  leadetl changes s3://leads/monday/ s3://leads/tuesday/ --out s3://leads/diff/`,
		Annotations: cli.ExitCodes(map[int]string{
			cli.ExitRejects:     "--verify found an issue; see standard output",
			cli.ExitTryAgain:    "S3 out of reach, or FOLDER in use; run the same command later",
			cli.ExitInterrupted: "interrupted; run the same command again",
		}),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return errors.New("name two datasets, as in: leadetl changes OLD NEW --out FOLDER")
			}
			return cli.AtMost(2, args)
		},
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), args[0], args[1], std) },
	}
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.out, "out", "", "`folder` for the changes, empty or new, or s3://bucket/prefix/")
	flags.BoolVar(&f.overwrite, "overwrite", false, "replace changes in --out")
	flags.StringVar(&f.settings.By, "by", "", "`column` that identifies a row, such as your own id, by its name in the input or the datasets (default: key)")
	flags.StringSliceVar(&f.settings.Compare, "compare", nil, "`columns` to compare too: "+strings.Join(changes.NotCompared, ", "))
	flags.StringSliceVar(&f.settings.Was, "was", nil, "`columns` whose values in OLD are written too")
	flags.BoolVar(&f.verify, "verify", false, "read all again and check that OLD with the changes is NEW")
	flags.BoolVar(&f.quiet, "quiet", false, "print errors only")
	f.s3.Register(flags)
	return c
}

func (f *changesFlags) run(ctx context.Context, before, after string, std cli.Streams) (err error) {
	if f.out == "" {
		return cli.UsageError(errors.New("no --out; name a folder for the changes"))
	}
	ctx, stop := runview.Watch(ctx, std, "comparing", "row", !f.quiet)
	defer stop()
	store, err := f.s3.Open(ctx, std.Log())
	if err != nil {
		return cli.UsageError(err)
	}
	work, err := os.MkdirTemp("", "leadetl-changes-*")
	if err != nil {
		return fmt.Errorf("a folder to work in: %w; TMPDIR names another place", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	options := sinks.Options{Objects: store, State: disk.Dir(work)}
	var opened [2]*changes.Dataset
	for i, uri := range []string{before, after} {
		if opened[i], err = changes.Open(ctx, uri, options); err != nil {
			return wire.UnlessUnavailable(err)
		}
	}
	made, err := changes.Describe(opened[0], *opened[1], f.settings)
	if err != nil {
		return err
	}
	want := &sinks.Comparison{Of: opened[1].Manifest.JobID, OfAt: opened[1].Manifest.CompletedAt, Changes: *made}
	folder, err := sinks.Open(ctx, f.out, options)
	if err != nil {
		return wire.UnlessUnavailable(wire.FolderError("out", err))
	}
	out := sinks.Compared{Dataset: folder}
	defer func() { err = errors.Join(err, out.Close()) }()
	wire.SetGC(wire.VerifyGC)
	wire.SetHeap(wire.VerifyHeap)
	if made, err = f.finished(out, want); err != nil {
		return wire.UnlessUnavailable(wire.FolderError("out", err))
	}
	if made == nil {
		if made, err = f.compare(ctx, opened, out, want, work); err != nil {
			return err
		}
	}
	stop()
	if !f.quiet {
		if _, err := fmt.Fprintln(std.Out, made); err != nil {
			return err
		}
	}
	if !f.verify {
		return nil
	}
	problems, err := changes.Check(ctx, opened[0], *opened[1], out, made, work)
	for _, problem := range problems {
		fmt.Fprintln(std.Out, problem)
	}
	if err == nil && len(problems) > 0 {
		err = cli.WithCode(cli.ExitRejects, fmt.Errorf("%s: OLD with the changes is not NEW", f.out))
	}
	return err
}

// compare makes the changes.
func (f *changesFlags) compare(ctx context.Context, opened [2]*changes.Dataset, out sinks.Compared, want *sinks.Comparison, work string) (*sinks.Changes, error) {
	if err := out.Begin(want); err != nil {
		return nil, err
	}
	made, err := changes.Make(ctx, opened[0], *opened[1], f.settings, changes.Target{
		Create: out.Beside(""), Sum: out.Sum, Compression: compressionOf(opened[1].Manifest), Scratch: work,
	})
	if err != nil {
		return nil, err
	}
	want.Changes = *made
	return made, out.End(want)
}

// finished returns the changes if the folder has them already, and nil if they are to be made in
// it. It refuses other files than those of this comparison, of an unfinished one, or with
// --overwrite of any: nothing of a dataset is removed, finished or not.
func (f *changesFlags) finished(out sinks.Compared, want *sinks.Comparison) (*sinks.Changes, error) {
	empty, err := out.Empty()
	if err != nil || empty {
		return nil, err
	}
	m, err := out.UnfinishedManifest()
	if err != nil {
		return nil, err
	}
	earlier, finished, err := out.Comparison()
	switch {
	case err != nil:
		return nil, err
	case m != nil:
		return nil, fmt.Errorf("%s is a dataset; choose an empty or new folder", f.out)
	case earlier == nil && f.overwrite:
		return nil, fmt.Errorf("%s holds files that are not of leadetl changes; choose an empty or new folder", f.out)
	case earlier == nil || finished && !f.overwrite && !earlier.IsOf(want):
		return nil, fmt.Errorf("%s holds files; choose an empty or new folder, or replace earlier changes with --overwrite", f.out)
	case !finished || f.overwrite:
		return nil, nil
	}
	if err = out.CheckFiles(earlier.Files); errors.Is(err, sinks.ErrCorrupt) {
		return nil, nil
	}
	return &earlier.Changes, err
}

// compressionOf is how the files of a dataset are compressed.
func compressionOf(m *sinks.Manifest) sinks.Compression {
	var job struct{ Compression sinks.Compression }
	if json.Unmarshal(m.Job, &job) != nil || job.Compression == "" {
		return sinks.Snappy
	}
	return job.Compression
}
