package finish

import (
	"context"
	"errors"

	"github.com/leadetl/leadetl/pipeline/changes"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/parts"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sinks/typed"
)

// changesOf makes the changes that a run asks for. Those of a finished dataset stay if
// no part was made again and the run asks for the same, or for none.
func changesOf(ctx context.Context, w *parts.Work, m *sinks.Manifest) (*sinks.Changes, error) {
	d := w.Decision
	run := d.Run
	if d.Finished != nil && w.Log.Parts().Made == 0 && d.HasChanges() {
		return d.Finished.Changes, nil
	}
	if run.Changes == nil {
		return nil, nil
	}
	if d.Finished != nil { // files that its manifest lists may be replaced
		if err := w.Log.Withdraw(); err != nil {
			return nil, err
		}
	}
	after := changes.Dataset{Dir: run.Output.Dir(), Files: run.Output, Manifest: m}
	made, err := changes.Make(ctx, run.Changes.Before, after, run.Changes.Settings, changes.Target{
		Create: run.Output.Beside(sinks.ChangesFolder), Sum: run.Output.Sum, Compression: run.Job.Compression, Scratch: run.StateDir,
	})
	if err != nil && ctx.Err() == nil {
		err = causeOf(run.Output, m, err)
	}
	return made, err
}

// causeOf is why a dataset cannot be compared. A file of it was changed since it was recorded; or it is damaged and has
// the recorded size and time, and then it is removed, else no run would make it again.
func causeOf(output *sinks.Dataset, m *sinks.Manifest, err error) error {
	if changed := output.CheckFiles(m.Files()); changed != nil {
		return changed
	}
	unread, is := errors.AsType[*typed.Error](err)
	if !is || unread.MayBeWhole {
		return err
	}
	for _, f := range m.Files() {
		if output.Path(f.Name) == unread.File {
			return output.Discard(f.Name, unread.Err)
		}
	}
	return err
}

// countsOf returns the counts of changes; nil without any.
func countsOf(c *sinks.Changes) *sinks.ChangeCounts {
	if c == nil {
		return nil
	}
	return &c.ChangeCounts
}

// previousOf is what a report says of an earlier night; nil without one.
func previousOf(n *journal.Night) *report.Previous {
	if n == nil {
		return nil
	}
	return &report.Previous{CompletedAt: n.CompletedAt, Rows: n.Rows, Matched: n.Matched, Credits: n.Credits}
}

// night is what a state remembers of a finished dataset.
func night(m *sinks.Manifest) journal.Night {
	return journal.Night{JobID: m.JobID, CompletedAt: m.CompletedAt, Rows: m.Totals.Rows, Matched: m.Totals.Matched, Credits: m.CreditsTotal}
}
