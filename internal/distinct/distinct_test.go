package distinct

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// questionOf is the nth question, and its price is n.
func questionOf(n int) Key {
	return Key{sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n))), int32(n)}
}

// However much goes to disk and in however many shares it is read, every hash is
// passed on once.
func TestSet(t *testing.T) {
	for _, c := range []struct {
		name         string
		held, sorted int
		questions    int
		duplicates   int // of each question, at the most
		spilled      bool
	}{
		{"none", 10, 10, 0, 0, false},
		{"in memory", 1 << 20, 1 << 20, 5000, 3, false},
		{"just as many as are held", 5000, 1 << 20, 5000, 1, true},
		{"on disk", 500, 1 << 20, 5000, 3, true},
		{"in shares", 500, 10, 5000, 3, true},
		{"in shares, from memory", 1 << 20, 10, 5000, 3, false},
		{"a question of many", 500, 10, 3, 20_000, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			d := New(dir)
			d.held, d.sorted = c.held, c.sorted
			random := rand.New(rand.NewPCG(1, 2))
			var all []Key
			want := map[Key]bool{}
			for q := range c.questions {
				want[questionOf(q)] = true
				for range 1 + random.IntN(c.duplicates) {
					all = append(all, questionOf(q))
				}
			}
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			for some := range slices.Chunk(all, 97) {
				if err := d.Add(some); err != nil {
					t.Fatal(err)
				}
			}
			if (d.file != nil) != c.spilled {
				t.Errorf("spilled is %t, want %t", d.file != nil, c.spilled)
			}
			requireEmpty(t, dir)
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

func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s is left in the folder", e.Name())
	}
}

// What a Set holds in memory does not grow with what is added.
func TestIsBounded(t *testing.T) {
	const held, sorted = 1 << 12, 1 << 10
	heap := func(questions int) uint64 {
		d := New(t.TempDir())
		defer d.Close()
		d.held, d.sorted = held, sorted
		for q := range questions {
			if err := d.Add([]Key{questionOf(q)}); err != nil {
				t.Fatal(err)
			}
		}
		most := uint64(0)
		err := d.Each(t.Context(), 1, func(context.Context, []Key) error {
			if most > 0 {
				return nil
			}
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = m.HeapAlloc
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return most
	}
	few, many := heap(held*2), heap(held*32)
	if many > few+1<<20 {
		t.Errorf("the heap grows from %d to %d bytes", few, many)
	}
}

func TestOnFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	d := New("the folder")
	d.held, d.file = 1, full
	defer d.Close()
	if err := d.Add([]Key{{}}); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "the folder") || !strings.Contains(err.Error(), "--state") {
		t.Errorf("on a full disk: %v", err)
	}
}

func TestStopsWhereItIsToldTo(t *testing.T) {
	d := New(t.TempDir())
	defer d.Close()
	d.held = 10
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
