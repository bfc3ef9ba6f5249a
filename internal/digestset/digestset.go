// Package digestset holds tens of millions of digests in eight bytes each.
//
// The one thing to know before using it: of each digest it keeps only the first
// 64 bits. A digest that was added is always found. One that was not added is
// found with a probability of Len divided by 2^64: in a set of 20 million, one
// look-up in a thousand billion (1e-12). The digests must come from a
// cryptographic hash, so that their first bits are as good as random; look-ups
// rely on that for speed, but not for correctness.
package digestset

import (
	"iter"
	"math/bits"
	"runtime"
	"slices"

	"github.com/sourcegraph/conc"
)

// chunkLen is how many digests are in one piece of memory. A piece is not copied
// to grow, and is sorted in place: a set takes no more memory while it is built
// than afterwards.
const chunkLen = 1 << 12

// Builder collects digests, given by their first 64 bits, big-endian. It is
// used by one goroutine. The zero value is empty.
type Builder struct {
	buckets [256]chunks // by first byte
}

// chunks is a list of digests in pieces, all full but the last.
type chunks struct {
	pieces [][]uint64
	n      int
}

func (c *chunks) add(d uint64) {
	last := len(c.pieces) - 1
	if last < 0 || len(c.pieces[last]) == chunkLen {
		var piece []uint64
		if last >= 0 {
			piece = make([]uint64, 0, chunkLen)
		}
		c.pieces = append(c.pieces, piece)
		last++
	}
	c.pieces[last] = append(c.pieces[last], d)
	c.n++
}

func (c *chunks) at(i int) uint64 { return c.pieces[i/chunkLen][i%chunkLen] }

// Add adds a digest.
func (b *Builder) Add(d uint64) { b.buckets[d>>56].add(d) }

// Set holds each collected digest once. It is read-only, and safe for any number
// of goroutines. A nil Set is empty.
type Set struct {
	buckets [256]bucket
	n       int
}

// bucket holds the digests with the same first byte, in order. Those with the
// second byte b are at starts[b] to starts[b+1].
type bucket struct {
	chunks
	starts [257]uint32
}

// Set sorts what was collected. The Builder is empty afterwards.
func (b *Builder) Set() *Set {
	s := &Set{}
	var workers conc.WaitGroup
	n := runtime.GOMAXPROCS(0)
	for first := range n {
		workers.Go(func() {
			var scratch []uint64
			for i := first; i < len(s.buckets); i += n {
				s.buckets[i].chunks = b.buckets[i]
				scratch = s.buckets[i].order(scratch)
			}
		})
	}
	workers.Wait()
	for i := range s.buckets {
		s.n += s.buckets[i].n
	}
	*b = Builder{}
	return s
}

// order sorts a bucket in place, drops duplicates and finds the starts. It returns the
// scratch memory for the next bucket: new memory for each was as much garbage as the set.
func (b *bucket) order(scratch []uint64) []uint64 {
	if b.n == 0 {
		return scratch
	}
	sorted := scratch[:0]
	for _, piece := range b.pieces {
		sorted = append(sorted, piece...)
	}
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	b.n = len(sorted)
	counted := 0
	for i, d := range sorted {
		b.pieces[i/chunkLen][i%chunkLen] = d
		for ; counted <= int(d>>48&0xff); counted++ {
			b.starts[counted] = uint32(i)
		}
	}
	for ; counted < len(b.starts); counted++ {
		b.starts[counted] = uint32(b.n)
	}
	b.pieces = b.pieces[:(b.n+chunkLen-1)/chunkLen]
	return sorted
}

// locate returns the bucket of a digest, where the digests with its second byte are in it, and
// about where it is among them, which the bits after the first two bytes say: digests are
// spread evenly. If there are none, from is to.
func (s *Set) locate(d uint64) (b *bucket, from, to, guess int) {
	b = &s.buckets[d>>56]
	second := d >> 48 & 0xff
	from, to = int(b.starts[second]), int(b.starts[second+1])
	share, _ := bits.Mul64(d<<16, uint64(to-from))
	return b, from, to, from + int(share)
}

// Prefetch loads the memory where digests would be, all at a time, so that Has need not wait
// for each. With 20 million digests, look-ups take half the time.
func (s *Set) Prefetch(digests []uint64) {
	if s == nil {
		return
	}
	sum := uint64(0)
	for _, d := range digests {
		if b, from, to, guess := s.locate(d); from < to {
			sum += b.at(guess)
		}
	}
	runtime.KeepAlive(sum)
}

// Has reports whether a digest is in the set. The search starts at the guess, and needs only
// a cache line or two.
func (s *Set) Has(d uint64) bool {
	if s == nil {
		return false
	}
	b, from, to, guess := s.locate(d)
	if from == to {
		return false
	}
	if b.at(guess) < d {
		from = guess + 1
		for step := nearby; from+step < to; step *= 2 {
			if b.at(from+step) >= d {
				to = from + step + 1
				break
			}
			from += step + 1
		}
	} else {
		to = guess + 1
		for step := nearby; to-1-step > from; step *= 2 {
			if b.at(to-1-step) <= d {
				from = to - 1 - step
				break
			}
			to -= step
		}
	}
	for from < to {
		middle := int(uint(from+to) / 2)
		switch there := b.at(middle); {
		case there < d:
			from = middle + 1
		case there > d:
			to = middle
		default:
			return true
		}
	}
	return false
}

// nearby is the first step of the search: how many digests from the guess.
const nearby = 8

// Len is the number of digests.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return s.n
}

// All iterates over the digests in order.
func (s *Set) All() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		if s == nil {
			return
		}
		for i := range s.buckets {
			b := &s.buckets[i]
			for j := range b.n {
				if !yield(b.at(j)) {
					return
				}
			}
		}
	}
}
