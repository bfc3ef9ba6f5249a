// Package spill sorts more values than fit into memory, by way of a temporary file.
//
// The one thing to know before using it: the order of the shares is that of the prefixes of the
// values; inside a share, the caller sorts.
package spill

import (
	"cmp"
	"context"
	"errors"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/inorder"
)

// Prefix is the beginning of a value's place in the order, such as a hash: its first 128 bits.
type Prefix struct{ High, Low uint64 }

// Sorter sorts any number of values in bounded memory. It splits them into 512 shares by the
// first bits of their prefixes, keeps the shares in a file, and sorts one share after another.
// A share that is too large is split again, by the first bits that differ. Only values with the
// same prefix are in memory together, however many they are. T must not have pointers. It is used
// by one goroutine.
type Sorter[T any] struct {
	dir    string
	prefix func(T) Prefix
	first  int // bits of the prefix that choose a share: ShareBits from this one
	bounds bounds
	// Compact, if any, sorts values and drops those that need not be kept. Shares that are too
	// large are compacted before they are split.
	Compact func(values []T) []T
	// Workers is how many shares are sorted at a time, if memory is enough; 0 is GOMAXPROCS.
	Workers int

	shares [1 << ShareBits]share[T]
	n      int
	file   *os.File // nil while everything is in memory
	end    int64    // of file
}

// bounds are the bounds of a sorter in bytes, less in tests.
type bounds struct {
	block int // that are written at a time
	share int // that are sorted at a time
}

// share is a part of the values: blocks in the file, and values to be written.
type share[T any] struct {
	blocks  []int64 // offsets in the file
	pending []T
}

// ShareBits is how many bits choose a share. The values of a share have the first ones in common.
const ShareBits = 9

// defaultBounds: all pending values together take at most 16 MiB.
var defaultBounds = bounds{block: 32 << 10, share: 32 << 20}

// New makes an empty sorter. Its file is made in dir when it is needed.
func New[T any](dir string, prefix func(T) Prefix) *Sorter[T] {
	return &Sorter[T]{dir: dir, prefix: prefix, bounds: defaultBounds}
}

// Len is the number of added values.
func (s *Sorter[T]) Len() int { return s.n }

// Add adds a value.
func (s *Sorter[T]) Add(value T) error {
	sh := &s.shares[s.prefix(value).after(s.first)>>(64-ShareBits)]
	sh.pending = append(sh.pending, value)
	s.n++
	if len(sh.pending) < s.blockLen() {
		return nil
	}
	return s.write(sh)
}

// after returns the bits of a prefix from one on, the first on top.
func (p Prefix) after(bit int) uint64 {
	if bit >= 64 {
		return p.Low << (bit - 64)
	}
	return p.High<<bit | p.Low>>(64-bit)
}

func (s *Sorter[T]) blockLen() int { return max(1, s.bounds.block/sizeOf[T]()) }

func sizeOf[T any]() int {
	var one T
	return int(unsafe.Sizeof(one))
}

// write moves the pending values of a share to the file.
func (s *Sorter[T]) write(sh *share[T]) (err error) {
	if s.file == nil {
		if s.file, err = atomicfile.Nameless(s.dir); err != nil {
			return err
		}
	}
	block := bytesOf(sh.pending)
	if _, err := s.file.WriteAt(block, s.end); err != nil {
		return err
	}
	sh.blocks = append(sh.blocks, s.end)
	s.end += int64(len(block))
	sh.pending = sh.pending[:0]
	return nil
}

// Each sorts the shares, several at once, and calls do for each in the order of the prefixes.
// sort returns the sorted values, which may be fewer, in either slice; both slices have the same
// length. No value may be added after Each.
func (s *Sorter[T]) Each(ctx context.Context, sort func(values, scratch []T) ([]T, error), do func([]T) error) error {
	for from := 0; from < len(s.shares); {
		if s.isLarge(&s.shares[from]) {
			if err := s.sortLarge(ctx, &s.shares[from], sort, do); err != nil {
				return err
			}
			from++
			continue
		}
		end := from + 1
		for end < len(s.shares) && !s.isLarge(&s.shares[end]) {
			end++
		}
		if err := s.sortShares(ctx, s.shares[from:end], sort, do); err != nil {
			return err
		}
		from = end
	}
	return nil
}

func (s *Sorter[T]) isLarge(sh *share[T]) bool { return s.lenOf(sh)*sizeOf[T]() > s.bounds.share }

func (s *Sorter[T]) lenOf(sh *share[T]) int { return len(sh.blocks)*s.blockLen() + len(sh.pending) }

// sortShares sorts shares that are not too large.
func (s *Sorter[T]) sortShares(ctx context.Context, shares []share[T], sort func(values, scratch []T) ([]T, error), do func([]T) error) error {
	type sorted struct {
		values []T
		err    error
	}
	var failed error
	var free sync.Pool // of *[]T
	working, stop := context.WithCancel(ctx)
	defer stop()
	sorting := inorder.NewOf(s.sortedAtOnce(shares), func(next sorted) {
		if failed == nil {
			failed = next.err
		}
		if failed == nil && len(next.values) > 0 {
			failed = do(next.values)
		}
		if failed != nil {
			stop()
		}
		free.Put(&next.values)
	})
	for i := range shares {
		if working.Err() != nil {
			break
		}
		if s.lenOf(&shares[i]) == 0 {
			continue
		}
		sorting.Do(func() (next sorted) {
			values, scratch := s.room(&shares[i], &free), s.room(&shares[i], &free)
			if next.err = s.read(&shares[i], values); next.err == nil {
				next.values, next.err = sort(values, scratch)
			}
			if unsafe.SliceData(next.values) == unsafe.SliceData(values) {
				values = scratch
			}
			free.Put(&values)
			return next
		})
	}
	sorting.Wait()
	if failed != nil {
		return failed
	}
	return ctx.Err()
}

// sortedAtOnce is how many shares are sorted at a time. Each takes twice its size, and as
// many sorted ones wait to be taken.
func (s *Sorter[T]) sortedAtOnce(shares []share[T]) int {
	largest := 1
	for i := range shares {
		largest = max(largest, s.lenOf(&shares[i]))
	}
	return min(cmp.Or(s.Workers, runtime.GOMAXPROCS(0)), max(1, s.bounds.share/(largest*sizeOf[T]())))
}

// room returns room for the values of a share.
func (s *Sorter[T]) room(sh *share[T], free *sync.Pool) []T {
	n := s.lenOf(sh)
	if used, ok := free.Get().(*[]T); ok && cap(*used) >= n {
		return (*used)[:n]
	}
	return make([]T, n, n+n/8) // for the next ones, which have about the same size
}

// read fills values with a share.
func (s *Sorter[T]) read(sh *share[T], values []T) error {
	n := s.blockLen()
	for i, at := range sh.blocks {
		if _, err := s.file.ReadAt(bytesOf(values[i*n:(i+1)*n]), at); err != nil {
			return err
		}
	}
	copy(values[len(sh.blocks)*n:], sh.pending)
	return nil
}

// eachBlock reads a share block by block. The values are valid until use returns.
func (s *Sorter[T]) eachBlock(ctx context.Context, sh *share[T], use func([]T) error) error {
	block := make([]T, s.blockLen())
	for _, at := range sh.blocks {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := s.file.ReadAt(bytesOf(block), at); err != nil {
			return err
		}
		if err := use(block); err != nil {
			return err
		}
	}
	return use(sh.pending)
}

// errLarge ends the reading of a share that is too large after compaction too.
var errLarge = errors.New("too large")

// sortLarge sorts a share that is too large. It is split if that helps.
func (s *Sorter[T]) sortLarge(ctx context.Context, sh *share[T], sort func(values, scratch []T) ([]T, error), do func([]T) error) error {
	differ, err := s.firstDiffering(ctx, sh)
	if err != nil {
		return err
	}
	values, err := s.compacted(ctx, sh, differ < 0)
	if errors.Is(err, errLarge) {
		return s.split(ctx, sh, differ, sort, do)
	}
	if err != nil {
		return err
	}
	if values, err = sort(values, make([]T, len(values))); err != nil {
		return err
	}
	return do(values)
}

// firstDiffering returns the first bit in which the prefixes of a share differ; -1 if they are
// all the same.
func (s *Sorter[T]) firstDiffering(ctx context.Context, sh *share[T]) (bit int, err error) {
	var first, differ Prefix
	any := false
	err = s.eachBlock(ctx, sh, func(values []T) error {
		for _, value := range values {
			p := s.prefix(value)
			if !any {
				first, any = p, true
			}
			differ.High |= p.High ^ first.High
			differ.Low |= p.Low ^ first.Low
		}
		return nil
	})
	switch {
	case differ.High != 0:
		return bits.LeadingZeros64(differ.High), err
	case differ.Low != 0:
		return 64 + bits.LeadingZeros64(differ.Low), err
	}
	return -1, err
}

// compacted returns the values of a large share, compacted. The error is errLarge if there are
// too many, and not all of them are wanted.
func (s *Sorter[T]) compacted(ctx context.Context, sh *share[T], all bool) (values []T, err error) {
	limit := s.bounds.share / sizeOf[T]()
	if s.Compact == nil && !all {
		return nil, errLarge
	}
	err = s.eachBlock(ctx, sh, func(block []T) error {
		if s.Compact != nil && len(values)+len(block) > limit {
			if values = s.Compact(values); len(values) > limit/2 && !all {
				return errLarge
			}
		}
		values = append(values, block...)
		return nil
	})
	return values, err
}

// split sorts a share by way of another sorter, whose shares are chosen from a bit on.
func (s *Sorter[T]) split(ctx context.Context, sh *share[T], bit int, sort func(values, scratch []T) ([]T, error), do func([]T) error) (err error) {
	part := New(s.dir, s.prefix)
	part.first, part.bounds, part.Compact, part.Workers = bit, s.bounds, s.Compact, s.Workers
	defer func() { err = errors.Join(err, part.Close()) }()
	if err := s.eachBlock(ctx, sh, func(values []T) error {
		for _, value := range values {
			if err := part.Add(value); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return part.Each(ctx, sort, do)
}

// Close frees disk and memory. It may be called again.
func (s *Sorter[T]) Close() error {
	file := s.file
	s.file, s.n, s.end = nil, 0, 0
	clear(s.shares[:])
	if file == nil {
		return nil
	}
	return file.Close()
}

// Sorted returns a function for Each that sorts by a comparison.
func Sorted[T any](compare func(a, b T) int) func(values, scratch []T) ([]T, error) {
	return func(values, _ []T) ([]T, error) {
		slices.SortFunc(values, compare)
		return values, nil
	}
}

func bytesOf[T any](values []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*sizeOf[T]())
}
