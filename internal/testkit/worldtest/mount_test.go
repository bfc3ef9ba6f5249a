package worldtest

import (
	"database/sql"
	"path/filepath"
	"testing"
)

// TestMountedPowerCut: of a database on a disk, all that was committed survives each power cut
// if commits are synced, and else it does not.
func TestMountedPowerCut(t *testing.T) {
	for synchronous, wantLost := range map[string]bool{"FULL": false, "OFF": true} {
		t.Run(synchronous, func(t *testing.T) {
			lost, crashed := 0, 0
			for seed := range uint64(60) {
				dir := t.TempDir()
				w := New(seed, nil)
				d := NewDisk(w)
				free, err := d.Mount(dir)
				must(t, err)
				defer free()
				w.Begin(t.Context(), 0)
				path := filepath.Join(dir, "numbers.sqlite")
				insert(t, path, "FULL", 1)
				must(t, d.Remount(dir, false))
				w.Begin(t.Context(), 1+w.Below(150, "last"))
				committed := insert(t, path, synchronous, 30)
				if w.Alive() != nil {
					crashed++
				}
				must(t, d.Remount(dir, true))
				w.Begin(t.Context(), 0)
				if n := count(path); n < 1+committed {
					lost++
				} else if n > 2+committed {
					t.Errorf("seed %d: %d rows, of which %d were committed", seed, n, 1+committed)
				}
			}
			if crashed < 20 || lost > 0 != wantLost {
				t.Errorf("%d of %d crashes lost what was committed", lost, crashed)
			}
		})
	}
}

// insert commits some rows one by one, until one fails, and returns how many it committed.
func insert(t *testing.T, path, synchronous string, rows int) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(20)&_pragma=synchronous("+synchronous+")")
	must(t, err)
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE IF NOT EXISTS numbers(n INTEGER PRIMARY KEY, text TEXT)"); err != nil {
		return 0
	}
	for n < rows {
		if _, err := db.Exec("INSERT INTO numbers(text) VALUES (hex(zeroblob(1500)))"); err != nil {
			return n
		}
		n++
	}
	return n
}

// count returns how many rows there are, 0 in a database that cannot be read.
func count(path string) (n int) {
	db, err := sql.Open("sqlite", "file:"+path)
	if err == nil {
		defer db.Close()
		_ = db.QueryRow("SELECT count(*) FROM numbers").Scan(&n)
	}
	return n
}
