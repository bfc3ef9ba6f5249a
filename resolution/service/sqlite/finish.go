package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// FinishJob ends a job in one change: its result, the capture of the credits
// spent, the release of the rest, and the callback if there is one, which is
// posted for the job's organization and resolution. It is ErrLeaseLost when
// another worker has the job, or nobody, since it went back into the queue, and
// ErrFinished when it was finished or cancelled before. A lease that has passed is no
// obstacle as long as no one took the job over.
func (s *Store) FinishJob(ctx context.Context, f state.Finish) error {
	if f.Status != state.Completed && f.Status != state.Failed {
		return fmt.Errorf("%w: a job does not finish as %q", resolution.ErrInvalid, f.Status)
	}
	return s.writer.Write(ctx, func(t *tx) error {
		j, err := t.leased(f.ID, f.Lease)
		if err != nil {
			return err
		}
		if f.Spent < 0 || f.Spent > j.reserved {
			return fmt.Errorf("%w: a job that reserved %d credits spent %d", resolution.ErrInvalid, j.reserved, f.Spent)
		}
		return t.finish(j, f)
	})
}

// CancelJob ends a job without a result, whoever has it, and gives its whole
// reservation back. It is ErrNotFound for an unknown id and ErrFinished for a
// job that has ended.
func (s *Store) CancelJob(ctx context.Context, id uuid.UUID, at time.Time, callback *state.Callback) error {
	return s.writer.Write(ctx, func(t *tx) error {
		j, err := t.unfinished(id)
		if err != nil {
			return err
		}
		return t.finish(j, state.Finish{ID: id, Status: state.Cancelled, Callback: callback, At: at})
	})
}

// unfinishedJob is what a change to a job under way needs to know of it.
type unfinishedJob struct {
	organization int64
	operation    resolution.Operation
	reserved     int64
	status       state.Status
	lease        int
}

func (t *tx) unfinished(id uuid.UUID) (unfinishedJob, error) {
	var j unfinishedJob
	found, err := t.Row("SELECT organization, operation, reserved, status, lease FROM resolutions WHERE id = ?", []any{id[:]},
		&j.organization, &j.operation, &j.reserved, &j.status, &j.lease)
	switch {
	case err != nil:
		return j, err
	case !found:
		return j, fmt.Errorf("resolution: %w", state.ErrNotFound)
	case j.status.Finished():
		return j, state.ErrFinished
	}
	return j, nil
}

// finish writes the end of a job that was looked at.
func (t *tx) finish(j unfinishedJob, f state.Finish) error {
	e := entry{organization: j.organization, reserved: true, of: f.ID, operation: j.operation, at: f.At}
	e.kind, e.credits = state.Capture, f.Spent
	if err := t.enter(e); err != nil {
		return err
	}
	e.kind, e.credits = state.Release, j.reserved-f.Spent
	if err := t.enter(e); err != nil {
		return err
	}
	err := t.Exec("UPDATE resolutions SET status = ?, held = NULL, finished = ?, spent = ?, result = ?, error = ? WHERE id = ?",
		string(f.Status), millis(f.At), f.Spent, f.Result, f.Error, f.ID[:])
	if err != nil || f.Callback == nil {
		return err
	}
	c := *f.Callback
	c.Organization, c.Resolution = j.organization, f.ID
	return t.post(c)
}
