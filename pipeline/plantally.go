package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"unsafe"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/pipeline/answers"
)

const (
	// heldKeys is how many are held in memory: 36 MiB.
	heldKeys = 1 << 20
	// sortedKeys is how many are sorted at a time: 9 MiB a worker, or twice
	// that while they are read.
	sortedKeys = 1 << 18
)

// tally tells questions from their twins by their hashes: exactly, and in
// memory that does not grow with their number. What is too much for memory
// goes to a file, in buckets by first byte, and each bucket is sorted alone.
// The hashes are of SHA-256, so the buckets are of about one size but for
// twins.
type tally struct {
	dir          string // of the file
	held, sorted int    // heldKeys and sortedKeys

	mu      sync.Mutex
	holds   int
	buckets [256]bucket
	file    *os.File // nil as long as memory is enough
	size    int64    // of file
}

type bucket struct {
	held  []plannedKey
	spans []span
}

// span is a run of keys in the file.
type span struct {
	at int64 // byte
	n  int   // keys
}

// plannedKey is a question, and the most that its answer can cost.
type plannedKey struct {
	hash  answers.Hash
	price int32
}

const plannedKeyBytes = int(unsafe.Sizeof(plannedKey{})) // 36

func newTally(dir string) *tally {
	return &tally{dir: dir, held: heldKeys, sorted: sortedKeys}
}

// add takes keys, as they come. It is safe from many goroutines.
func (d *tally) add(keys []plannedKey) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range keys {
		b := &d.buckets[k.hash[0]]
		b.held = append(b.held, k)
	}
	if d.holds += len(keys); d.holds < d.held {
		return nil
	}
	if err := d.spill(); err != nil {
		return fmt.Errorf("keep the hashes of keys in %s: %w; a plan of many rows needs 36 bytes a row there: make room, or name another folder with --state", d.dir, err)
	}
	return nil
}

// spill moves what is held to the file. The file has no name, so that whatever
// ends the process, nothing of it stays.
func (d *tally) spill() (err error) {
	if d.file == nil {
		if d.file, err = os.CreateTemp(d.dir, ".plan-"); err != nil {
			return err
		}
		if err := os.Remove(d.file.Name()); err != nil {
			return err
		}
	}
	for i := range d.buckets {
		b := &d.buckets[i]
		if len(b.held) == 0 {
			continue
		}
		if _, err := d.file.WriteAt(bytesOf(b.held), d.size); err != nil {
			return err
		}
		b.spans = append(b.spans, span{d.size, len(b.held)})
		d.size += int64(len(b.held) * plannedKeyBytes)
		b.held = b.held[:0]
	}
	d.holds = 0
	return nil
}

func bytesOf(k []plannedKey) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(k))), len(k)*plannedKeyBytes)
}

// each hands out all keys once, some at a time and in order within these, to
// several workers. No key may be added any more.
func (d *tally) each(ctx context.Context, workers int, do func(ctx context.Context, some []plannedKey) error) error {
	p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError().WithMaxGoroutines(workers)
	for i := range d.buckets {
		p.Go(func(ctx context.Context) error { return d.eachOf(ctx, &d.buckets[i], do) })
	}
	return p.Wait()
}

// eachOf hands out a bucket: as a whole, or where that is too much to sort at
// a time, in shares of about one size, reading the bucket once for each.
func (d *tally) eachOf(ctx context.Context, b *bucket, do func(context.Context, []plannedKey) error) error {
	shares := uint32(1)
	some, fits, err := d.load(ctx, b, 0, shares, d.sorted)
	for ; err == nil && !fits; some, fits, err = d.load(ctx, b, 0, shares, d.sorted) {
		shares *= 2
	}
	if err != nil || len(some) == 0 {
		return err
	}
	if err := do(ctx, some); err != nil {
		return err
	}
	for share := uint32(1); share < shares; share++ {
		if some, _, err = d.load(ctx, b, share, shares, math.MaxInt); err != nil {
			return err
		}
		if err := do(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// load reads one share of a bucket, sorts it and leaves twins out. It gives up
// when there are more than most.
func (d *tally) load(ctx context.Context, b *bucket, share, shares uint32, most int) (some []plannedKey, fits bool, err error) {
	room := 2 * d.sorted
	var read []plannedKey
	for i := range len(b.spans) + 1 {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		if read, err = d.read(b, i, read); err != nil {
			return nil, false, err
		}
		for _, k := range read {
			if shareOf(k.hash, shares) == share {
				some = append(some, k)
			}
		}
		if len(some) >= room {
			if some = sortedOnce(some); len(some) > most {
				return nil, false, nil
			}
			room = max(room, 2*len(some))
		}
	}
	some = sortedOnce(some)
	return some, len(some) <= most, nil
}

// read reads a bucket's span i, or after the last one what is held of it. The
// memory of into may be used.
func (d *tally) read(b *bucket, i int, into []plannedKey) ([]plannedKey, error) {
	if i == len(b.spans) {
		return b.held, nil
	}
	s := b.spans[i]
	into = slices.Grow(into[:0], s.n)[:s.n]
	if _, err := d.file.ReadAt(bytesOf(into), s.at); err != nil {
		return nil, fmt.Errorf("read the hashes of keys back: %w", err)
	}
	return into, nil
}

// shareOf says in which of some shares a hash is. Its first byte, which says
// in which bucket, has no part in it.
func shareOf(h answers.Hash, shares uint32) uint32 {
	return uint32(uint64(binary.BigEndian.Uint32(h[1:])) * uint64(shares) >> 32)
}

// sortedOnce sorts keys by their hashes and leaves twins out, in their own
// memory.
func sortedOnce(keys []plannedKey) []plannedKey {
	slices.SortFunc(keys, func(a, b plannedKey) int {
		if c := cmp.Compare(binary.BigEndian.Uint64(a.hash[:]), binary.BigEndian.Uint64(b.hash[:])); c != 0 {
			return c
		}
		return bytes.Compare(a.hash[8:], b.hash[8:])
	})
	return slices.CompactFunc(keys, func(a, b plannedKey) bool { return a.hash == b.hash })
}

// close gives everything back.
func (d *tally) close() error {
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}
