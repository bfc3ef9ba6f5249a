package ipaddr

type specialRange struct {
	prefix string
	class  Class
}

// special is the table of special-purpose address ranges.
//
// Sources: IANA IPv4 and IPv6 Special-Purpose Address Registries; IANA IPv4 and
// IPv6 Multicast Address Spaces; the RFC at each line. Ranges inside others
// that are globally reachable are listed as public, because the most specific range
// decides. Reachable ranges outside all others are listed to show that they were
// considered.
var special = []specialRange{
	{"0.0.0.0/8", Reserved},            // this network, RFC 791
	{"10.0.0.0/8", Private},            // RFC 1918
	{"100.64.0.0/10", CGNAT},           // shared address space, RFC 6598
	{"127.0.0.0/8", Loopback},          // RFC 1122
	{"169.254.0.0/16", LinkLocal},      // RFC 3927
	{"172.16.0.0/12", Private},         // RFC 1918
	{"192.0.0.0/24", Reserved},         // IETF protocol assignments, RFC 6890
	{"192.0.0.9/32", Public},           // Port Control Protocol anycast, RFC 7723
	{"192.0.0.10/32", Public},          // TURN anycast, RFC 8155
	{"192.0.2.0/24", Documentation},    // TEST-NET-1, RFC 5737
	{"192.31.196.0/24", Public},        // AS112-v4, RFC 7535
	{"192.52.193.0/24", Public},        // AMT, RFC 7450
	{"192.88.99.0/24", Reserved},       // 6to4 relay anycast, deprecated, RFC 7526
	{"192.168.0.0/16", Private},        // RFC 1918
	{"192.175.48.0/24", Public},        // AS112 direct delegation, RFC 7534
	{"198.18.0.0/15", Benchmark},       // RFC 2544
	{"198.51.100.0/24", Documentation}, // TEST-NET-2, RFC 5737
	{"203.0.113.0/24", Documentation},  // TEST-NET-3, RFC 5737
	{"224.0.0.0/4", Multicast},         // RFC 1112
	{"240.0.0.0/4", Reserved},          // RFC 1112
	{"255.255.255.255/32", Reserved},   // limited broadcast, RFC 8190
	{"::/128", Reserved},               // unspecified, RFC 4291
	{"::1/128", Loopback},              // RFC 4291
	{"64:ff9b::/96", NAT64},            // well-known prefix, RFC 6052
	{"64:ff9b:1::/48", NAT64},          // a network's own prefixes, RFC 8215
	{"100::/64", Reserved},             // discard-only, RFC 6666
	{"100:0:0:1::/64", Reserved},       // dummy prefix, RFC 9780
	{"2001::/23", Reserved},            // IETF protocol assignments, RFC 2928
	{"2001::/32", Teredo},              // RFC 4380
	{"2001:1::1/128", Public},          // Port Control Protocol anycast, RFC 7723
	{"2001:1::2/128", Public},          // TURN anycast, RFC 8155
	{"2001:1::3/128", Public},          // DNS-SD registration anycast, RFC 9665
	{"2001:2::/48", Benchmark},         // RFC 5180
	{"2001:3::/32", Public},            // AMT, RFC 7450
	{"2001:4:112::/48", Public},        // AS112-v6, RFC 7535
	{"2001:10::/28", Reserved},         // ORCHID, deprecated, RFC 4843
	{"2001:20::/28", Public},           // ORCHIDv2, RFC 7343
	{"2001:30::/28", Public},           // drone remote ID, RFC 9374
	{"2001:db8::/32", Documentation},   // RFC 3849
	{"2002::/16", Tunnel6to4},          // RFC 3056
	{"2620:4f:8000::/48", Public},      // AS112 direct delegation, RFC 7534
	{"3fff::/20", Documentation},       // RFC 9637
	{"5f00::/16", Reserved},            // segment routing identifiers, RFC 9602
	{"fc00::/7", Private},              // unique local, RFC 4193
	{"fe80::/10", LinkLocal},           // RFC 4291
	{"fec0::/10", Private},             // site-local, deprecated, RFC 3879
	{"ff00::/8", Multicast},            // RFC 4291
}
