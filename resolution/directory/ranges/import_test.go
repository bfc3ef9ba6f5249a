package ranges

import (
	"net/netip"
	"testing"
)

// TestSpecialRanges: a range is refused when one special block holds it, not
// when its ends are special.
func TestSpecialRanges(t *testing.T) {
	for _, f := range []struct{ from, to, class string }{
		{"10.0.0.0", "10.255.255.255", "private"},
		{"10.1.2.3", "10.1.2.3", "private"},
		{"10.1.2.3", "10.1.2.4", "private"},
		{"172.16.0.0", "172.31.255.255", "private"},
		{"240.0.0.0", "255.255.255.255", "reserved"},
		{"2001:db8::1", "2001:db8:ffff::", "documentation"},
		{"10.0.0.0", "172.31.255.255", ""},
		{"172.16.0.0", "192.168.255.255", ""},
		{"0.0.0.0", "255.255.255.255", ""},
		{"::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""},
		{"1000::", "5000::", ""},
		{"9.255.255.255", "10.0.0.0", ""},
	} {
		class, ok := addrRange{from: netip.MustParseAddr(f.from), to: netip.MustParseAddr(f.to)}.special()
		if ok != (f.class != "") || ok && string(class) != f.class {
			t.Errorf("%s to %s: %s, %v; want %s", f.from, f.to, class, ok, f.class)
		}
	}
}

// TestMappedRanges: IPv4 as IPv6 writes it is IPv4, or the line is bad.
func TestMappedRanges(t *testing.T) {
	for _, f := range []struct{ cidr, from, to, want string }{
		{"::ffff:8.8.8.0/120", "", "", "8.8.8.0 8.8.8.255"},
		{"::ffff:8.8.8.8", "", "", "8.8.8.8 8.8.8.8"},
		{"::ffff:0:0/96", "", "", "0.0.0.0 255.255.255.255"},
		{"", "::ffff:8.8.8.0", "::ffff:8.8.8.255", "8.8.8.0 8.8.8.255"},
		{"", "8.8.8.0", "::ffff:8.8.8.255", "8.8.8.0 8.8.8.255"},
		{"::ffff:0:0/95", "", "", "cidr: invalid_range"},
		{"", "::fffe:0:0", "::ffff:8.8.8.8", "range_start, range_end: invalid_range"},
		{"", "::ffff:8.8.8.8", "2001:20:1::1", "range_start, range_end: invalid_range"},
	} {
		r, _, got := new(table).readRange([]string{f.cidr, f.from, f.to, "", "Somebody", ""})
		if got == "" {
			got = r.from.String() + " " + r.to.String()
		}
		if got != f.want {
			t.Errorf("%s%s %s: %s, want %s", f.cidr, f.from, f.to, got, f.want)
		}
	}
}
