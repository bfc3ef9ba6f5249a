// Package distinct counts distinct keys exactly, in memory that does not grow with their number.
package distinct

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/leadetl/leadetl/internal/spill"
)

// Set is a set of keys that is first filled and then read.
type Set struct {
	dir  string // of the file of the sorter, if it needs one
	mu   sync.Mutex
	keys *spill.Sorter[Key]
}

// Key is the hash of a key, with a number that belongs to it. Of several keys
// with one hash, any one is kept.
type Key struct {
	Hash [32]byte
	Cost int32
}

// New makes an empty set whose file, if it needs one, is in dir.
func New(dir string) *Set {
	keys := spill.New(dir, func(k Key) spill.Prefix {
		return spill.Prefix{High: binary.BigEndian.Uint64(k.Hash[:]), Low: binary.BigEndian.Uint64(k.Hash[8:])}
	})
	keys.Compact = sortedOnce
	return &Set{dir: dir, keys: keys}
}

// Add adds keys. It is safe from many goroutines.
func (d *Set) Add(keys []Key) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range keys {
		if err := d.keys.Add(k); err != nil {
			return fmt.Errorf("keep the hashes of keys in %s: %w; many rows need 36 bytes each there: make room, or name another folder (--state, or TMPDIR if the state is on S3)", d.dir, err)
		}
	}
	return nil
}

// Each passes every distinct key once to do. Several workers call do, with some
// keys at a time, in ascending order within each call. No key may be added after
// Each.
func (d *Set) Each(ctx context.Context, workers int, do func(ctx context.Context, some []Key) error) error {
	d.keys.Workers = workers
	return d.keys.Each(ctx, func(some, _ []Key) ([]Key, error) {
		some = sortedOnce(some)
		return some, do(ctx, some)
	}, func([]Key) error { return nil })
}

// Sorted yields the hashes of all distinct keys in ascending order. No key may be
// added after Sorted.
func (d *Set) Sorted(ctx context.Context) iter.Seq2[[32]byte, error] {
	return func(yield func([32]byte, error) bool) {
		errEnough := errors.New("enough")
		err := d.keys.Each(ctx, func(some, _ []Key) ([]Key, error) { return sortedOnce(some), nil }, func(some []Key) error {
			for _, k := range some {
				if !yield(k.Hash, nil) {
					return errEnough
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield([32]byte{}, err)
		}
	}
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
func (d *Set) Close() error { return d.keys.Close() }
