package worldtest

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"

	"github.com/leadetl/leadetl/internal/appendlog"
)

// TestPowerCut: what was synced survives each power cut, what was not survives some, and a log
// never has half a record.
func TestPowerCut(t *testing.T) {
	kept := map[string]int{} // how often
	record := bytes.Repeat([]byte("x"), 3*blockSize)
	for seed := range uint64(200) {
		w := New(seed, nil)
		d := NewDisk(w)
		w.Begin(t.Context(), 8) // create, write, sync, sync folder, write, sync, write; the crash comes with the last sync
		l, err := appendlog.Create(d, "log", appendlog.First)
		if err != nil {
			t.Fatal(err)
		}
		if err = errors.Join(d.Sync(), l.Append([]byte("synced"))); err != nil {
			t.Fatal(err)
		}
		if err := l.Append(record); !errors.Is(err, ErrCrashed) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if _, err := d.Create("other", 0o600); !errors.Is(err, ErrCrashed) {
			t.Fatalf("seed %d: after the crash %v", seed, err)
		}
		d.Restart(true)
		w.Begin(t.Context(), 0)
		var records []string
		_, err = appendlog.Read(d, "log", appendlog.First, true, func(r []byte) error { records = append(records, string(r)); return nil })
		if err != nil || len(records) == 0 || records[0] != "synced" || len(records) > 1 && records[1] != string(record) {
			t.Fatalf("seed %d: %d records, %v", seed, len(records), err)
		}
		if len(records) == 2 {
			kept["an unsynced record"]++
		}
		if _, err := d.Create("unsynced", 0o600); err != nil {
			t.Fatal(err)
		}
		d.Restart(true)
		if _, err := d.ReadFile("unsynced"); err == nil {
			kept["a name"]++
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if n := kept["a name"]; n < 70 || n > 130 || kept["an unsynced record"] == 0 || kept["an unsynced record"] > 50 {
		t.Errorf("of 200 power cuts %v", kept)
	}
}
