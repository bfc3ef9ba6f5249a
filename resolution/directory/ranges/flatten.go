package ranges

import (
	"cmp"
	"container/heap"

	"github.com/leadetl/leadetl/internal/spill"
)

// numberRange is a range of addresses with both ends.
type numberRange struct {
	from, to number
	owner    uint32
	line     uint32 // of ranges of the same size the later wins
}

// segment is a range that ends where the next one begins. Owner 0 means none.
type segment struct {
	from  number
	owner uint32
}

// flattener splits overlapping ranges, so that each address belongs to its narrowest range;
// of equals to that of the later line.
type flattener struct {
	emit func(segment) error // gets the segments in order

	around narrowest // ranges that contain the present address, and some that ended
	// last are the last segments, at most two: the very last one may still change, or
	// become a part of the one before.
	last []segment
}

// prefix puts IPv4 before IPv6, each by the first address.
func (r numberRange) prefix() spill.Prefix {
	if r.from.less(first6) {
		return spill.Prefix{High: r.from.low << 31}
	}
	return spill.Prefix{High: 1<<63 | r.from.high>>1, Low: r.from.high<<63 | r.from.low>>1}
}

// addAll adds ranges in the order of compareRanges.
func (f *flattener) addAll(ranges []numberRange) error {
	for _, r := range ranges {
		if err := f.add(r); err != nil {
			return err
		}
	}
	return nil
}

// add adds the next range in the order of compareRanges.
func (f *flattener) add(r numberRange) error {
	if err := f.end(&r.from); err != nil {
		return err
	}
	heap.Push(&f.around, r)
	return f.begin(r.from, f.around[0].owner)
}

// finish ends all ranges.
func (f *flattener) finish() error {
	if err := f.end(nil); err != nil {
		return err
	}
	for _, s := range f.last {
		if err := f.emit(s); err != nil {
			return err
		}
	}
	f.last = nil
	return nil
}

// end ends the ranges that end before an address; nil ends all.
func (f *flattener) end(before *number) error {
	for len(f.around) > 0 && (before == nil || f.around[0].to.less(*before)) {
		next, more := f.around[0].to.next()
		for len(f.around) > 0 && (!more || f.around[0].to.less(next)) {
			heap.Pop(&f.around)
		}
		if !more {
			return nil
		}
		owner := uint32(0)
		if len(f.around) > 0 {
			owner = f.around[0].owner
		}
		if err := f.begin(next, owner); err != nil {
			return err
		}
	}
	return nil
}

// begin begins a segment if it is not a part of the last one.
func (f *flattener) begin(from number, owner uint32) error {
	n := len(f.last)
	switch {
	case n > 0 && f.last[n-1].from == from:
		f.last[n-1].owner = owner
		if n > 1 && f.last[n-2].owner == owner {
			f.last = f.last[:n-1]
		}
		return nil
	case n == 0 && owner == 0, n > 0 && f.last[n-1].owner == owner:
		return nil
	case n == 2:
		if err := f.emit(f.last[0]); err != nil {
			return err
		}
		f.last = append(f.last[:0], f.last[1])
	}
	f.last = append(f.last, segment{from, owner})
	return nil
}

// compareRanges sorts by the first address, then by line.
func compareRanges(a, b numberRange) int {
	return cmp.Or(compare(a.from, b.from), cmp.Compare(a.line, b.line))
}

func compare(a, b number) int { return cmp.Or(cmp.Compare(a.high, b.high), cmp.Compare(a.low, b.low)) }

// narrowest is a heap with the winning range on top.
type narrowest []numberRange

func (h narrowest) Len() int { return len(h) }

func (h narrowest) Less(i, j int) bool {
	a, b := h[i].to.minus(h[i].from), h[j].to.minus(h[j].from)
	if a != b {
		return a.less(b)
	}
	return h[i].line > h[j].line
}

func (h narrowest) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *narrowest) Push(x any) { *h = append(*h, x.(numberRange)) }

func (h *narrowest) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
