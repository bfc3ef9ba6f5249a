package callback

import (
	"net/netip"
	"slices"

	"github.com/leadetl/leadetl/transforms/ipaddr"
)

// globalUnicast is all of IPv6 that has been given to anybody; what is outside
// holds IPv4 addresses in several forms. Source: IANA IPv6 Address Space.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// special are ranges whose addresses ipaddr calls public, as
// they are reachable, but that answer from inside a network.
var special = []netip.Prefix{
	netip.MustParsePrefix("168.63.129.16/32"),  // a cloud's host agent and its metadata, Azure
	netip.MustParsePrefix("192.0.0.0/24"),      // a network's own gateways by anycast, RFC 7723, RFC 8155
	netip.MustParsePrefix("192.31.196.0/24"),   // AS112, RFC 7535
	netip.MustParsePrefix("192.52.193.0/24"),   // AMT relays, RFC 7450
	netip.MustParsePrefix("192.175.48.0/24"),   // AS112, RFC 7534
	netip.MustParsePrefix("2001::/23"),         // protocol assignments, the anycast gateways among them
	netip.MustParsePrefix("2620:4f:8000::/48"), // AS112, RFC 7534
}

// isSpecial reports whether a is an address that no receiver on the public
// Internet has. IPv4 in IPv6 notation is that IPv4 address here, as it is to
// the system that connects to it.
//
// What it cannot know are the public addresses of the operator's own network,
// and a translation prefix (RFC 6052) chosen from them.
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

// isISATAP reports whether a is an IPv4 address tunnelled inside a site,
// whatever prefix the site has. Source: RFC 5214, 6.1.
func isISATAP(a netip.Addr) bool {
	b := a.As16()
	return b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
