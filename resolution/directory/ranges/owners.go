package ranges

import (
	"encoding/binary"
	"net/netip"
	"unsafe"
)

// together is how many addresses are looked up at a time. Each step of a binary search is done
// for all of them before the next, so that the processor loads the memory of many at once.
// One address after another, a look-up among 1 M ranges took twice the time.
const together = 64

// Owners sets owners to the number of the owner of the narrowest range of each address from
// ipaddr.LookupAddr; 0 without one, and for the zero address. Call it under
// keyed.Guard.
func (f *File) Owners(addrs []netip.Addr, owners []uint32) {
	for len(addrs) > 0 {
		n := min(together, len(addrs))
		f.ownersTogether(addrs[:n], owners[:n])
		addrs, owners = addrs[n:], owners[n:]
	}
}

func (f *File) ownersTogether(addrs []netip.Addr, owners []uint32) {
	var places [together]uint64
	var first, end, found [together]uint32
	var s search
	n := 0 // IPv4 addresses
	for i, a := range addrs {
		owners[i] = 0
		switch {
		case a.Is4():
			raw := a.As4()
			places[n], s.low[n] = uint64(binary.BigEndian.Uint16(raw[:2])), binary.BigEndian.Uint16(raw[2:])
			s.index[n] = i
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
		s.starts[k] = f.v4Low.Slice(uint64(first[k]), uint64(end[k]))
	}
	s.find(n)
	in := 0 // addresses in a range
	for k, starts := range s.starts[:n] {
		if at := s.at[k]; at < len(starts) && starts[at] <= s.low[k] {
			places[in], s.index[in] = uint64(first[k])+uint64(at), s.index[k]
			in++
		}
	}
	f.v4.Load(places[:in], found[:])
	for k, owner := range found[:in] {
		owners[s.index[k]] = owner
	}
}

// search is binary searches side by side.
type search struct {
	low    [together]uint16   // the last 16 bits of an address
	index  [together]int      // of the address among all
	starts [together][]uint16 // in its /16; sorted
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
			if next := at + half; starts[next] <= s.low[k] {
				at = next
			}
			s.at[k] = at
		}
	}
}

// OrgTypes sets orgTypes to that of each owner but 0. Call it under keyed.Guard.
func (f *File) OrgTypes(owners []uint32, to []string) {
	var places [together]uint64
	var index [together]int
	var codes [together]uint8
	n := 0
	for i, owner := range owners {
		if owner != 0 {
			places[n], index[n] = uint64(owner-1), i
			n++
		}
		if n == together || i == len(owners)-1 {
			f.orgTypes.Load(places[:n], codes[:])
			for k, code := range codes[:n] {
				to[index[k]] = f.words[code]
			}
			n = 0
		}
	}
}

// OwnerCount is the number of owners.
func (f *File) OwnerCount() int { return f.orgTypes.Len() }

// NamesOf sets domains and names to those of the owners with the numbers from from+1 on, until the
// file is closed. Call it under keyed.Guard.
func (f *File) NamesOf(from int, domains, names []string) {
	text := func(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
	for i := range domains {
		domains[i], names[i] = text(f.domains.At(uint32(from+i))), text(f.names.At(uint32(from+i)))
	}
}
