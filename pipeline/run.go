package pipeline

import (
	"context"

	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/parts"
	"github.com/leadetl/leadetl/pipeline/purchase"
)

// Do runs the job until it is done or ctx ends: it begins, makes the whole input, and
// finishes. When ctx ends, Do stops reading, finishes and records the parts whose rows are
// all read, and returns ctx's error. Running the same job again resumes from there.
func Do(ctx context.Context, r *job.Run) (result *finish.Result, err error) {
	d, err := begin.Decide(ctx, r)
	if err != nil {
		return nil, err
	}
	defer d.Journal.Close()
	defer func() { err = d.Missing(err) }()
	if d.IsFinished() {
		return finish.Tidy(d)
	}
	if c := d.Columns; c.Kept > 0 && c.Identifier >= c.Kept && c.Layout.Writes("key") && !r.Job.Operation.IsKeyword() {
		r.Log.Info("key holds the identifier, although --select leaves its column out; --drop-identifier leaves out both", "column", c.Read[c.Identifier])
	}
	if err := checkNewKeys(ctx, d); err != nil {
		return nil, purchase.EndOf(ctx, err)
	}
	if err := d.Begin(ctx); err != nil {
		return nil, err
	}
	w := parts.New(d)
	reporter := finish.NewReporter(w)
	defer func() { reporter.Stopped(result, err) }() // when no call is in flight
	if w.Chain, ctx, err = r.Order.Open(ctx, d.OrderOptions(w.EngineSlots())); err != nil {
		return nil, err
	}
	defer w.Chain.Close()
	if err := w.Make(ctx, job.WholeInput); err != nil {
		return finish.ResultOf(w), purchase.EndOf(ctx, err)
	}
	all, _ := w.Log.Totals()
	if err := w.Chain.End(all.Skipped > 0); err != nil {
		return finish.ResultOf(w), err
	}
	return reporter.Publish(ctx)
}
