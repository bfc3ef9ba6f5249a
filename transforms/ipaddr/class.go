package ipaddr

import (
	"encoding/binary"
	"net/netip"
)

// Class is what an address is for.
type Class string

// The classes. Only public addresses belong to somebody who can be named.
const (
	Public        Class = "public"
	Private       Class = "private"       // for use inside a network
	CGNAT         Class = "cgnat"         // between a provider and its customers
	Loopback      Class = "loopback"      //
	LinkLocal     Class = "link_local"    //
	Documentation Class = "documentation" // for examples
	Benchmark     Class = "benchmark"     // for tests of devices
	Multicast     Class = "multicast"     //
	Reserved      Class = "reserved"      // set aside by the standards, and no address at all
	Tunnel6to4    Class = "tunnel_6to4"   // an IPv4 host's own IPv6 prefix
	Teredo        Class = "teredo"        // IPv6 through a relay, by UDP
	NAT64         Class = "nat64"         // an IPv4 address as IPv6-only hosts see it
)

// ClassOf says what a is for: the class of the most specific special-purpose
// range that holds it, public when none does, reserved when a is not an
// address. It is made to be called once a row.
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
			r, i = &r.inside[i], -1 // go on inside
		}
	}
	return r.class
}

func (r *range6) classOf(high, low uint64) Class {
	for i := 0; i < len(r.inside); i++ {
		if r.inside[i].holds(high, low) {
			r, i = &r.inside[i], -1 // go on inside
		}
	}
	return r.class
}

// LookupAddr returns the address to look up in place of a: a itself when it is
// public, and the public IPv4 address inside a well-known NAT64 one (Source:
// RFC 6052, 2.1). ok is false when there is nobody to be found behind a. 6to4
// and Teredo hold an IPv4 address too, but are tunnels: what is known of it
// need not be true of who came through.
func LookupAddr(a netip.Addr) (lookup netip.Addr, ok bool) {
	a = a.Unmap().WithZone("")
	switch ClassOf(a) {
	case Public:
		return a, true
	case NAT64:
		if !wellKnownNAT64.Contains(a) {
			return netip.Addr{}, false // a network's own prefix, of any layout
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
