package sqlite

import "github.com/leadetl/leadetl/resolution/service/state"

// seen is what an earlier job with the hash of a new one sees; found is false
// when there is none within the window.
func (t *tx) seen(j state.Job) (seen state.Snapshot, found bool, err error) {
	var taken, start, end int64
	found, err = t.Row("SELECT taken, day_start, day_end, edition FROM snapshots WHERE organization = ? AND fingerprint = ? AND taken > ?",
		[]any{j.Organization, j.Search[:], millis(j.Sees.Taken.Add(-state.SnapshotWindow))}, &taken, &start, &end, &seen.Edition)
	seen.Taken, seen.Start, seen.End = moment(taken), moment(start), moment(end)
	return seen, found, err
}

// see makes what a new job sees what later ones with its hash see.
func (t *tx) see(j state.Job) error {
	return t.Exec("INSERT OR REPLACE INTO snapshots(organization, fingerprint, taken, day_start, day_end, edition) VALUES (?, ?, ?, ?, ?, ?)",
		j.Organization, j.Search[:], millis(j.Sees.Taken), millis(j.Sees.Start), millis(j.Sees.End), j.Sees.Edition)
}
