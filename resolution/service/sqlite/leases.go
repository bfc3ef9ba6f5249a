package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// leaseNext leases the next job: ?1 is the current time, ?2 when the lease
// expires.
const leaseNext = `UPDATE resolutions SET status = 'processing', held = ?2, lease = lease + 1, deaths = deaths + (status = 'processing')
	WHERE rowid = coalesce((` + firstOfIdle + `), (` + firstOfAll + `)) RETURNING ` + jobColumns

// firstOfIdle is the usual case: one of the oldest free jobs belongs to an
// organization that has no running job. The statements name their indexes so
// that they fail instead of scanning all jobs when an index is missing.
const firstOfIdle = `SELECT free.rowid FROM (
		SELECT r.rowid, r.organization, r.requested FROM resolutions r INDEXED BY resolutions_unfinished
			WHERE r.finished IS NULL AND (r.held IS NULL OR r.held <= ?1) ORDER BY r.requested, r.rowid LIMIT 64) free
	WHERE NOT EXISTS (SELECT 1 FROM resolutions r INDEXED BY resolutions_processing
		WHERE r.organization = free.organization AND r.status = 'processing' AND r.held > ?1)
	ORDER BY free.requested, free.rowid LIMIT 1`

// firstOfAll finds the oldest free job of each organization, and takes the one
// whose organization has the fewest running jobs. Its cost does not depend on how
// many jobs an organization has.
const firstOfAll = `WITH RECURSIVE active(organization) AS (
		SELECT min(organization) FROM resolutions INDEXED BY resolutions_active WHERE finished IS NULL
		UNION ALL
		SELECT (SELECT min(r.organization) FROM resolutions r INDEXED BY resolutions_active WHERE r.finished IS NULL AND r.organization > active.organization)
			FROM active WHERE organization IS NOT NULL
	)
	SELECT first.rowid FROM active JOIN resolutions first ON first.rowid = (
		SELECT r.rowid FROM resolutions r INDEXED BY resolutions_active
			WHERE r.organization = active.organization AND r.finished IS NULL AND (r.held IS NULL OR r.held <= ?1) ORDER BY r.requested, r.rowid LIMIT 1)
	ORDER BY (SELECT count(*) FROM resolutions r INDEXED BY resolutions_processing
		WHERE r.organization = active.organization AND r.status = 'processing' AND r.held > ?1), first.requested, first.rowid LIMIT 1`

// LeaseJob leases the next job that is queued or whose lease has expired by now;
// nil without one. The worker holds it until the given time, and after
// that until another worker leases it; see Job.Lease. An expired lease counts as
// a death.
//
// The next job is the oldest one of the organizations with the fewest running
// jobs, so that slow searches of one organization never occupy all workers while
// others wait.
func (s *Queue) LeaseJob(ctx context.Context, now, until time.Time) (*state.Job, error) {
	var job *state.Job
	err := s.db.writer.Write(ctx, func(t *tx) error {
		t.sql.Wrote, job = true, nil // t.Row writes here
		var found bool
		leased, _, err := scanJob(func(into ...any) (err error) {
			found, err = t.sql.Row(leaseNext, []any{millis(now), millis(until)}, into...)
			return err
		})
		if found {
			job = &leased
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return job, nil
}

// RequeueLeased puts every leased job back into the queue, at its old place, and
// returns how many there were. Call it when a service starts: no worker of an
// earlier process is left then, so each of these attempts counts as a death.
func (s *Queue) RequeueLeased(ctx context.Context) (n int, err error) {
	err = s.db.writer.Write(ctx, func(t *tx) error {
		rows, err := t.sql.Update("UPDATE resolutions SET status = 'queued', held = NULL, deaths = deaths + 1 WHERE status = 'processing'")
		n = int(rows)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// RenewLease extends the lease of a job. The worker must stop on ErrLeaseLost,
// and on ErrFinished, which a cancelled job returns too.
func (s *Queue) RenewLease(ctx context.Context, id uuid.UUID, lease int, until time.Time) error {
	return s.db.writer.Write(ctx, func(t *tx) error {
		if _, err := t.leased(id, lease); err != nil {
			return err
		}
		return t.sql.Exec("UPDATE resolutions SET held = ? WHERE id = ?", millis(until), id[:])
	})
}

// PostponeJob puts a job whose attempt failed back into the queue, at its old
// place. It is not leased again before until. Errors are those of RenewLease.
func (s *Queue) PostponeJob(ctx context.Context, id uuid.UUID, lease int, until time.Time) error {
	return s.requeue(ctx, id, lease, millis(until), 1)
}

// ReturnJob puts a job back into the queue, at its old place, as if it had not
// been leased. A worker that has to stop uses it, so that no attempt is counted.
// Errors are those of RenewLease.
func (s *Queue) ReturnJob(ctx context.Context, id uuid.UUID, lease int) error {
	return s.requeue(ctx, id, lease, nil, 0)
}

func (s *Queue) requeue(ctx context.Context, id uuid.UUID, lease int, held any, failures int) error {
	return s.db.writer.Write(ctx, func(t *tx) error {
		if _, err := t.leased(id, lease); err != nil {
			return err
		}
		return t.sql.Exec("UPDATE resolutions SET status = 'queued', held = ?, failures = failures + ? WHERE id = ?", held, failures, id[:])
	})
}

// leased returns an unfinished job if the given lease is its current one.
func (t *tx) leased(id uuid.UUID, lease int) (unfinishedJob, error) {
	j, err := t.unfinished(id)
	if err == nil && (j.status != state.Processing || j.lease != lease) {
		err = state.ErrLeaseLost
	}
	return j, err
}

// FinishJob ends a job in one change: it stores the result, captures the credits
// spent, releases the rest, and posts the callback if there is one, for the job's
// organization and resolution. Errors: ErrLeaseLost when another worker holds the
// job or it is queued again, ErrFinished when it was finished or cancelled
// before. An expired lease still counts until another worker leases the job.
func (s *Queue) FinishJob(ctx context.Context, f state.Finish) error {
	if f.Status != state.Completed && f.Status != state.Failed {
		return fmt.Errorf("%w: a job cannot finish as %q", resolution.ErrInvalid, f.Status)
	}
	f.Result = pack(f.Result) // here, so that other changes do not wait for it
	if f.Callback != nil {
		packed := *f.Callback
		packed.Body = pack(packed.Body)
		f.Callback = &packed
	}
	return s.db.writer.Write(ctx, func(t *tx) error {
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

// CancelJob ends a job without a result, even while a worker holds it, and
// releases its whole reservation. Errors: ErrNotFound for an unknown id,
// ErrFinished for a finished job.
func (s *Queue) CancelJob(ctx context.Context, id uuid.UUID, at time.Time, callback *state.Callback) error {
	return s.db.writer.Write(ctx, func(t *tx) error {
		j, err := t.unfinished(id)
		if err != nil {
			return err
		}
		return t.finish(j, state.Finish{ID: id, Status: state.Cancelled, Callback: callback, At: at})
	})
}

// unfinishedJob has the fields of a job that a change to it needs.
type unfinishedJob struct {
	organization int64
	key          int64
	operation    resolution.Operation
	reserved     int64
	status       state.Status
	lease        int
}

func (t *tx) unfinished(id uuid.UUID) (unfinishedJob, error) {
	var j unfinishedJob
	found, err := t.sql.Row("SELECT organization, coalesce(key, 0), operation, reserved, status, lease FROM resolutions WHERE id = ?", []any{id[:]},
		&j.organization, &j.key, &j.operation, &j.reserved, &j.status, &j.lease)
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

// finish writes the end of a job.
func (t *tx) finish(j unfinishedJob, f state.Finish) error {
	e := entry{organization: j.organization, key: j.key, reserved: true, resolution: f.ID, operation: j.operation, at: f.At}
	e.kind, e.credits = state.Capture, f.Spent
	if err := t.enter(e); err != nil {
		return err
	}
	e.kind, e.credits = state.Release, j.reserved-f.Spent
	if err := t.enter(e); err != nil {
		return err
	}
	err := t.sql.Exec("UPDATE resolutions SET status = ?, held = NULL, finished = ?, spent = ?, result = ?, error = ? WHERE id = ?",
		string(f.Status), millis(f.At), f.Spent, f.Result, f.Error, f.ID[:])
	if err != nil || f.Callback == nil {
		return err
	}
	c := *f.Callback
	c.Organization, c.Resolution = j.organization, f.ID
	return t.outbox.post(c)
}
