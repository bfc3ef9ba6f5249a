package state

import (
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
)

// Status is how far a keyword job has come.
type Status string

// The states of a job, in the words of the interface. A job is queued, then
// processing, perhaps queued again after a restart, and then finished in one of
// three ways, once.
const (
	Queued     Status = "queued"
	Processing Status = "processing"
	Completed  Status = "completed"
	Failed     Status = "failed"
	Cancelled  Status = "cancelled"
)

// Finished reports whether no other state follows.
func (s Status) Finished() bool { return s == Completed || s == Failed || s == Cancelled }

// Job is one keyword search, unfinished or with its result.
type Job struct {
	ID           uuid.UUID
	Organization int64
	Key          int64 // with which it was created, 0 without one
	Operation    resolution.Operation
	Status       Status
	Requested    time.Time // to the millisecond, UTC
	Work         []byte    // the task, in the encoding of its worker
	Payload      []byte    // the request, as it is echoed
	CallbackURL  string
	Receiver     string // host:port of the callback
	Reserved     int64  // credits set aside until it is finished

	// Search is the hash of the fields that choose leads; only CreateJob reads
	// it. Sees is the data the job sees. CreateJob uses the one it is given only
	// for the first job with this hash within SnapshotWindow.
	Search [32]byte
	Sees   Snapshot

	// Lease is the number of the job's last lease. With it a worker proves that
	// the job is still its own. It does not count failures; the next two do.
	Lease    int
	Failures int // attempts that failed and were postponed
	Deaths   int // attempts that ended without a result, as a rule with their process

	Finished time.Time // zero until it is
	Spent    int64     // credits, at most Reserved
	Result   []byte
	Error    string // why it failed: a code, nothing of the request
}

// Finish is how an attempt at a job ended.
type Finish struct {
	ID       uuid.UUID
	Lease    int    // Job.Lease as leased
	Status   Status // Completed or Failed
	Result   []byte
	Error    string
	Spent    int64 // credits, at most what the job reserved; the rest is given back
	Callback *Callback
	At       time.Time
}

// SnapshotWindow is how long a keyword search and its pages see the same data:
// an organization's jobs with one hash see what the first of them saw, for this
// long.
const SnapshotWindow = 24 * time.Hour

// Snapshot is the data a keyword search sees.
type Snapshot struct {
	Taken      time.Time // to the millisecond
	Start, End time.Time // the days searched, both included: midnight UTC
	Edition    string    // see resolution.Searcher
}
