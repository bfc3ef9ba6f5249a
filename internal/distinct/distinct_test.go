package distinct

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// questionOf is the nth question, and its price is n.
func questionOf(n int) Key {
	return Key{sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n))), int32(n)}
}

// Every hash is passed on once, in memory and on disk, and both ways of reading may follow each other.
func TestSet(t *testing.T) {
	for _, c := range []struct {
		name       string
		questions  int
		duplicates int // of each question, at the most
	}{
		{"none", 0, 0},
		{"in memory", 5000, 3},
		{"on disk", 480_000, 1},
		{"a question of many", 3, 20_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := New(t.TempDir())
			random := rand.New(rand.NewPCG(1, 2))
			var all []Key
			want := map[Key]bool{}
			for q := range c.questions {
				k := questionOf(q)
				want[k] = true
				for range 1 + random.IntN(c.duplicates) {
					all = append(all, k)
				}
			}
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			for some := range slices.Chunk(all, 97) {
				if err := d.Add(some); err != nil {
					t.Fatal(err)
				}
			}
			var sorted [][32]byte
			for h, err := range d.Sorted(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				sorted = append(sorted, h)
			}
			if len(sorted) != len(want) || !slices.IsSortedFunc(sorted, func(a, b [32]byte) int { return bytes.Compare(a[:], b[:]) }) {
				t.Errorf("%d hashes in order, want %d", len(sorted), len(want))
			}
			for range d.Sorted(t.Context()) {
				break
			}
			var mu sync.Mutex
			got := map[Key]bool{}
			err := d.Each(t.Context(), 3, func(_ context.Context, some []Key) error {
				mu.Lock()
				defer mu.Unlock()
				if !slices.IsSortedFunc(some, func(a, b Key) int { return bytes.Compare(a.Hash[:], b.Hash[:]) }) {
					t.Error("hashes out of order")
				}
				for _, h := range some {
					if got[h] || !want[h] {
						t.Fatalf("%v is handed out, and should be %t; before: %t", h, want[h], got[h])
					}
					got[h] = true
				}
				return nil
			})
			if err != nil || len(got) != len(want) {
				t.Errorf("%d hashes, %v; want %d", len(got), err, len(want))
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A folder in which no file can be made is an error that says where and what to do.
func TestNoRoom(t *testing.T) {
	d := New(filepath.Join(t.TempDir(), "missing"))
	defer d.Close()
	var err error
	for q := 0; err == nil && q < 2000; q++ {
		err = d.Add([]Key{{Cost: int32(q)}})
	}
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "missing") || !strings.Contains(err.Error(), "--state") {
		t.Errorf("without a folder: %v", err)
	}
}

func TestStopsWhereItIsToldTo(t *testing.T) {
	d := New(t.TempDir())
	defer d.Close()
	for q := range 2000 {
		if err := d.Add([]Key{questionOf(q)}); err != nil {
			t.Fatal(err)
		}
	}
	stop := errors.New("stop")
	if err := d.Each(t.Context(), 2, func(context.Context, []Key) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Each(ctx, 2, func(context.Context, []Key) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
