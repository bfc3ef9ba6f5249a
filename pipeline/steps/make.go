package steps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/parts"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/sinks"
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
	return makeWindow(ctx, r.begun, w, r.partsIn(ctx, w))
}

// makeWindow makes the parts of a window. storage is the journal; it may have other parts too.
func makeWindow(ctx context.Context, begun *begin.Decision, window job.Window, storage journal.Storage) (*finish.Result, error) {
	d, err := begun.InWindows(storage)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(d.Recorded, func(number int, _ sinks.Part) bool {
		return number < window.First || number >= window.First+window.Parts
	})
	w, ctx, err := parts.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	err = w.Make(ctx, window)
	return finish.ResultOf(w), d.Missing(err)
}

// Finish publishes the dataset when all parts are made, and removes the objects
// of the run. If parts are missing, the error is a *MissingError.
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
	return finishWindows(ctx, r.begun, d.Windows, all, r.job.Earlier, func() ([]report.Machine, error) { return r.machines(ctx) })
}

// finishWindows publishes the dataset of all windows. earlier are the parts of an earlier run. machines, which is
// called if no part is missing, says for the report who made the others.
func finishWindows(ctx context.Context, begun *begin.Decision, windows []job.Window, storage journal.Storage, earlier []int, machines func() ([]report.Machine, error)) (result *finish.Result, err error) {
	d, err := begun.InWindows(storage)
	if err != nil {
		return nil, err
	}
	defer func() { err = d.Missing(err) }()
	w, ctx, err := parts.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if err := checkComplete(d.Recorded, windows); err != nil {
		return finish.ResultOf(w), err
	}
	madeBy, err := machines()
	if err != nil {
		return finish.ResultOf(w), err
	}
	progress := d.Run.Progress
	progress.Begin(d.Run.Job.Operation.IsKeyword())
	for number, p := range d.Recorded {
		keep := w.Log.KeepMade
		if slices.Contains(earlier, number) {
			keep = w.Log.Keep
		}
		keep(number, p)
		progress.Count(p.Totals)
		progress.CountPart()
	}
	progress.CountAllRead()
	reporter := finish.NewReporter(w)
	reporter.Machines = madeBy
	defer func() { reporter.Stopped(result, err) }()
	return reporter.Publish(ctx)
}

// MissingError says that not all parts of a dataset are made yet.
type MissingError struct {
	Parts   int   // how many are missing
	Windows []int // the numbers of their windows, in order
}

func (e *MissingError) Error() string {
	shown, more := e.Windows, ""
	if len(shown) > 10 {
		shown, more = shown[:10], fmt.Sprintf(" and %d more", len(e.Windows)-10)
	}
	return fmt.Sprintf("%d parts are missing, of windows %v%s", e.Parts, shown, more)
}

// checkComplete reports the parts of windows that are not recorded.
func checkComplete(recorded map[int]sinks.Part, windows []job.Window) error {
	missing := &MissingError{}
	for i, w := range windows {
		before := missing.Parts
		for number := w.First; number < w.First+w.Parts; number++ {
			if _, ok := recorded[number]; !ok {
				missing.Parts++
			}
		}
		if missing.Parts > before {
			missing.Windows = append(missing.Windows, i)
		}
	}
	if missing.Parts > 0 {
		return missing
	}
	return nil
}
