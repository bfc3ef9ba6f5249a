package ipaddr_test

import (
	"net/netip"
	"testing"

	"github.com/leadetl/leadetl/transforms/ipaddr"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name, cell string
		want       string
		err        error
	}{
		{"IPv4", "8.8.8.8", "8.8.8.8", nil},
		{"IPv6", "2606:4700:4700::1111", "2606:4700:4700::1111", nil},
		{"IPv6, long and upper case", "2606:4700:4700:0:0:0:0:1111", "2606:4700:4700::1111", nil},
		{"surrounding space", " \t8.8.8.8\r\n", "8.8.8.8", nil},
		{"byte order mark", "\ufeff8.8.8.8", "8.8.8.8", nil},
		{"no-break and zero-width space", "\u00a08.8.8.8\u200b", "8.8.8.8", nil},
		{"IPv4 with port", "8.8.8.8:443", "8.8.8.8", nil},
		{"IPv6 with port", "[2606:4700::1]:65535", "2606:4700::1", nil},
		{"IPv6 in brackets", "[2606:4700::1]", "2606:4700::1", nil},
		{"IPv6 that ends like a port", "2606:4700::1:443", "2606:4700::1:443", nil},
		{"zone", "fe80::1%eth0", "fe80::1", nil},
		{"zone and port", "[fe80::1%25eth0]:80", "fe80::1", nil},
		{"IPv4 in IPv6 notation", "::ffff:8.8.8.8", "8.8.8.8", nil},
		{"IPv4 in IPv6 notation, hex", "::FFFF:808:808", "8.8.8.8", nil},
		{"IPv4 in IPv6 notation, zone", "::ffff:8.8.8.8%eth0", "8.8.8.8", nil},
		{"longest", "0000:0000:0000:0000:0000:ffff:255.255.255.255", "255.255.255.255", nil},

		{"empty", "", "", ipaddr.ErrEmpty},
		{"space", " \u00a0 ", "", ipaddr.ErrEmpty},
		{"null word", "NULL", "", ipaddr.ErrEmpty},
		{"not available", "n/a", "", ipaddr.ErrEmpty},
		{"dash", "-", "", ipaddr.ErrEmpty},
		{"undefined", "undefined", "", ipaddr.ErrEmpty},
		{"list", "8.8.8.8, 10.0.0.1", "", ipaddr.ErrMultiple},
		{"list without space", "8.8.8.8,10.0.0.1", "", ipaddr.ErrMultiple},
		{"list with a word", "unknown, 8.8.8.8", "", ipaddr.ErrMultiple},
		{"list, semicolon", "8.8.8.8;2606:4700::1", "", ipaddr.ErrMultiple},
		{"list, bar", "8.8.8.8|8.8.4.4", "", ipaddr.ErrMultiple},
		{"list, space", "8.8.8.8 8.8.4.4", "", ipaddr.ErrMultiple},
		{"one and a comma", "8.8.8.8,", "", ipaddr.ErrInvalid},
		{"words", "not an address", "", ipaddr.ErrInvalid},
		{"host name", "dns.example", "", ipaddr.ErrInvalid},
		{"network", "8.8.8.0/24", "", ipaddr.ErrInvalid},
		{"leading zeros", "008.8.8.8", "", ipaddr.ErrInvalid},
		{"three parts", "8.8.8", "", ipaddr.ErrInvalid},
		{"integer", "134744072", "", ipaddr.ErrInvalid},
		{"no port", "8.8.8.8:", "", ipaddr.ErrInvalid},
		{"port too high", "8.8.8.8:65536", "", ipaddr.ErrInvalid},
		{"port of letters", "8.8.8.8:http", "", ipaddr.ErrInvalid},
		{"port too long", "8.8.8.8:000080", "", ipaddr.ErrInvalid},
		{"IPv4 in brackets", "[8.8.8.8]:80", "", ipaddr.ErrInvalid},
		{"open bracket", "[2606:4700::1", "", ipaddr.ErrInvalid},
		{"text behind bracket", "[2606:4700::1]x", "", ipaddr.ErrInvalid},
		{"zone of IPv4", "8.8.8.8%eth0", "", ipaddr.ErrInvalid},
		{"empty zone", "fe80::1%", "", ipaddr.ErrInvalid},
		{"invalid UTF-8", "8.8.8.8\xff", "", ipaddr.ErrInvalid},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, err := ipaddr.Parse(test.cell)
			got := ""
			if a.IsValid() {
				got = a.String()
			}
			if err != test.err || got != test.want {
				t.Errorf("Parse(%q) = %q, %v, want %q, %v", test.cell, got, err, test.want, test.err)
			}
			if b, err := ipaddr.ParseBytes([]byte(test.cell)); b != a || err != test.err {
				t.Errorf("ParseBytes(%q) = %v, %v, want %v, %v", test.cell, b, err, a, test.err)
			}
		})
	}
}

func TestParseBytesDoesNotAllocate(t *testing.T) {
	for _, cell := range []string{
		"8.8.8.8", "2606:4700:4700::1111", " 8.8.8.8 ", "8.8.8.8:443", "[2606:4700::1]:443", "::ffff:8.8.8.8", "fe80::1%eth0",
		"", "null", "host name",
	} {
		cell := []byte(cell)
		if n := testing.AllocsPerRun(100, func() { _, _ = ipaddr.ParseBytes(cell) }); n != 0 {
			t.Errorf("ParseBytes(%q) allocates %v times, want 0", cell, n)
		}
	}
}

func TestLookupAddr(t *testing.T) {
	tests := []struct {
		name, addr string
		want       string // "" when it is not looked up
	}{
		{"public IPv4", "8.8.8.8", "8.8.8.8"},
		{"public IPv6", "2606:4700:4700::1111", "2606:4700:4700::1111"},
		{"IPv4 in IPv6 notation", "::ffff:8.8.8.8", "8.8.8.8"},
		{"private in IPv6 notation", "::ffff:10.0.0.1", ""},
		{"zone", "2606:4700::1%eth0", "2606:4700::1"},
		{"NAT64 of a public address", "64:ff9b::808:808", "8.8.8.8"},
		{"NAT64 of a private address", "64:ff9b::a00:1", ""},
		{"NAT64 of a shared address", "64:ff9b::100.64.0.1", ""},
		{"NAT64, a network's own", "64:ff9b:1::808:808", ""},
		{"Teredo", "2001:0:4136:e378:8000:63bf:3fff:fdd2", ""},
		{"6to4", "2002:808:808::1", ""},
		{"private", "192.168.1.1", ""},
		{"shared", "100.64.0.1", ""},
		{"documentation", "192.0.2.1", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, ok := ipaddr.LookupAddr(netip.MustParseAddr(test.addr))
			got := ""
			if ok {
				got = a.String()
			}
			if got != test.want {
				t.Errorf("LookupAddr(%s) = %q, want %q", test.addr, got, test.want)
			}
		})
	}
	if a, ok := ipaddr.LookupAddr(netip.Addr{}); ok {
		t.Errorf("LookupAddr of no address = %v, want none", a)
	}
}

func BenchmarkParseBytes(b *testing.B) {
	for _, text := range []string{"203.0.114.250", "2606:4700:4700::1111"} {
		b.Run(text, func(b *testing.B) {
			cell := []byte(text)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ipaddr.ParseBytes(cell); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkClassOf(b *testing.B) {
	for _, text := range []string{"8.8.8.8", "192.1.2.3", "2a00:1450:4001::1", "2001:4860:4860::8888"} {
		b.Run(text, func(b *testing.B) {
			a := netip.MustParseAddr(text)
			for b.Loop() {
				if ipaddr.ClassOf(a) != ipaddr.Public {
					b.Fatal("not public")
				}
			}
		})
	}
}
