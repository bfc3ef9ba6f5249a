package begin

import (
	"context"
	"fmt"
	"slices"

	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/journal"
)

// Join decides the same as Begin did in another process. header is the journal's;
// it is nil if there is no journal, because the dataset is finished. The error is
// ErrOtherJob if the settings differ, and cut.ErrInputChanged if the input does.
func Join(ctx context.Context, r *job.Run, header *journal.Header) (*Decision, error) {
	d, err := decide(ctx, r, false) // the process that began the run has overwritten
	switch {
	case err != nil:
		return nil, err
	case header == nil || d.IsFinished():
		return d, nil
	case header.JobID != d.JobID:
		return nil, d.otherJob(header.Job)
	case !slices.EqualFunc(header.Inputs, d.Inputs, untouched):
		return nil, fmt.Errorf("%w; use another --out, or begin it again with --overwrite", cut.ErrInputChanged)
	}
	d.Header = *header
	return d, nil
}

// InWindows returns the decision for some windows, with a journal of its own: a write that
// fails ends a journal, but the next window may succeed.
func (d *Decision) InWindows(storage journal.Storage) (*Decision, error) {
	windowed := *d
	windowed.Windowed, windowed.Journal = true, journal.New(storage)
	_, parts, err := windowed.Journal.Read()
	if err != nil {
		return nil, err
	}
	d.Run.Output.Refresh()
	err = windowed.checkRecorded(parts, false) // what Begin improves is not recorded any more
	if err == nil && !windowed.wasFinished {
		err = windowed.dropUnreported()
	}
	return &windowed, err
}
