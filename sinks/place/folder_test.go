package place

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/testkit/worldtest"
)

// TestFolderFile writes files as CPUs of both kinds do: with a checksum taken meanwhile,
// and with one that is left to Sum; on a disk, and on a simulated one.
func TestFolderFile(t *testing.T) {
	w := worldtest.New(1, nil)
	w.Begin(t.Context(), 0)
	for on, o := range map[string]Options{"disk": {}, "simulated disk": {Disk: worldtest.NewDisk(w).At}} {
		t.Run(on, func(t *testing.T) { testFolderFile(t, o) })
	}
}

func testFolderFile(t *testing.T, o Options) {
	defer func(was bool) { sumLater = was }(sumLater)
	for _, sumLater = range []bool{false, true} {
		for _, name := range []string{"part-00001.parquet", "k=v/part-00001.parquet"} {
			for _, size := range []int{0, 1, 3_000_000} {
				p, err := Open(t.Context(), t.TempDir(), o)
				if err != nil {
					t.Fatal(err)
				}
				want := strings.Repeat("p", size)
				hash := sha256.Sum256([]byte(want))
				sum := hex.EncodeToString(hash[:])

				dropped := begin(t, p, name, want)
				if err := dropped.Abort(); err != nil {
					t.Fatal(err)
				}
				if own, foreign, err := p.Files(); len(own)+len(foreign) > 0 || err != nil {
					t.Errorf("%s of %d bytes, dropped: there are %q and %q, %v", name, size, own, foreign, err)
				}

				u := begin(t, p, name, want)
				if err := u.Flush(); err != nil {
					t.Fatal(err)
				}
				committed, err := u.Commit()
				if err != nil {
					t.Fatal(err)
				}
				f := FileOf(committed, 0)
				if known := f.SHA256 != ""; known == sumLater {
					t.Errorf("%s of %d bytes: the checksum is %q, and Sum together is %v", name, size, f.SHA256, sumLater)
				}
				if f.SHA256 != "" && f.SHA256 != sum {
					t.Errorf("%s of %d bytes: checksum %s, want %s", name, size, f.SHA256, sum)
				}
				if err := p.Sum(t.Context(), []*File{&f}); err != nil || f.SHA256 != sum {
					t.Errorf("%s of %d bytes: Sum says %s, want %s, %v", name, size, f.SHA256, sum, err)
				}
				if got, err := p.Read(name); string(got) != want || err != nil {
					t.Errorf("%s of %d bytes: other content, %v", name, size, err)
				}
				if err := p.Check(f); err != nil {
					t.Error(err)
				}
				if err := u.Abort(); err != nil {
					t.Errorf("Abort after Commit: %v", err)
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestFolderSumOfChangedFile: a checksum is never that of other bytes than were written.
func TestFolderSumOfChangedFile(t *testing.T) {
	defer func(was bool) { sumLater = was }(sumLater)
	sumLater = true
	for name, change := range map[string]func(path string) error{
		"removed": os.Remove,
		"cut":     func(path string) error { return os.Truncate(path, 3) },
		"replaced": func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("other"), 0o644))
		},
	} {
		p, err := Open(t.Context(), t.TempDir(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		u := begin(t, p, "part-00000.parquet", "bytes")
		if err := u.Flush(); err != nil {
			t.Fatal(err)
		}
		committed, err := u.Commit()
		if err != nil {
			t.Fatal(err)
		}
		f := FileOf(committed, 0)
		if err := change(p.Path(f.Name)); err != nil {
			t.Fatal(err)
		}
		if err := p.Sum(t.Context(), []*File{&f}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: Sum says %v", name, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// begin starts a file with some content.
func begin(t *testing.T, p *Place, name, content string) Unfinished {
	t.Helper()
	u, err := p.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestFolderOfKilledProcess: a file that was committed survives a power cut, wherever the process before
// was killed that had made its folders.
func TestFolderOfKilledProcess(t *testing.T) {
	for seed := range uint64(10) {
		for last, done := 1, false; !done; last++ {
			w := worldtest.New(seed, nil)
			d := worldtest.NewDisk(w)
			o := Options{Disk: d.At}
			commit := func() error {
				p, err := Open(t.Context(), "/lake/leads", o)
				if err != nil {
					return err
				}
				u, err := p.Create("k=v/part-00000.parquet")
				if err != nil {
					return err
				}
				_, err = u.Write([]byte("rows"))
				if err = errors.Join(err, u.Flush()); err == nil {
					_, err = u.Commit()
				}
				return errors.Join(err, p.Close())
			}
			w.Begin(t.Context(), last)
			err := commit()
			done = err == nil
			if err != nil && !errors.Is(err, worldtest.ErrCrashed) {
				t.Fatal(err)
			}
			w.Begin(t.Context(), 0) // the machine goes on
			if err := commit(); err != nil {
				t.Fatal(err)
			}
			d.Restart(true)
			if text, err := d.ReadFile("lake/leads/k=v/part-00000.parquet"); err != nil || string(text) != "rows" {
				t.Fatalf("seed %d, killed at step %d: %q, %v", seed, last, text, err)
			}
		}
	}
}
