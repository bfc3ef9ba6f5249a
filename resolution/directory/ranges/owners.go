package ranges

import (
	"encoding/binary"
	"net/netip"

	"github.com/leadetl/leadetl/resolution"
)

// together is how many addresses are looked up at a time. Each step of a binary search is done
// for all of them before the next, so that the processor loads the memory of many at once.
// One address after another, a look-up among 1 M ranges took twice the time.
const together = 64

// Owners sets owners to the number of the owner of the narrowest range of each address from
// ipaddr.LookupAddr; 0 without one, and for the zero address. Call it under
// columnfile.Guard.
func (f *File) Owners(addrs []netip.Addr, owners []uint32) {
	for len(addrs) > 0 {
		n := min(together, len(addrs))
		f.ownersTogether(addrs[:n], owners[:n])
		addrs, owners = addrs[n:], owners[n:]
	}
}

func (f *File) ownersTogether(addrs []netip.Addr, owners []uint32) {
	var places [together]uint64
	var first, end [together]uint32
	var s search
	n := 0 // IPv4 addresses
	for i, a := range addrs {
		owners[i] = 0
		switch {
		case a.Is4():
			raw := a.As4()
			s.addrs[n], s.index[n] = binary.BigEndian.Uint32(raw[:]), i
			places[n] = uint64(s.addrs[n] >> 16)
			n++
		case a.IsValid():
			owners[i] = f.owner6(numberOf(a))
		}
	}
	f.v4First.Load(places[:n], first[:])
	for k := range n {
		places[k]++
	}
	f.v4First.Load(places[:n], end[:])
	for k := range n {
		// The range of the first address of the /16 may begin before it.
		s.starts[k] = f.v4.Slice(uint64(max(first[k], 1)-1), uint64(end[k]))
	}
	s.find(n)
	for k, starts := range s.starts[:n] {
		if at := s.at[k]; at < len(starts) && uint32(starts[at]>>32) <= s.addrs[k] {
			owners[s.index[k]] = uint32(starts[at])
		}
	}
}

// search is binary searches side by side.
type search struct {
	addrs  [together]uint32
	index  [together]int      // of the address among all
	starts [together][]uint64 // of ranges, with owners; sorted
	at     [together]int      // the last start that is not after the address, else 0
	left   [together]int      // starts to search, from at on
}

func (s *search) find(n int) {
	longest := 0
	for k, starts := range s.starts[:n] {
		s.left[k] = len(starts)
		longest = max(longest, len(starts))
	}
	for ; longest > 1; longest -= longest / 2 {
		for k, starts := range s.starts[:n] {
			if len(starts) == 0 {
				continue
			}
			at, half := s.at[k], s.left[k]/2
			s.left[k] -= half
			// Which half it is cannot be predicted: the compiler needs no branch for it. With
			// one, a look-up took 76 ns, without 40 to 50.
			if next := at + half; uint32(starts[next]>>32) <= s.addrs[k] {
				at = next
			}
			s.at[k] = at
		}
	}
}

// OrgTypes sets orgTypes to that of each owner but 0. Call it under columnfile.Guard.
func (f *File) OrgTypes(owners []uint32, to []string) {
	for i, owner := range owners {
		if owner != 0 {
			to[i] = f.OrgType(owner)
		}
	}
}

// Companies sets found to the Company of each owner but 0. Call it under columnfile.Guard.
func (f *File) Companies(owners []uint32, found []*resolution.Company) {
	for i, owner := range owners {
		if owner != 0 {
			found[i] = f.Company(owner)
		}
	}
}
