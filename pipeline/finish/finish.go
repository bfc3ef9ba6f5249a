// Package finish puts together the result of a run, writes its report, and publishes the
// dataset.
package finish

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/parts"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// Result is the result of a run.
type Result struct {
	Manifest *sinks.Manifest // nil when the run did not finish
	Report   *report.Report  // nil when there was nothing to do
	report.Counts
}

// Tidy returns the result of a run with nothing to do. It removes what a run that was killed
// while finishing may have left.
func Tidy(d *begin.Decision) (*Result, error) {
	if err := errors.Join(d.Run.Output.Tidy(d.Finished), d.Run.Nights.Finished(night(d.Finished)), d.Journal.Remove()); err != nil {
		return nil, err
	}
	return &Result{Manifest: d.Finished, Counts: report.Counts{
		Totals: d.Finished.Totals, Parts: report.Parts{Earlier: len(d.Recorded)},
		FirstReject: sinks.FirstOf(d.Finished.Parts), SuppressionEntries: d.Run.SuppressionEntries(), Changes: countsOf(d.Finished.Changes),
	}}, nil
}

// ResultOf returns what is done so far.
func ResultOf(w *parts.Work) *Result {
	d := w.Decision
	c := report.Counts{Parts: w.Log.Parts(), FirstReject: sinks.FirstOf(w.Log.InOrder()), SuppressionEntries: d.Run.SuppressionEntries()}
	c.Totals, c.Fresh = w.Log.Totals()
	if c.Totals.Rows > 0 {
		c.MatchRate = math.Round(float64(c.Totals.Matched)/float64(c.Totals.Rows)*1e4) / 1e4
	}
	counted := d.Run.Order.Counted()
	switch n, exact := w.Repeats.Count(); {
	case counted != nil:
		n = counted.Snapshot().Duplicates
		c.Duplicates = &n
	case exact && !d.Windowed && !d.Run.Job.Operation.IsKeyword(): // of windows, each process has seen some keys
		c.Duplicates = &n
	}
	return &Result{Counts: c}
}

// Publish finishes a dataset whose parts are all recorded.
func (r *Reporter) Publish(ctx context.Context) (*Result, error) {
	w, d := r.work, r.work.Decision
	if err := w.Log.SumRest(ctx); err != nil {
		return ResultOf(w), purchase.EndOf(ctx, err)
	}
	result := ResultOf(w)
	if err := reportSuppressed(w); err != nil {
		return result, err
	}
	m := manifest(d, w.Log)
	var err error
	if m.Changes, err = changesOf(ctx, w, m); err != nil {
		return result, purchase.EndOf(ctx, err)
	}
	result.Changes = countsOf(m.Changes)
	if result.Report, err = r.finished(result.Changes); err != nil {
		return result, err
	}
	if s := result.Report.Asked(); s != nil {
		m.Run, m.CreditsTotal, m.CreditsThisRun = s.Run, new(s.Calls.EarlierCredits+s.Calls.Credits), &s.Calls.Credits
	}
	m.Judged = w.Chain.Judged()
	// If the process is killed here, the next night misses this dataset, and says so. The other
	// way round it would be compared with the one before, although readers know this one.
	if err := d.Run.Nights.Finished(night(m)); err != nil {
		return result, err
	}
	if err := d.Run.Output.Publish(m); err != nil {
		return result, err
	}
	if err := d.Journal.Remove(); err != nil {
		return result, err
	}
	result.Manifest = m
	return result, nil
}

// reportSuppressed reports the matches of all parts with the suppression lists, before
// the dataset is published.
func reportSuppressed(w *parts.Work) error {
	d := w.Decision
	if d.Run.ReportSuppressed == nil || d.ReportedBefore && w.Log.Parts().Made == 0 {
		return nil
	}
	all := suppression.Found{}
	for _, number := range w.Log.Numbers() {
		found, err := d.Journal.Found(number)
		if err != nil {
			return d.SuppressedUnknown(err)
		}
		all.Add(found)
	}
	return d.Run.ReportSuppressed(all)
}

// manifest returns the manifest of the finished dataset.
func manifest(d *begin.Decision, log *parts.Log) *sinks.Manifest {
	j := d.Run.Job
	totals, _ := log.Totals()
	return &sinks.Manifest{
		Format: sinks.ManifestFormat, Program: d.Run.Program, Operation: string(j.Operation),
		SchemaVersion: columns.SchemaVersion, RulesVersion: columns.RulesVersion,
		JobID: d.JobID, Job: d.Settings, Inputs: d.Inputs, Totals: totals, Parts: log.InOrder(),
		Schema: d.Columns.Layout.Columns(), Partitions: j.Partitions, PartitionBy: d.Columns.Layout.Partition(),
		CompletedAt: time.Now().UTC().Truncate(time.Millisecond),
	}
}
