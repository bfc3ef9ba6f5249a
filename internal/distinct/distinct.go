// Package distinct counts distinct keys by an external sort: exactly, and in
// memory that does not grow with their number.
//
// Keys that do not fit into memory go to a file, in buckets by the first byte of
// the hash. Each bucket is sorted on its own. The hashes must be uniform, such
// as those of SHA-256, so that the buckets have about the same size.
package distinct

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"slices"
	"sync"
	"unsafe"

	"github.com/sourcegraph/conc/pool"
)

const (
	// maxHeld is how many keys are held in memory: 36 MiB.
	maxHeld = 1 << 20
	// maxSorted is how many keys are sorted at a time: 9 MiB a worker, or twice
	// that while they are read.
	maxSorted = 1 << 18
)

// Set is a set of keys that is first filled and then read.
type Set struct {
	dir          string // of the file
	held, sorted int    // maxHeld and maxSorted, less in tests

	mu      sync.Mutex
	holds   int
	buckets [256]bucket
	file    *os.File // nil as long as memory is enough
	size    int64    // of file
}

type bucket struct {
	held  []Key
	spans []span
}

// span is a run of keys in the file.
type span struct {
	at int64 // byte
	n  int   // keys
}

// Key is the hash of a key, with a number that belongs to it. Of several keys
// with one hash, any one is kept.
type Key struct {
	Hash [32]byte
	Cost int32
}

const keyBytes = int(unsafe.Sizeof(Key{})) // 36

// New makes an empty set whose file, if it needs one, is in dir.
func New(dir string) *Set {
	return &Set{dir: dir, held: maxHeld, sorted: maxSorted}
}

// Add adds keys. It is safe from many goroutines.
func (d *Set) Add(keys []Key) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range keys {
		b := &d.buckets[k.Hash[0]]
		b.held = append(b.held, k)
	}
	if d.holds += len(keys); d.holds < d.held {
		return nil
	}
	if err := d.spill(); err != nil {
		return fmt.Errorf("keep the hashes of keys in %s: %w; many rows need 36 bytes each there: make room, or name another folder (--state, or TMPDIR if the state is on S3)", d.dir, err)
	}
	return nil
}

// spill moves the keys in memory to the file. The file has no name, so nothing
// is left however the process ends.
func (d *Set) spill() (err error) {
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
		d.size += int64(len(b.held) * keyBytes)
		b.held = b.held[:0]
	}
	d.holds = 0
	return nil
}

func bytesOf(k []Key) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(k))), len(k)*keyBytes)
}

// Each passes every distinct key once to do. Several workers call do, with some
// keys at a time, in ascending order within each call. No key may be added after
// Each.
func (d *Set) Each(ctx context.Context, workers int, do func(ctx context.Context, some []Key) error) error {
	p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError().WithMaxGoroutines(workers)
	for i := range d.buckets {
		p.Go(func(ctx context.Context) error { return d.eachOf(ctx, &d.buckets[i], do) })
	}
	return p.Wait()
}

// Sorted yields the hashes of all distinct keys in ascending order. No key may be
// added after Sorted.
func (d *Set) Sorted(ctx context.Context) iter.Seq2[[32]byte, error] {
	return func(yield func([32]byte, error) bool) {
		errEnough := errors.New("enough")
		for i := range d.buckets {
			err := d.eachOf(ctx, &d.buckets[i], func(_ context.Context, some []Key) error {
				for _, k := range some {
					if !yield(k.Hash, nil) {
						return errEnough
					}
				}
				return nil
			})
			if err == errEnough {
				return
			}
			if err != nil {
				yield([32]byte{}, err)
				return
			}
		}
	}
}

// eachOf passes on a bucket. If it is too large to sort at once, it is split
// into shares of about the same size, and the bucket is read once for each
// share.
func (d *Set) eachOf(ctx context.Context, b *bucket, do func(context.Context, []Key) error) error {
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

// load reads one share of a bucket, sorts it and removes duplicates. It gives up
// when more than limit keys are left.
func (d *Set) load(ctx context.Context, b *bucket, share, shares uint32, limit int) (some []Key, fits bool, err error) {
	room := 2 * d.sorted
	var read []Key
	for i := range len(b.spans) + 1 {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		if read, err = d.read(b, i, read); err != nil {
			return nil, false, err
		}
		for _, k := range read {
			if shareOf(k.Hash, shares) == share {
				some = append(some, k)
			}
		}
		if len(some) >= room {
			if some = sortedOnce(some); len(some) > limit {
				return nil, false, nil
			}
			room = max(room, 2*len(some))
		}
	}
	some = sortedOnce(some)
	return some, len(some) <= limit, nil
}

// read reads a bucket's span i, or, after the last span, its keys in memory. It
// may reuse the memory of into.
func (d *Set) read(b *bucket, i int, into []Key) ([]Key, error) {
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

// shareOf is the share a hash belongs to. The first byte, which chose the
// bucket, is left out.
func shareOf(h [32]byte, shares uint32) uint32 {
	return uint32(uint64(binary.BigEndian.Uint32(h[1:])) * uint64(shares) >> 32)
}

// sortedOnce sorts keys by their hashes and removes duplicates, in place.
func sortedOnce(keys []Key) []Key {
	slices.SortFunc(keys, func(a, b Key) int {
		if c := cmp.Compare(binary.BigEndian.Uint64(a.Hash[:]), binary.BigEndian.Uint64(b.Hash[:])); c != 0 {
			return c
		}
		return bytes.Compare(a.Hash[8:], b.Hash[8:])
	})
	return slices.CompactFunc(keys, func(a, b Key) bool { return a.Hash == b.Hash })
}

// Close removes the file, if there is one.
func (d *Set) Close() error {
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}
