package state

import "time"

// SnapshotWindow is how long a keyword search and its pages see the same data:
// an organization's jobs with one hash see what the first of them saw, until
// that was taken so long ago.
const SnapshotWindow = 24 * time.Hour

// Snapshot is the data a keyword search sees.
type Snapshot struct {
	Taken      time.Time // to the millisecond
	Start, End time.Time // the days searched, both included: midnight UTC
	Edition    string    // see resolution.Searcher
}

// seen is what an earlier job with the hash of a new one sees; found is false
// when there is none within the window.
func (t *tx) seen(j Job) (seen Snapshot, found bool, err error) {
	var taken, start, end int64
	found, err = t.Row("SELECT taken, day_start, day_end, edition FROM snapshots WHERE organization = ? AND fingerprint = ? AND taken > ?",
		[]any{j.Organization, j.Search[:], millis(j.Sees.Taken.Add(-SnapshotWindow))}, &taken, &start, &end, &seen.Edition)
	seen.Taken, seen.Start, seen.End = moment(taken), moment(start), moment(end)
	return seen, found, err
}

// see makes what a new job sees what later ones with its hash see.
func (t *tx) see(j Job) error {
	return t.Exec("INSERT OR REPLACE INTO snapshots(organization, fingerprint, taken, day_start, day_end, edition) VALUES (?, ?, ?, ?, ?, ?)",
		j.Organization, j.Search[:], millis(j.Sees.Taken), millis(j.Sees.Start), millis(j.Sees.End), j.Sees.Edition)
}
