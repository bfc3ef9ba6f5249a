package callback

import (
	"net/netip"
	"slices"

	"github.com/leadetl/leadetl/transforms/ipaddr"
)

// globalUnicast is the part of IPv6 with public addresses. Outside of it are several
// forms of IPv4 addresses. Source: IANA IPv6 Address Space.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// special are ranges that ipaddr calls public, because they are reachable, but whose
// addresses answer from inside a network.
var special = []netip.Prefix{
	netip.MustParsePrefix("168.63.129.16/32"),  // host agent and metadata of Azure
	netip.MustParsePrefix("192.0.0.0/24"),      // anycast gateways of each network, RFC 7723, RFC 8155
	netip.MustParsePrefix("192.31.196.0/24"),   // AS112, RFC 7535
	netip.MustParsePrefix("192.52.193.0/24"),   // AMT relays, RFC 7450
	netip.MustParsePrefix("192.175.48.0/24"),   // AS112, RFC 7534
	netip.MustParsePrefix("2001::/23"),         // protocol assignments, such as anycast gateways
	netip.MustParsePrefix("2620:4f:8000::/48"), // AS112, RFC 7534
}

// isSpecial reports whether a cannot be the address of a receiver on the public
// Internet. IPv4 in IPv6 notation counts as the IPv4 address, as it does for the
// system.
//
// It cannot know the public addresses of the operator's own network, or a
// translation prefix (RFC 6052) chosen from them.
func isSpecial(a netip.Addr) bool {
	if a.Zone() != "" {
		return true
	}
	a = a.Unmap()
	if ipaddr.ClassOf(a) != ipaddr.Public || a.Is6() && (!globalUnicast.Contains(a) || isISATAP(a)) {
		return true
	}
	return slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(a) })
}

// isISATAP reports whether a is an IPv4 address that is tunnelled inside a site,
// with any prefix. Source: RFC 5214, 6.1.
func isISATAP(a netip.Addr) bool {
	b := a.As16()
	return b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
