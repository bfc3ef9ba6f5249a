package state

import (
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
)

// Status is the progress of a keyword job.
type Status string

// The states of a job, with the names of the interface. A job is queued, then
// processing. It may be queued again after a restart. It finishes once, in one
// of three ways.
const (
	Queued     Status = "queued"
	Processing Status = "processing"
	Completed  Status = "completed"
	Failed     Status = "failed"
	Cancelled  Status = "cancelled"
)

// Finished reports whether a status is final.
func (s Status) Finished() bool { return s == Completed || s == Failed || s == Cancelled }

// Job is one keyword search, unfinished or with its result.
type Job struct {
	ID           uuid.UUID
	Organization int64
	Key          int64 // API key that created it, 0 for none
	Operation    resolution.Operation
	Status       Status
	Requested    time.Time // to the millisecond, UTC
	Work         []byte    // the task, in the encoding of its worker
	Payload      []byte    // the request, as it is echoed
	CallbackURL  string
	Receiver     string // host:port of the callback
	Reserved     int64  // credits set aside until it is finished

	// Search is the hash of the fields that choose leads; only CreateJob reads
	// it. Sees is the data that the job searches. CreateJob uses the given one
	// only for the first job with this hash within SnapshotWindow.
	Search [32]byte
	Sees   Snapshot

	// Lease is the number of the job's last lease. With it a worker proves that
	// the job is still its own. It does not count failures; the next two do.
	Lease    int
	Failures int // attempts that failed and were postponed
	Deaths   int // attempts that ended without a result, usually because their process died

	Finished time.Time // zero until finished
	Spent    int64     // credits, at most Reserved
	Result   []byte
	Error    string // code of the failure; nothing of the request
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

// Searches are the keyword searches in one state that are not removed yet.
type Searches struct {
	Status  Status
	Count   int64
	Credits int64 // spent, or reserved by the unfinished
}

// SnapshotWindow is how long a keyword search and its pages see the same data.
// Within this time, all jobs of an organization with the same hash see what the
// first of them saw.
const SnapshotWindow = 24 * time.Hour

// Snapshot is the data a keyword search sees.
type Snapshot struct {
	Taken      time.Time // to the millisecond
	Start, End time.Time // the days searched, both included: midnight UTC
	Edition    string    // see resolution.Searcher
}
