package ranges

import (
	"cmp"
	"container/heap"
	"slices"
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

// flatten splits overlapping ranges, so that each address belongs to its narrowest range; of
// equals to that of the later line.
func flatten(ranges []numberRange) (segments []segment) {
	slices.SortFunc(ranges, func(a, b numberRange) int {
		return cmp.Or(compare(a.from, b.from), cmp.Compare(a.line, b.line))
	})
	add := func(from number, owner uint32) {
		if n := len(segments); n > 0 && segments[n-1].from == from {
			segments[n-1].owner = owner
			if n > 1 && segments[n-2].owner == owner {
				segments = segments[:n-1]
			}
		} else if n == 0 && owner != 0 || n > 0 && segments[n-1].owner != owner {
			segments = append(segments, segment{from, owner})
		}
	}
	var around narrowest // ranges that contain the present address, and some that ended
	for i := 0; i < len(ranges) || len(around) > 0; {
		if len(around) == 0 || i < len(ranges) && !around[0].to.less(ranges[i].from) {
			heap.Push(&around, ranges[i])
			add(ranges[i].from, around[0].owner)
			i++
			continue
		}
		// The narrowest ends before the next begins.
		end, more := around[0].to.next()
		for len(around) > 0 && (!more || around[0].to.less(end)) {
			heap.Pop(&around)
		}
		if !more {
			return segments
		}
		if len(around) > 0 {
			add(end, around[0].owner)
		} else {
			add(end, 0)
		}
	}
	return segments
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
