package worldtest

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/leadetl/leadetl/internal/disk"
)

// TestPowerCutOfFolders: a folder that was made survives each power cut, and so does what was synced in
// it; what was not survives some. A folder that was removed takes with it what was in it.
func TestPowerCutOfFolders(t *testing.T) {
	kept := map[string]int{}
	for seed := range uint64(200) {
		w := New(seed, nil)
		d := NewDisk(w)
		in := d.At("/a/b")
		w.Begin(t.Context(), 0)
		create := func(name string, sync bool) {
			t.Helper()
			_, err := in.Create(name, 0o600)
			if sync {
				err = errors.Join(err, in.Sync())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		again := func() {
			t.Helper()
			if _, err := in.Make(0o700); err != nil {
				t.Fatal(err)
			}
		}
		again()
		create("before", true)
		if err := in.RemoveAll(); err != nil {
			t.Fatal(err)
		}
		again()
		create("synced", true)
		create("unsynced", false)
		lock, err := in.Lock()
		if err != nil {
			t.Fatal(err)
		}
		d.Restart(true)
		w.Begin(t.Context(), 0)
		names, err := disk.Names(in)
		if err != nil || len(names) == 0 || names[0] != "synced" {
			t.Fatalf("seed %d: there are %q, %v", seed, names, err)
		}
		if len(names) == 2 && names[1] == "unsynced" {
			kept["file"]++
		}
		another, err := in.Lock()
		if err != nil {
			t.Fatalf("seed %d: the lock of a life that is over is held: %v", seed, err)
		}
		if err := errors.Join(lock.Release(), second(in.Lock())); err == nil {
			t.Fatal("the lock of one life was released in the next")
		}
		if err := errors.Join(another.Release(), in.RemoveAll()); err != nil {
			t.Fatal(err)
		}
		d.Restart(true)
		switch _, err := in.Stat("."); {
		case err == nil:
			kept["removed folder"]++
		case !errors.Is(err, fs.ErrNotExist):
			t.Fatal(err)
		}
	}
	for _, what := range []string{"file", "removed folder"} {
		if n := kept[what]; n < 70 || n > 130 {
			t.Errorf("of 200 power cuts %d kept a %s", n, what)
		}
	}
}

func second[T any](_ T, err error) error { return err }
