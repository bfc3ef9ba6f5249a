package finish

import (
	"context"

	"github.com/leadetl/leadetl/pipeline/changes"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/parts"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/sinks"
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
		if damage := run.Output.CheckFiles(m.Files()); damage != nil { // the cause
			err = damage
		}
	}
	return made, err
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
