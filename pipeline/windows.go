package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/parts"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/sinks"
)

// MakeWindow makes the parts of a window that are not recorded yet, and records them.
// storage is the journal; it may have other parts too. The result is that of the window.
// Many goroutines and processes may call it, also for the same window: they write the same
// bytes.
func MakeWindow(ctx context.Context, begun *begin.Decision, window job.Window, storage journal.Storage) (_ *finish.Result, err error) {
	d, err := begun.InWindows(storage)
	if err != nil {
		return nil, err
	}
	defer func() { err = d.Missing(err) }()
	maps.DeleteFunc(d.Recorded, func(number int, _ sinks.Part) bool {
		return number < window.First || number >= window.First+window.Parts
	})
	w := parts.New(d)
	if len(d.Recorded) == window.Parts {
		for number, p := range d.Recorded {
			w.Log.Keep(number, p)
		}
		return finish.ResultOf(w), nil
	}
	if err := w.Make(ctx, window); err != nil {
		return finish.ResultOf(w), err
	}
	if err := w.Log.SumRest(ctx); err != nil {
		return finish.ResultOf(w), err
	}
	result := finish.ResultOf(w)
	if n := result.Parts.All(); n != window.Parts {
		return result, fmt.Errorf("%w: it has rows for %d parts, not for %d", cut.ErrInputChanged, n, window.Parts)
	}
	return result, nil
}

// FinishWindows publishes the dataset of all windows, with its report, and removes the
// journal. The error is a *MissingError if some parts are not recorded, or no longer
// match their record. One process at a time may call it. earlier are the parts of an earlier
// run. machines, which is called if no part is missing, says for the report who made the others.
func FinishWindows(ctx context.Context, begun *begin.Decision, windows []job.Window, storage journal.Storage, earlier []int, machines func() ([]report.Machine, error)) (result *finish.Result, err error) {
	d, err := begun.InWindows(storage)
	if err != nil {
		return nil, err
	}
	defer func() { err = d.Missing(err) }()
	w := parts.New(d)
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
