// Package finish puts together the result of a run, writes its report, and publishes the
// dataset.
package finish

import (
	"context"
	"errors"
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
	Totals   sinks.Totals    // of the whole dataset, parts of earlier runs included
	Fresh    sinks.Totals    // of the parts this run made
	Skipped  int             // parts that already existed
	Made     int             // parts this run made
	Report   *report.Report  // nil when there was nothing to do

	// FirstReject is the first invalid row or line; nil without one.
	FirstReject *sinks.FirstReject
	// Duplicates counts rows of this run with the key of another of its rows;
	// nil if unknown.
	Duplicates *int64
	// SuppressionEntries is the length of the suppression lists; nil without
	// lists.
	SuppressionEntries *int64
}

// Tidy returns the result of a run with nothing to do. It removes what a run that was killed
// while finishing may have left.
func Tidy(d *begin.Decision) (*Result, error) {
	if err := errors.Join(d.Run.Output.Tidy(d.Finished), d.Journal.Remove()); err != nil {
		return nil, err
	}
	return &Result{
		Manifest: d.Finished, Totals: d.Finished.Totals, Skipped: len(d.Recorded),
		FirstReject: sinks.FirstOf(d.Finished.Parts), SuppressionEntries: d.SuppressionEntries(),
	}, nil
}

// ResultOf returns what is done so far.
func ResultOf(w *parts.Work) *Result {
	d, counted := w.Decision, w.Log.Parts()
	r := &Result{Made: counted.Made, Skipped: counted.Earlier, FirstReject: sinks.FirstOf(w.Log.InOrder()), SuppressionEntries: d.SuppressionEntries()}
	r.Totals, r.Fresh = w.Log.Totals()
	switch n, exact := w.Repeats.Count(); {
	case d.Run.Remote != nil:
		n = d.Run.Remote.Counters.Snapshot().Duplicates
		r.Duplicates = &n
	case exact && !d.Windowed && !d.Run.Job.Operation.IsKeyword(): // of windows, each process has seen some keys
		r.Duplicates = &n
	}
	return r
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
	var err error
	if result.Report, err = r.finished(); err != nil {
		return result, err
	}
	m := manifest(d, w.Log)
	if s := result.Report.Service; s != nil {
		total := s.Calls.EarlierCredits + s.Calls.Credits
		m.Run, m.CreditsTotal, m.CreditsThisRun = s.Run, &total, &s.Calls.Credits
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
