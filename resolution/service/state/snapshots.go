package state

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// SnapshotWindow is how long a keyword search and its pages see the same data.
const SnapshotWindow = 24 * time.Hour

// Snapshot is the data a keyword search sees.
type Snapshot struct {
	Taken      time.Time // to the millisecond
	Start, End time.Time // the days searched, both included: midnight UTC
	Edition    string    // see resolution.Searcher
}

// Snapshot returns what an organization's search with this fingerprint has
// seen since less than SnapshotWindow before proposed.Taken. Otherwise
// proposed is what it sees from now on. An unknown organization is ErrNotFound.
func (s *State) Snapshot(ctx context.Context, organization int64, fingerprint [32]byte, proposed Snapshot) (Snapshot, error) {
	var seen Snapshot
	var found bool
	args := []any{organization, fingerprint[:], millis(proposed.Taken.Add(-SnapshotWindow))}
	const query = "SELECT taken, day_start, day_end, edition FROM snapshots WHERE organization = ? AND fingerprint = ? AND taken > ?"
	var taken, start, end int64
	into := []any{&taken, &start, &end, &seen.Edition}

	// Most pages find one, and finding needs no place in the writer's queue.
	err := s.reads.QueryRowContext(ctx, query, args...).Scan(into...)
	if found = err == nil; !found {
		if !errors.Is(err, sql.ErrNoRows) {
			return Snapshot{}, unavailable(err)
		}
		err = s.write(ctx, func(t *tx) (err error) {
			if found, err = t.row(query, args, into...); found || err != nil {
				return err
			}
			return t.snapshot(organization, fingerprint, proposed)
		})
	}
	if err != nil {
		return Snapshot{}, err
	}
	if !found {
		return proposed, nil
	}
	seen.Taken, seen.Start, seen.End = moment(taken), moment(start), moment(end)
	return seen, nil
}

func (t *tx) snapshot(organization int64, fingerprint [32]byte, p Snapshot) error {
	if _, err := t.account(organization); err != nil {
		return err
	}
	return t.exec("INSERT OR REPLACE INTO snapshots(organization, fingerprint, taken, day_start, day_end, edition) VALUES (?, ?, ?, ?, ?, ?)",
		organization, fingerprint[:], millis(p.Taken), millis(p.Start), millis(p.End), p.Edition)
}
