package pipeline

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
func questionOf(n int) plannedKey {
	return plannedKey{sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n))), int32(n)}
}

// However much of it goes to the disk and in however many shares it is read,
// a tally hands every hash out once.
func TestTally(t *testing.T) {
	for _, c := range []struct {
		name         string
		held, sorted int
		questions    int
		twins        int // of each question, at the most
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
			d := newTally(dir)
			d.held, d.sorted = c.held, c.sorted
			random := rand.New(rand.NewPCG(1, 2))
			var all []plannedKey
			want := map[plannedKey]bool{}
			for q := range c.questions {
				want[questionOf(q)] = true
				for range 1 + random.IntN(c.twins) {
					all = append(all, questionOf(q))
				}
			}
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			for some := range slices.Chunk(all, 97) {
				if err := d.add(some); err != nil {
					t.Fatal(err)
				}
			}
			if (d.file != nil) != c.spilled {
				t.Errorf("spilled is %t, want %t", d.file != nil, c.spilled)
			}
			requireEmpty(t, dir)
			var mu sync.Mutex
			got := map[plannedKey]bool{}
			err := d.each(t.Context(), 3, func(_ context.Context, some []plannedKey) error {
				mu.Lock()
				defer mu.Unlock()
				if !slices.IsSortedFunc(some, func(a, b plannedKey) int { return bytes.Compare(a.hash[:], b.hash[:]) }) {
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
			if err := d.close(); err != nil {
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

// What a tally holds in memory does not grow with what it takes.
func TestTallyIsBounded(t *testing.T) {
	const held, sorted = 1 << 12, 1 << 10
	heap := func(questions int) uint64 {
		d := newTally(t.TempDir())
		defer d.close()
		d.held, d.sorted = held, sorted
		for q := range questions {
			if err := d.add([]plannedKey{questionOf(q)}); err != nil {
				t.Fatal(err)
			}
		}
		most := uint64(0)
		err := d.each(t.Context(), 1, func(context.Context, []plannedKey) error {
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

func TestTallyOnFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	d := newTally("the folder")
	d.held, d.file = 1, full
	defer d.close()
	if err := d.add([]plannedKey{{}}); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "the folder") || !strings.Contains(err.Error(), "--state") {
		t.Errorf("on a full disk: %v", err)
	}
}

func TestTallyStopsWhereItIsToldTo(t *testing.T) {
	d := newTally(t.TempDir())
	defer d.close()
	d.held = 10
	for q := range 2000 {
		if err := d.add([]plannedKey{questionOf(q)}); err != nil {
			t.Fatal(err)
		}
	}
	stop := errors.New("stop")
	if err := d.each(t.Context(), 2, func(context.Context, []plannedKey) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.each(ctx, 2, func(context.Context, []plannedKey) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
