package ranges

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestFlattenIsScan: an address belongs to the range that a look at every range
// finds.
func TestFlattenIsScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		place := rapid.Custom(func(t *rapid.T) number {
			n := number{low: rapid.Uint64Range(0, 40).Draw(t, "low")}
			switch rapid.IntRange(0, 5).Draw(t, "where") {
			case 0:
				n = number{^uint64(0), ^n.low} // near the end
			case 1:
				n = number{n.low % 2, n.low - 20} // around 2^64
			}
			return n
		})
		ranges := someRanges(t, place)
		var segments []segment
		f := flattener{emit: func(s segment) error {
			segments = append(segments, s)
			return nil
		}}
		var failed error
		for _, r := range slices.SortedFunc(slices.Values(ranges), compareRanges) {
			failed = errors.Join(failed, f.add(r))
		}
		if err := errors.Join(failed, f.finish()); err != nil {
			t.Fatal(err)
		}
		for i, s := range segments {
			if i > 0 && (!segments[i-1].from.less(s.from) || segments[i-1].owner == s.owner) {
				t.Fatalf("%v: segments %d and %d could be one: %v", ranges, i-1, i, segments)
			}
		}
		for range 20 {
			at := place.Draw(t, "at")
			if got, want := ownerIn(segments, at), narrowestAround(ranges, at); got != want {
				t.Fatalf("%v: %v belongs to %d, want %d; %v", ranges, at, got, want, segments)
			}
		}
	})
}

// someRanges draws ranges between places.
func someRanges(t *rapid.T, place *rapid.Generator[number]) (ranges []numberRange) {
	for i := range rapid.IntRange(0, 12).Draw(t, "ranges") {
		from, to := place.Draw(t, "from"), place.Draw(t, "to")
		if to.less(from) {
			from, to = to, from
		}
		ranges = append(ranges, numberRange{from, to, rapid.Uint32Range(1, 3).Draw(t, "owner"), uint32(i)})
	}
	return ranges
}

func ownerIn(segments []segment, at number) (owner uint32) {
	for _, s := range segments {
		if at.less(s.from) {
			break
		}
		owner = s.owner
	}
	return owner
}

func narrowestAround(ranges []numberRange, at number) uint32 {
	var best *numberRange
	for i, r := range ranges {
		if at.less(r.from) || r.to.less(at) {
			continue
		}
		if best == nil || !best.to.minus(best.from).less(r.to.minus(r.from)) {
			best = &ranges[i]
		}
	}
	if best == nil {
		return 0
	}
	return best.owner
}
