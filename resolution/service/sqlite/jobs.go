package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// CreateJob queues a job, reserves its credits and stores the reply, which may be
// nil, in one change. It returns the organization's available credits. It ignores
// the fields about attempts and the end of the job.
//
// An organization may have maxActive unfinished jobs; 0 is no limit. Errors:
// ErrTooManyActive above it, *InsufficientError without enough credits,
// ErrNotFound for an unknown organization, ErrExists for a known id.
func (s *Queue) CreateJob(ctx context.Context, job state.Job, maxActive int, reply *state.Reply) (available int64, err error) {
	if job.Reserved < 0 {
		return 0, fmt.Errorf("%w: a job cannot reserve %d credits", resolution.ErrInvalid, job.Reserved)
	}
	err = s.db.writer.Write(ctx, func(t *tx) error {
		if err := t.mayCreate(job, maxActive); err != nil {
			return err
		}
		if err := t.mayStore(reply, job.Requested); err != nil {
			return err
		}
		seen, found, err := t.seen(job)
		if err != nil {
			return err
		}
		err = t.enter(entry{organization: job.Organization, kind: state.Reserve, credits: job.Reserved, key: job.Key, resolution: job.ID, operation: job.Operation, at: job.Requested})
		if err != nil {
			return err
		}
		if !found {
			if seen, err = job.Sees, t.see(job); err != nil {
				return err
			}
		}
		if err := t.queue(job, seen); err != nil {
			return err
		}
		t.store(state.Charge{Reply: reply, At: job.Requested})
		available, err = t.available(job.Organization)
		return err
	})
	if err != nil {
		return 0, err
	}
	return available, nil
}

// mayCreate returns why a job cannot be created; it does not check credits.
func (t *tx) mayCreate(job state.Job, maxActive int) error {
	if _, err := t.account(job.Organization); err != nil {
		return err
	}
	var taken bool
	var active int
	_, err := t.sql.Row(`SELECT EXISTS(SELECT 1 FROM resolutions WHERE id = ?),
		(SELECT count(*) FROM resolutions WHERE organization = ? AND finished IS NULL)`, []any{job.ID[:], job.Organization}, &taken, &active)
	switch {
	case err != nil:
		return err
	case taken:
		return fmt.Errorf("resolution: %w", state.ErrExists)
	case maxActive > 0 && active >= maxActive:
		return state.ErrTooManyActive
	}
	return nil
}

// queue writes a new job. seen is the data it searches.
func (t *tx) queue(j state.Job, seen state.Snapshot) error {
	return t.sql.Exec(`INSERT INTO resolutions(id, organization, operation, status, requested, work, payload, callback, receiver, reserved,
			taken, day_start, day_end, edition, key)
		VALUES (?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		j.ID[:], j.Organization, string(j.Operation), millis(j.Requested), j.Work, j.Payload, j.CallbackURL, j.Receiver, j.Reserved,
		millis(seen.Taken), millis(seen.Start), millis(seen.End), seen.Edition, orNull(j.Key, j.Key == 0))
}

// FindJob returns a job of an organization. Errors: ErrNotFound for an unknown id
// and for a job of another organization, ErrExpired after Purge removed its
// result. Purge later removes the rest too, and then it is ErrNotFound again.
func (s *Queue) FindJob(ctx context.Context, organization int64, id uuid.UUID) (*state.Job, error) {
	return s.findJob(ctx, "id = ? AND organization = ?", id[:], organization)
}

// AnyonesJob is FindJob for administrators: it finds the jobs of all
// organizations.
func (s *Queue) AnyonesJob(ctx context.Context, id uuid.UUID) (*state.Job, error) {
	return s.findJob(ctx, "id = ?", id[:])
}

// Jobs lists at most limit jobs of an organization, the newest first, without
// their contents. It starts after the job before; uuid.Nil starts with the
// newest. An empty status selects all.
func (s *Queue) Jobs(ctx context.Context, organization int64, status state.Status, before uuid.UUID, limit int) ([]state.Job, error) {
	scan := func(row interface{ Scan(...any) error }) (state.Job, error) {
		j, _, err := scanJob(row.Scan)
		return j, err
	}
	if before == uuid.Nil {
		before = uuid.Max
	}
	return collect(ctx, s.db.reads, scan, "SELECT "+listedJobColumns+" FROM resolutions WHERE organization = ?1 AND id < ?2 AND (?3 = '' OR status = ?3) ORDER BY id DESC LIMIT ?4",
		organization, before[:], string(status), max(limit, 0))
}

// Searches counts the jobs of an organization by status.
func (s *Queue) Searches(ctx context.Context, organization int64) ([]state.Searches, error) {
	return collect(ctx, s.db.reads, func(row interface{ Scan(...any) error }) (x state.Searches, err error) {
		return x, row.Scan(&x.Status, &x.Count, &x.Credits)
	}, `SELECT status, count(*), sum(CASE WHEN finished IS NULL THEN reserved ELSE spent END) FROM resolutions
		WHERE organization = ? GROUP BY status ORDER BY status`, organization)
}

// listedJobColumns are jobColumns without what a job contains.
var listedJobColumns = strings.NewReplacer("work, payload,", "NULL, NULL,", " result,", " NULL,").Replace(jobColumns)

func (s *Queue) findJob(ctx context.Context, which string, args ...any) (*state.Job, error) {
	job, expired, err := scanJob(s.db.reads.QueryRowContext(ctx, "SELECT "+jobColumns+" FROM resolutions WHERE "+which, args...).Scan)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("resolution: %w", state.ErrNotFound)
	case err != nil:
		return nil, unavailable(err)
	case expired:
		return nil, fmt.Errorf("resolution: %w", state.ErrExpired)
	}
	return &job, nil
}

// jobColumns are what scanJob reads, in its order.
const jobColumns = `id, organization, operation, status, requested, work, payload, coalesce(callback, ''), coalesce(receiver, ''), reserved,
	taken, day_start, day_end, edition, lease, failures, deaths, finished, spent, result, coalesce(error, ''), expired, coalesce(key, 0)`

// scanJob reads jobColumns.
func scanJob(scan func(into ...any) error) (j state.Job, expired bool, err error) {
	var requested, taken, start, end int64
	var finished *int64
	err = scan(&j.ID, &j.Organization, &j.Operation, &j.Status, &requested, &j.Work, &j.Payload, &j.CallbackURL, &j.Receiver, &j.Reserved,
		&taken, &start, &end, &j.Sees.Edition, &j.Lease, &j.Failures, &j.Deaths, &finished, &j.Spent, &j.Result, &j.Error, &expired, &j.Key)
	if err == nil {
		j.Result, err = unpack(j.Result)
	}
	j.Sees.Taken, j.Sees.Start, j.Sees.End = moment(taken), moment(start), moment(end)
	j.Requested, j.Finished = moment(requested), optionalMoment(finished)
	return j, expired, err
}

// seen returns the snapshot that an earlier job with the same hash used; found is
// false without one within the window.
func (t *tx) seen(j state.Job) (seen state.Snapshot, found bool, err error) {
	var taken, start, end int64
	found, err = t.sql.Row("SELECT taken, day_start, day_end, edition FROM snapshots WHERE organization = ? AND fingerprint = ? AND taken > ?",
		[]any{j.Organization, j.Search[:], millis(j.Sees.Taken.Add(-state.SnapshotWindow))}, &taken, &start, &end, &seen.Edition)
	seen.Taken, seen.Start, seen.End = moment(taken), moment(start), moment(end)
	return seen, found, err
}

// see stores the snapshot of a new job for later jobs with the same hash.
func (t *tx) see(j state.Job) error {
	return t.sql.Exec("INSERT OR REPLACE INTO snapshots(organization, fingerprint, taken, day_start, day_end, edition) VALUES (?, ?, ?, ?, ?, ?)",
		j.Organization, j.Search[:], millis(j.Sees.Taken), millis(j.Sees.Start), millis(j.Sees.End), j.Sees.Edition)
}
