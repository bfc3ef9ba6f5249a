package pipeline

import (
	"context"
	"slices"

	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
)

// limitsNewKeys reports whether a run stops if more of its keys have no stored answer than the
// job allows: the job has finished a dataset before. A run that resumes after a recorded part
// was let through.
func limitsNewKeys(d *begin.Decision) bool {
	r := d.Run
	return r.MaxNewKeys != nil && r.AsksAny() && r.Nights.Any() && len(d.Recorded) == 0
}

// tooManyNewKeys reports whether limitsNewKeys stops a run with some new ones among its keys.
func tooManyNewKeys(d *begin.Decision, new, keys int64) bool {
	return limitsNewKeys(d) && float64(new) > *d.Run.MaxNewKeys*float64(keys)
}

// checkNewKeys stops a run whose list is not what it was, before it replaces a dataset and before
// the first call. It reads the input once more.
func checkNewKeys(ctx context.Context, d *begin.Decision) error {
	if !limitsNewKeys(d) {
		return nil
	}
	r := *d.Run
	r.Progress = &stats.Progress{} // that of the run counts its own reading
	planning := *d
	planning.Run = &r
	p, err := plan(ctx, &planning)
	if err != nil {
		return err
	}
	if slices.Contains(p.Calls.NotEnough, "max_new_keys") {
		return &purchase.NewKeysError{Limit: *r.MaxNewKeys, New: p.Calls.New, Keys: p.Keys}
	}
	return nil
}
