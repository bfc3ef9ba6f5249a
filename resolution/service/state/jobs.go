package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
)

// Status is how far a keyword job has come.
type Status string

// The states of a job, in the words of the interface. A job is queued, then
// processing, maybe queued again after a restart, and then finished in one of
// three ways, once.
const (
	Queued     Status = "queued"
	Processing Status = "processing"
	Completed  Status = "completed"
	Failed     Status = "failed"
	Cancelled  Status = "cancelled"
)

// Finished says that nothing comes after this state.
func (s Status) Finished() bool { return s == Completed || s == Failed || s == Cancelled }

// Job is one keyword search under way, or what became of it.
type Job struct {
	ID           uuid.UUID
	Organization int64
	Operation    resolution.Operation
	Status       Status
	Requested    time.Time // to the millisecond, UTC
	Work         []byte    // what is to be done, as its worker reads it
	Payload      []byte    // the request, as it is echoed
	CallbackURL  string
	Reserved     int64 // credits set aside until it is finished

	// Attempts counts the leases. For a worker it is also the number of its
	// own: what proves in FinishJob and RenewLease that the job is still its.
	Attempts int

	Finished time.Time // zero until it is
	Spent    int64     // credits, at most Reserved
	Result   []byte
	Error    string // why it failed: a word, nothing of the request
}

// Finish is how an attempt at a job ended.
type Finish struct {
	ID       uuid.UUID
	Attempt  int    // Job.Attempts as leased
	Status   Status // Completed or Failed
	Result   []byte
	Error    string
	Spent    int64 // credits, at most what the job reserved; the rest is given back
	Callback *Callback
	At       time.Time
}

// The refusals of jobs. Each left everything as it was.
var (
	ErrTooManyActive = errors.New("too many unfinished jobs")
	ErrFinished      = errors.New("already finished")
	ErrLeaseLost     = errors.New("another attempt has taken over")
	ErrExpired       = errors.New("result no longer kept")
)

// CreateJob queues a job, sets its credits aside and stores the reply that
// says so, in one change. It returns the organization's credits left. Status
// and what comes after it in Job are not read; a nil reply is none.
//
// An organization has at most maxActive unfinished jobs, where 0 is any
// number: one more is ErrTooManyActive. Too few credits are an
// *InsufficientError, an unknown organization is ErrNotFound, a known id
// ErrExists.
func (s *State) CreateJob(ctx context.Context, job Job, maxActive int, reply *Reply) (available int64, err error) {
	if job.Reserved < 0 {
		return 0, fmt.Errorf("%w: a job reserves %d credits", resolution.ErrInvalid, job.Reserved)
	}
	err = s.write(ctx, func(t *tx) error {
		if err := t.mayCreate(job, maxActive); err != nil {
			return err
		}
		if err := t.mayStore(reply, job.Requested); err != nil {
			return err
		}
		err := t.enter(entry{organization: job.Organization, kind: Reserve, credits: job.Reserved, of: job.ID, operation: job.Operation, at: job.Requested})
		if err != nil {
			return err
		}
		err = t.exec(`INSERT INTO resolutions(id, organization, operation, status, requested, work, payload, callback, reserved)
			VALUES (?, ?, ?, 'queued', ?, ?, ?, ?, ?)`,
			job.ID[:], job.Organization, string(job.Operation), millis(job.Requested), job.Work, job.Payload, job.CallbackURL, job.Reserved)
		if err != nil {
			return err
		}
		t.store(reply, job.Requested)
		available, err = t.available(job.Organization)
		return err
	})
	if err != nil {
		return 0, err
	}
	return available, nil
}

// mayCreate looks for what is against a new job, credits apart.
func (t *tx) mayCreate(job Job, maxActive int) error {
	if _, err := t.account(job.Organization); err != nil {
		return err
	}
	var taken bool
	var active int
	_, err := t.row(`SELECT EXISTS(SELECT 1 FROM resolutions WHERE id = ?),
		(SELECT count(*) FROM resolutions WHERE organization = ? AND finished IS NULL)`, []any{job.ID[:], job.Organization}, &taken, &active)
	switch {
	case err != nil:
		return err
	case taken:
		return fmt.Errorf("resolution: %w", ErrExists)
	case maxActive > 0 && active >= maxActive:
		return ErrTooManyActive
	}
	return nil
}

// LeaseJob gives a worker the oldest job that waits, or that was leased to a
// worker whose lease passed by now, and nil when there is none. The job is the
// worker's until until, and longer if nobody asks for it; see Job.Attempts.
//
// Oldest first is fair because CreateJob bounds what an organization has in
// the queue: before a job come at most maxActive of each other organization,
// and nothing that was created later.
func (s *State) LeaseJob(ctx context.Context, now, until time.Time) (*Job, error) {
	var job *Job
	err := s.write(ctx, func(t *tx) error {
		t.wrote, job = true, nil // t.row writes here
		var found bool
		leased, _, err := scanJob(func(into ...any) (err error) {
			// The index is named because the order is what it is for: the
			// statement fails rather than sort all that waits.
			found, err = t.row(`UPDATE resolutions SET status = 'processing', lease = ?2, attempts = attempts + 1
				WHERE id = (SELECT id FROM resolutions INDEXED BY resolutions_unfinished
					WHERE finished IS NULL AND (status = 'queued' OR lease <= ?1) ORDER BY requested, rowid LIMIT 1)
				RETURNING `+jobColumns, []any{millis(now), millis(until)}, into...)
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

// RequeueLeased puts every job that a worker had back into the queue, at its
// old place, and returns their number. It is for the start of a service, when
// no worker of an earlier process is left.
func (s *State) RequeueLeased(ctx context.Context) (n int, err error) {
	err = s.write(ctx, func(t *tx) error {
		rows, err := t.update("UPDATE resolutions SET status = 'queued', lease = NULL WHERE finished IS NULL AND status = 'processing'")
		n = int(rows)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// RenewLease keeps a job for the worker that has it as its attempt. ErrLeaseLost
// and ErrFinished, for a cancelled one too, tell it to stop.
func (s *State) RenewLease(ctx context.Context, id uuid.UUID, attempt int, until time.Time) error {
	return s.write(ctx, func(t *tx) error {
		if _, err := t.held(id, attempt); err != nil {
			return err
		}
		return t.exec("UPDATE resolutions SET lease = ? WHERE id = ?", millis(until), id[:])
	})
}

// FinishJob ends a job in one change: its result, the capture of the credits
// spent, the release of the rest, and the callback if there is one, which is
// posted for the job's organization and resolution. It is ErrLeaseLost when
// another attempt has the job, or nobody since RequeueLeased, and ErrFinished
// when it was finished or cancelled before. A lease that has passed is no
// obstacle as long as no one took the job over.
func (s *State) FinishJob(ctx context.Context, f Finish) error {
	if f.Status != Completed && f.Status != Failed {
		return fmt.Errorf("%w: a job does not finish as %q", resolution.ErrInvalid, f.Status)
	}
	return s.write(ctx, func(t *tx) error {
		j, err := t.held(f.ID, f.Attempt)
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
func (s *State) CancelJob(ctx context.Context, id uuid.UUID, at time.Time, callback *Callback) error {
	return s.write(ctx, func(t *tx) error {
		j, err := t.unfinished(id)
		if err != nil {
			return err
		}
		return t.finish(j, Finish{ID: id, Status: Cancelled, Callback: callback, At: at})
	})
}

// FindJob returns an organization's job. An id that is unknown, or another
// organization's, is ErrNotFound; one whose result Purge has let go is
// ErrExpired, and in the end ErrNotFound again.
func (s *State) FindJob(ctx context.Context, organization int64, id uuid.UUID) (*Job, error) {
	job, expired, err := scanJob(s.reads.QueryRowContext(ctx, "SELECT "+jobColumns+" FROM resolutions WHERE id = ? AND organization = ?", id[:], organization).Scan)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("resolution: %w", ErrNotFound)
	case err != nil:
		return nil, unavailable(err)
	case expired:
		return nil, fmt.Errorf("resolution: %w", ErrExpired)
	}
	return &job, nil
}

// unfinishedJob is what a change to a job under way needs to know of it.
type unfinishedJob struct {
	organization int64
	operation    resolution.Operation
	reserved     int64
	status       Status
	attempts     int
}

func (t *tx) unfinished(id uuid.UUID) (unfinishedJob, error) {
	var j unfinishedJob
	found, err := t.row("SELECT organization, operation, reserved, status, attempts FROM resolutions WHERE id = ?", []any{id[:]},
		&j.organization, &j.operation, &j.reserved, &j.status, &j.attempts)
	switch {
	case err != nil:
		return j, err
	case !found:
		return j, fmt.Errorf("resolution: %w", ErrNotFound)
	case j.status.Finished():
		return j, ErrFinished
	}
	return j, nil
}

// held is unfinished for the worker of an attempt.
func (t *tx) held(id uuid.UUID, attempt int) (unfinishedJob, error) {
	j, err := t.unfinished(id)
	if err == nil && (j.status != Processing || j.attempts != attempt) {
		err = ErrLeaseLost
	}
	return j, err
}

// finish writes the end of a job that was looked at.
func (t *tx) finish(j unfinishedJob, f Finish) error {
	e := entry{organization: j.organization, reserved: true, of: f.ID, operation: j.operation, at: f.At}
	e.kind, e.credits = Capture, f.Spent
	if err := t.enter(e); err != nil {
		return err
	}
	e.kind, e.credits = Release, j.reserved-f.Spent
	if err := t.enter(e); err != nil {
		return err
	}
	err := t.exec("UPDATE resolutions SET status = ?, lease = NULL, finished = ?, spent = ?, result = ?, error = ? WHERE id = ?",
		string(f.Status), millis(f.At), f.Spent, f.Result, f.Error, f.ID[:])
	if err != nil || f.Callback == nil {
		return err
	}
	c := *f.Callback
	c.Organization, c.Resolution = j.organization, f.ID
	return t.post(c)
}

// jobColumns are what scanJob reads, in its order.
const jobColumns = `id, organization, operation, status, requested, work, payload, coalesce(callback, ''), reserved,
	attempts, finished, spent, result, coalesce(error, ''), expired`

// scanJob hands scan the places for jobColumns.
func scanJob(scan func(into ...any) error) (j Job, expired bool, err error) {
	var requested int64
	var finished *int64
	err = scan(&j.ID, &j.Organization, &j.Operation, &j.Status, &requested, &j.Work, &j.Payload, &j.CallbackURL, &j.Reserved,
		&j.Attempts, &finished, &j.Spent, &j.Result, &j.Error, &expired)
	j.Requested, j.Finished = moment(requested), optionalMoment(finished)
	return j, expired, err
}
