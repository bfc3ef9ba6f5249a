package pipeline

import (
	"context"

	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/parts"
)

// Do runs the job until it is done or ctx ends: it begins, makes the whole input, and
// finishes. When ctx ends, Do stops reading, finishes and records the parts whose rows are
// all read, and returns ctx's error. Running the same job again resumes from there.
func Do(ctx context.Context, r *job.Run) (result *finish.Result, err error) {
	d, err := begin.Begin(ctx, r, checkNewKeys)
	if err != nil {
		return nil, err
	}
	defer d.Journal.Close()
	defer func() { err = d.Missing(err) }()
	if d.IsFinished() {
		return finish.Tidy(d)
	}
	w, ctx, err := parts.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	reporter := finish.NewReporter(w)
	defer func() { reporter.Stopped(result, err) }() // when no call is in flight
	defer w.Close()
	if err := w.Make(ctx, job.WholeInput); err != nil {
		return finish.ResultOf(w), err
	}
	return reporter.Publish(ctx)
}
