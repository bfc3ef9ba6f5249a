package ipaddr_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/transforms/ipaddr"
)

// FuzzParse compares Parse with net/netip on everything net/netip reads, and
// holds it to its promises on the rest.
func FuzzParse(f *testing.F) {
	for _, cell := range []string{
		"8.8.8.8", " 8.8.8.8 ", "8.8.8.8:443", "[2606:4700::1]:443", "[fe80::1%eth0]:80", "fe80::1%eth0", "::ffff:8.8.8.8",
		"8.8.8.8, 10.0.0.1", "null", "2606:4700::1:443", "::", "1.2.3.4.5", "01.2.3.4", "0.0.0.0", "1.2.3.", "1..2.3", "256.1.1.1", "255.255.255.255", "[::1", "::1%",
	} {
		f.Add(cell)
	}
	f.Fuzz(func(t *testing.T, cell string) {
		got, err := ipaddr.Parse(cell)
		if b, berr := ipaddr.ParseBytes([]byte(cell)); b != got || berr != err {
			t.Errorf("ParseBytes(%q) = %v, %v, Parse gives %v, %v", cell, b, berr, got, err)
		}
		want4, err4 := netip.ParseAddr(cell)
		if a, ok := ipaddr.ParseCanonical4([]byte(cell)); ok != (err4 == nil && want4.Is4()) || ok && (a != got || a.String() != cell) {
			t.Errorf("ParseCanonical4(%q) = %v, %v, net/netip reads %v, %v", cell, a, ok, want4, err4)
		}
		if want, werr := netip.ParseAddr(cell); werr == nil && strings.TrimSpace(cell) == cell {
			if want = want.WithZone("").Unmap().WithZone(""); err != nil || got != want {
				t.Errorf("Parse(%q) = %v, %v, net/netip reads %v", cell, got, err, want)
			}
		}
		if want, werr := netip.ParseAddrPort(cell); werr == nil && len(cell)-strings.LastIndexByte(cell, ':') <= len(":65535") {
			if err != nil || got != want.Addr().WithZone("").Unmap() {
				t.Errorf("Parse(%q) = %v, %v, net/netip reads %v", cell, got, err, want)
			}
		}
		if err != nil {
			if got.IsValid() {
				t.Errorf("Parse(%q) = %v with an error", cell, got)
			}
			return
		}
		if got.Zone() != "" || got.Is4In6() {
			t.Errorf("Parse(%q) = %v, want it without zone and unmapped", cell, got)
		}
		for _, again := range []string{got.String(), net.JoinHostPort(got.String(), "80")} {
			if b, err := ipaddr.Parse(again); err != nil || b != got {
				t.Errorf("Parse(%q) = %v, %v, want %v", again, b, err, got)
			}
		}
		if a, ok := ipaddr.LookupAddr(got); ok && ipaddr.ClassOf(a) != ipaddr.Public {
			t.Errorf("LookupAddr(%v) = %v, which is %s", got, a, ipaddr.ClassOf(a))
		}
	})
}
