package ipaddr

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
)

// The table of ranges is split into blocks by the first byte of an address. Most
// blocks have one class, the others few ranges. A range contains its inner ranges, so
// that an address is compared with exceptions only if there can be one.

type range4 struct {
	bits, mask uint32
	class      Class
	inside     []range4
}

type range6 struct {
	high, highMask uint64
	low, lowMask   uint64
	class          Class
	inside         []range6
}

// A block is the range of all addresses with the same first byte. Its class is that of
// addresses outside its inner ranges.
var blocks4, blocks6 = cutTable()

func cutTable() (v4 [256]range4, v6 [256]range6) {
	for i := range 256 {
		v4[i].class, v6[i].class = Public, Public
	}
	table := slices.Clone(special)
	slices.SortStableFunc(table, func(a, b specialRange) int { // a range before those inside it
		return cmp.Compare(netip.MustParsePrefix(a.prefix).Bits(), netip.MustParsePrefix(b.prefix).Bits())
	})
	for _, s := range table {
		prefix := netip.MustParsePrefix(s.prefix)
		first := int(prefix.Addr().AsSlice()[0])
		if prefix.Bits() <= 8 { // whole blocks
			for i := range 1 << (8 - prefix.Bits()) {
				if prefix.Addr().Is4() {
					v4[first+i].class = s.class
				} else {
					v6[first+i].class = s.class
				}
			}
			continue
		}
		if prefix.Addr().Is4() {
			v4[first].insert(newRange4(prefix, s.class))
		} else {
			v6[first].insert(newRange6(prefix, s.class))
		}
	}
	return v4, v6
}

func newRange4(p netip.Prefix, class Class) range4 {
	b := p.Addr().As4()
	return range4{bits: binary.BigEndian.Uint32(b[:]), mask: ^uint32(0) << (32 - p.Bits()), class: class}
}

func newRange6(p netip.Prefix, class Class) range6 {
	b := p.Addr().As16()
	return range6{
		high: binary.BigEndian.Uint64(b[:8]), highMask: ^uint64(0) << max(64-p.Bits(), 0),
		low: binary.BigEndian.Uint64(b[8:]), lowMask: ^uint64(0) << min(128-p.Bits(), 64),
		class: class,
	}
}

func (r *range4) holds(a uint32) bool { return a&r.mask == r.bits }

func (r *range6) holds(high, low uint64) bool {
	return high&r.highMask == r.high && low&r.lowMask == r.low
}

// insert puts s, which is in r, into the innermost range that contains it.
func (r *range4) insert(s range4) {
	for i := range r.inside {
		if r.inside[i].holds(s.bits) {
			r.inside[i].insert(s)
			return
		}
	}
	r.inside = append(r.inside, s)
}

func (r *range6) insert(s range6) {
	for i := range r.inside {
		if r.inside[i].holds(s.high, s.low) {
			r.inside[i].insert(s)
			return
		}
	}
	r.inside = append(r.inside, s)
}
