package ipaddr

import (
	"encoding/binary"
	"net/netip"
)

// Class is the purpose of an address.
type Class string

// The classes. Only public addresses belong to a known organization.
const (
	Public        Class = "public"
	Private       Class = "private"       // for use inside a network
	CGNAT         Class = "cgnat"         // between a provider and its customers
	Loopback      Class = "loopback"      //
	LinkLocal     Class = "link_local"    //
	Documentation Class = "documentation" // for examples
	Benchmark     Class = "benchmark"     // for tests of devices
	Multicast     Class = "multicast"     //
	Reserved      Class = "reserved"      // reserved by the standards, or not an address
	Tunnel6to4    Class = "tunnel_6to4"   // the IPv6 prefix of an IPv4 host
	Teredo        Class = "teredo"        // IPv6 over UDP through a relay
	NAT64         Class = "nat64"         // an IPv4 address in the form for IPv6-only hosts
)

// ClassOf returns the class of the most specific special-purpose range that contains
// a; public without one, and reserved if a is not an address. It is fast enough to be
// called for each row.
func ClassOf(a netip.Addr) Class {
	if a.Is4() {
		b := a.As4()
		return class4(binary.BigEndian.Uint32(b[:]))
	}
	if !a.IsValid() {
		return Reserved
	}
	b := a.As16()
	high, low := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	if high == 0 && low>>32 == 0xffff { // IPv4 in IPv6 notation
		return class4(uint32(low))
	}
	return blocks6[high>>56].classOf(high, low)
}

func class4(a uint32) Class { return blocks4[a>>24].classOf(a) }

func (r *range4) classOf(a uint32) Class {
	for i := 0; i < len(r.inside); i++ {
		if r.inside[i].holds(a) {
			r, i = &r.inside[i], -1 // continue inside
		}
	}
	return r.class
}

func (r *range6) classOf(high, low uint64) Class {
	for i := 0; i < len(r.inside); i++ {
		if r.inside[i].holds(high, low) {
			r, i = &r.inside[i], -1 // continue inside
		}
	}
	return r.class
}

// LookupAddr returns the address to look up for a: a itself if it is public, or the
// public IPv4 address inside a well-known NAT64 address (Source: RFC 6052, 2.1). ok is
// false if there is nothing to look up. 6to4 and Teredo addresses contain an IPv4
// address too, but they are tunnels, and its owner need not be the user.
func LookupAddr(a netip.Addr) (lookup netip.Addr, ok bool) {
	a = a.Unmap().WithZone("")
	switch ClassOf(a) {
	case Public:
		return a, true
	case NAT64:
		if !wellKnownNAT64.Contains(a) {
			return netip.Addr{}, false // a prefix of one network, in any layout
		}
		b := a.As16()
		embedded := netip.AddrFrom4([4]byte(b[12:]))
		if ClassOf(embedded) == Public {
			return embedded, true
		}
	}
	return netip.Addr{}, false
}

var wellKnownNAT64 = netip.MustParsePrefix("64:ff9b::/96")
