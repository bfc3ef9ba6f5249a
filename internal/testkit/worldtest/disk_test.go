package worldtest

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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

// TestFullDisk: on a full disk no file grows, what is there is written over, and after some time
// there is room again.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(1, nil)
		d := NewDisk(w)
		d.FullFrom, d.FullFor = 2, time.Minute
		w.Begin(t.Context(), 0)
		f, err := d.Create("a", 0o600)
		if err != nil {
			t.Fatal(err)
		}
		write := func(at int64, fits int, full bool) {
			t.Helper()
			n, err := f.WriteAt([]byte("12345678"), at)
			if n != fits || errors.Is(err, syscall.ENOSPC) != (fits < 8) {
				t.Errorf("%d bytes at %d: %v, want %d", n, at, err, fits)
			}
			if now, _ := d.Full(); now != full {
				t.Errorf("full is %t", now)
			}
		}
		write(0, 8, false)
		write(8, 0, true)
		write(4, 4, true)
		write(0, 8, true)
		time.Sleep(time.Minute)
		write(8, 8, false)
		if _, refused := d.Full(); refused != 2 || w.Faults() != 0 {
			t.Errorf("%d writes had no room, %d faults", refused, w.Faults())
		}
		d.Restart(false)
		if text, err := d.ReadFile("a"); err != nil || string(text) != "1234567812345678" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// TestDamage: each kind of damage comes, and changes what its words say and nothing else.
func TestDamage(t *testing.T) {
	old, text := bytes.Repeat([]byte("o"), 20*blockSize), bytes.Repeat([]byte("t"), 20*blockSize)
	came := map[string]int{}
	for seed := range uint64(300) {
		w := New(seed, nil)
		d := NewDisk(w)
		w.Begin(t.Context(), 0)
		for _, written := range [][]byte{old, text} {
			f, err := d.Create("a", 0o600)
			if err == nil {
				_, err = f.WriteAt(written, 0)
			}
			if err = errors.Join(err, f.Sync(), d.Sync()); err != nil {
				t.Fatal(err)
			}
		}
		back := d.Keep()
		did := d.Damage("a", "c")
		d.Restart(true)
		got, err := d.ReadFile("a")
		differ := 0
		for i := range got {
			if got[i] != text[i] {
				differ++
			}
		}
		kind, _, _ := strings.Cut(did, " ")
		came[kind]++
		right := map[string]bool{
			"gone": errors.Is(err, fs.ErrNotExist), "cut": len(got) < len(text)+1 && differ == 0,
			"zeroed":  len(got) == len(text) && differ%blockSize == 0,
			"old":     len(got) == len(text) && differ%blockSize == 0 && bytes.Count(got, []byte("o")) == differ,
			"flipped": len(got) == len(text) && differ <= 1,
			"doubled": differ == 0 && d.Files()["c"] == string(text),
		}
		if !right[kind] {
			t.Errorf("seed %d: %q, %d bytes of which %d differ, %v", seed, did, len(got), differ, err)
		}
		if d.Damage("b", "c") != "" {
			t.Error("a file that is not there is damaged")
		}
		back()
		if d.Restart(true); !maps.Equal(d.Files(), map[string]string{"a": string(text)}) {
			t.Errorf("seed %d: %q, and %d files come back", seed, did, len(d.Files()))
		}
	}
	if len(came) != 6 {
		t.Errorf("of 300 %v", came)
	}
}
