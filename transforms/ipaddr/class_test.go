package ipaddr

import (
	"encoding/csv"
	"net/netip"
	"os"
	"strings"
	"testing"
)

func TestClassOf(t *testing.T) {
	tests := []struct {
		addr string
		want Class
	}{
		{"8.8.8.8", Public},
		{"1.0.0.0", Public},
		{"223.255.255.255", Public},
		{"0.0.0.0", Reserved},
		{"0.1.2.3", Reserved},
		{"10.255.255.255", Private},
		{"11.0.0.0", Public},
		{"100.63.255.255", Public},
		{"100.64.0.0", CGNAT},
		{"100.127.255.255", CGNAT},
		{"100.128.0.0", Public},
		{"127.0.0.1", Loopback},
		{"169.254.169.254", LinkLocal},
		{"172.15.255.255", Public},
		{"172.16.0.0", Private},
		{"172.31.255.255", Private},
		{"172.32.0.0", Public},
		{"192.0.0.8", Reserved},
		{"192.0.0.9", Public},
		{"192.0.0.10", Public},
		{"192.0.0.11", Reserved},
		{"192.0.0.170", Reserved},
		{"192.0.1.0", Public},
		{"192.0.2.1", Documentation},
		{"192.31.196.1", Public},
		{"192.52.193.1", Public},
		{"192.88.99.1", Reserved},
		{"192.168.0.1", Private},
		{"192.175.48.1", Public},
		{"198.17.255.255", Public},
		{"198.18.0.0", Benchmark},
		{"198.19.255.255", Benchmark},
		{"198.51.100.1", Documentation},
		{"203.0.113.1", Documentation},
		{"224.0.0.1", Multicast},
		{"239.255.255.255", Multicast},
		{"240.0.0.1", Reserved},
		{"255.255.255.255", Reserved},

		{"2606:4700:4700::1111", Public},
		{"2001:4860:4860::8888", Public},
		{"::", Reserved},
		{"::1", Loopback},
		{"::ffff:8.8.8.8", Public},
		{"::ffff:10.0.0.1", Private},
		{"64:ff9b::808:808", NAT64},
		{"64:ff9b:1::1", NAT64},
		{"100::1", Reserved},
		{"100:0:0:1::1", Reserved},
		{"100:0:0:2::1", Public},
		{"2001::1", Teredo},
		{"2001:1::1", Public},
		{"2001:1::2", Public},
		{"2001:1::3", Public},
		{"2001:1::4", Reserved},
		{"2001:2::1", Benchmark},
		{"2001:2:1::1", Reserved},
		{"2001:3::1", Public},
		{"2001:4:112::1", Public},
		{"2001:4:113::1", Reserved},
		{"2001:10::1", Reserved},
		{"2001:20::1", Public},
		{"2001:30::1", Public},
		{"2001:40::1", Reserved},
		{"2001:1ff:ffff::1", Reserved},
		{"2001:200::1", Public},
		{"2001:db8::1", Documentation},
		{"2002:808:808::1", Tunnel6to4},
		{"2003::1", Public},
		{"2620:4f:8000::1", Public},
		{"3fff::1", Documentation},
		{"3fff:1000::1", Public},
		{"5f00::1", Reserved},
		{"fc00::1", Private},
		{"fdff::1", Private},
		{"fe80::1", LinkLocal},
		{"fe80::1%eth0", LinkLocal},
		{"febf::1", LinkLocal},
		{"fec0::1", Private},
		{"ff02::1", Multicast},
	}
	for _, test := range tests {
		if got := ClassOf(netip.MustParseAddr(test.addr)); got != test.want {
			t.Errorf("ClassOf(%s) = %s, want %s", test.addr, got, test.want)
		}
	}
	if got := ClassOf(netip.Addr{}); got != Reserved {
		t.Errorf("ClassOf of no address = %s, want reserved", got)
	}
}

// scan is ClassOf as the table is meant: every range looked at, the longest
// prefix wins.
func scan(a netip.Addr) Class {
	a = a.Unmap()
	class, longest := Public, -1
	for _, s := range special {
		p := netip.MustParsePrefix(s.prefix)
		if p.Contains(a) && p.Bits() > longest {
			class, longest = s.class, p.Bits()
		}
	}
	return class
}

// FuzzClassOf compares the cut table with the whole one. The address is given
// as the place of a range and a distance from it, for that is where they could
// differ.
func FuzzClassOf(f *testing.F) {
	for i := range special {
		f.Add(uint8(i), uint8(0), uint64(0), uint64(0))
		f.Add(uint8(i), uint8(1), uint64(1)<<40, uint64(1))
		f.Add(uint8(i), uint8(33), uint64(1)<<63, ^uint64(0))
	}
	f.Fuzz(func(t *testing.T, place, bit uint8, high, low uint64) {
		p := netip.MustParsePrefix(special[int(place)%len(special)].prefix)
		b := p.Addr().AsSlice()
		for i := range b { // the bits behind the prefix are free
			noise := byte(high >> (56 - 8*(i%8)))
			if i >= 8 {
				noise = byte(low >> (56 - 8*(i-8)))
			}
			fixed := min(max(p.Bits()-8*i, 0), 8)
			b[i] |= noise & (0xff >> fixed)
		}
		a, _ := netip.AddrFromSlice(b)
		for range 2 {
			if got, want := ClassOf(a), scan(a); got != want {
				t.Errorf("ClassOf(%s) = %s, the table says %s", a, got, want)
			}
			b[int(bit)/8%len(b)] ^= 1 << (bit % 8) // and a neighbour
			a, _ = netip.AddrFromSlice(b)
		}
	})
}

// TestSharedVectors reads the list of special ranges where it is at hand:
// every range is in the table, and its addresses are looked up or not as it says.
func TestSharedVectors(t *testing.T) {
	file, err := os.Open("../../../shared/vectors/ip_special_ranges.csv")
	if err != nil {
		t.Skip("the shared vectors are not here")
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{"::ffff:0:0/96": true} // unmapped before it could match
	for _, s := range special {
		listed[s.prefix] = true
	}
	for _, row := range rows[1:] {
		prefix, skip := row[0], row[5]
		if !listed[prefix] {
			t.Errorf("%s is not in the table", prefix)
		}
		p := netip.MustParsePrefix(prefix)
		_, ok := LookupAddr(p.Addr())
		switch {
		case strings.HasPrefix(skip, "no") && prefix != "64:ff9b::/96":
			if !ok {
				t.Errorf("%s is not looked up", p.Addr())
			}
		default: // NAT64 and mapped: their first address holds 0.0.0.0; tunnels: never
			if ok {
				t.Errorf("%s is looked up", p.Addr())
			}
		}
	}
}
