package steps

import (
	"context"
	"errors"
	"fmt"

	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/report"
)

// Make makes the parts of a window. The result is that of the window; it may be nil after an error.
func (r *Run) Make(ctx context.Context, window int) (*finish.Result, error) {
	if r.Finished() {
		return &finish.Result{}, nil
	}
	d, err := r.Division(ctx)
	if err != nil {
		return nil, err
	}
	if window < 0 || window >= len(d.Windows) {
		return nil, fmt.Errorf("window %d of %d does not exist", window, len(d.Windows))
	}
	w := d.Windows[window]
	return pipeline.MakeWindow(ctx, r.begun, w, r.partsIn(ctx, w))
}

// Finish publishes the dataset when all parts are made, and removes the objects
// of the run. If parts are missing, the error is a *pipeline.MissingError.
func (r *Run) Finish(ctx context.Context) (result *finish.Result, err error) {
	if r.Finished() {
		return finish.Tidy(r.begun)
	}
	lease, claimErr := r.folder.Claim(ctx)
	if claimErr == nil {
		defer func() { err = errors.Join(err, lease.Release()) }()
	}
	// Another process may have finished it in the meantime.
	switch again, err := Join(ctx, r.run, r.state); {
	case err == nil && again.Finished():
		return finish.Tidy(again.begun)
	case claimErr != nil:
		return nil, claimErr
	case err != nil:
		return nil, err
	}
	d, err := r.Division(ctx)
	if err != nil {
		return nil, err
	}
	all := r.partsIn(ctx, job.Window{Parts: d.Parts})
	return pipeline.FinishWindows(ctx, r.begun, d.Windows, all, r.job.Earlier, func() ([]report.Machine, error) { return r.machines(ctx) })
}
