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
	Receiver     string // host:port of the callback
	Reserved     int64  // credits set aside until it is finished

	// Search is the hash of the fields that choose leads, which CreateJob
	// alone reads. Sees is the data the job sees: CreateJob is given what it
	// sees if it is the first with this hash for a while; see SnapshotWindow.
	Search [32]byte
	Sees   Snapshot

	// Lease is the number of the job's last lease. For a worker it is that of
	// its own: what proves that the job is still its. It says nothing about
	// how the job fares; the next two do.
	Lease    int
	Failures int // attempts that failed and were postponed
	Deaths   int // attempts of which nothing was heard: the process, as a rule, did not survive them

	Finished time.Time // zero until it is
	Spent    int64     // credits, at most Reserved
	Result   []byte
	Error    string // why it failed: a word, nothing of the request
}

// The refusals of jobs. Each left everything as it was.
var (
	ErrTooManyActive = errors.New("too many unfinished jobs")
	ErrFinished      = errors.New("already finished")
	ErrLeaseLost     = errors.New("another attempt has taken over")
	ErrExpired       = errors.New("result no longer kept")
)

// CreateJob queues a job, sets its credits aside and stores the reply that
// says so, in one change. It returns the organization's credits left. What it
// says of attempts and of the end is not read; a nil reply is none.
//
// An organization has at most maxActive unfinished jobs, where 0 is any
// number: one more is ErrTooManyActive. Too few credits are an
// *InsufficientError, an unknown organization is ErrNotFound, a known id
// ErrExists.
func (s *State) CreateJob(ctx context.Context, job Job, maxActive int, reply *Reply) (available int64, err error) {
	if job.Reserved < 0 {
		return 0, fmt.Errorf("%w: a job reserves %d credits", resolution.ErrInvalid, job.Reserved)
	}
	err = s.writer.Write(ctx, func(t *tx) error {
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
		err = t.enter(entry{organization: job.Organization, kind: Reserve, credits: job.Reserved, of: job.ID, operation: job.Operation, at: job.Requested})
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
	_, err := t.Row(`SELECT EXISTS(SELECT 1 FROM resolutions WHERE id = ?),
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

// queue writes a new job, which sees what was seen.
func (t *tx) queue(j Job, seen Snapshot) error {
	return t.Exec(`INSERT INTO resolutions(id, organization, operation, status, requested, work, payload, callback, receiver, reserved,
			taken, day_start, day_end, edition)
		VALUES (?, ?, ?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		j.ID[:], j.Organization, string(j.Operation), millis(j.Requested), j.Work, j.Payload, j.CallbackURL, j.Receiver, j.Reserved,
		millis(seen.Taken), millis(seen.Start), millis(seen.End), seen.Edition)
}

// FindJob returns an organization's job. An id that is unknown, or another
// organization's, is ErrNotFound; one whose result Purge has let go is
// ErrExpired, and in the end ErrNotFound again.
func (s *State) FindJob(ctx context.Context, organization int64, id uuid.UUID) (*Job, error) {
	return s.findJob(ctx, "id = ? AND organization = ?", id[:], organization)
}

// AnyonesJob is FindJob for those who administer: the job may be of any
// organization.
func (s *State) AnyonesJob(ctx context.Context, id uuid.UUID) (*Job, error) {
	return s.findJob(ctx, "id = ?", id[:])
}

func (s *State) findJob(ctx context.Context, which string, args ...any) (*Job, error) {
	job, expired, err := scanJob(s.reads.QueryRowContext(ctx, "SELECT "+jobColumns+" FROM resolutions WHERE "+which, args...).Scan)
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

// jobColumns are what scanJob reads, in its order.
const jobColumns = `id, organization, operation, status, requested, work, payload, coalesce(callback, ''), coalesce(receiver, ''), reserved,
	taken, day_start, day_end, edition, lease, failures, deaths, finished, spent, result, coalesce(error, ''), expired`

// scanJob hands scan the places for jobColumns.
func scanJob(scan func(into ...any) error) (j Job, expired bool, err error) {
	var requested, taken, start, end int64
	var finished *int64
	err = scan(&j.ID, &j.Organization, &j.Operation, &j.Status, &requested, &j.Work, &j.Payload, &j.CallbackURL, &j.Receiver, &j.Reserved,
		&taken, &start, &end, &j.Sees.Edition, &j.Lease, &j.Failures, &j.Deaths, &finished, &j.Spent, &j.Result, &j.Error, &expired)
	j.Sees.Taken, j.Sees.Start, j.Sees.End = moment(taken), moment(start), moment(end)
	j.Requested, j.Finished = moment(requested), optionalMoment(finished)
	return j, expired, err
}
