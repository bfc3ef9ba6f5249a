package state

import "time"

// ReplyLife is how long a stored reply answers an Idempotency-Key, if it is kept.
const ReplyLife = 24 * time.Hour

// Retention is how long things are kept.
type Retention struct {
	Results         time.Duration // a finished job's request and result
	Tombstones      time.Duration // the record that the job existed, after its result is removed
	Replies         time.Duration // answers that an Idempotency-Key replays
	Snapshots       time.Duration // the data a search sees
	DeliveredBodies time.Duration // the body of a delivered callback, from delivery
	Delivered       time.Duration // the record of a delivery, from delivery
	Dead            time.Duration // a dead delivery, from its last attempt
}

// DefaultRetention returns the retention that the interface promises.
func DefaultRetention() Retention {
	const day = 24 * time.Hour
	return Retention{
		Results:         30 * day,
		Tombstones:      30 * day,
		Replies:         ReplyLife,
		Snapshots:       SnapshotWindow,
		DeliveredBodies: 3 * day,
		Delivered:       30 * day,
		Dead:            30 * day,
	}
}

// KeyWindow is how long an Idempotency-Key is remembered.
func (r Retention) KeyWindow() time.Duration { return min(r.Replies, ReplyLife) }

// Purged counts what a purge removed.
type Purged struct {
	Results, Tombstones, Replies, Snapshots int
	DeliveredBodies, Delivered, Dead        int
	Deleted                                 int // jobs and callbacks of deleted organizations
}

// Stats counts what waits in a store at one moment.
type Stats struct {
	Queued, Processing int       // unfinished jobs
	OldestJob          time.Time // when the first unfinished job was requested; zero without one
	Pending, Dead      int       // deliveries
	OldestDue          time.Time // when the first pending delivery is due; zero without one
	Bytes, FreeBytes   int64     // of the store on disk, and of them free for later rows
}
