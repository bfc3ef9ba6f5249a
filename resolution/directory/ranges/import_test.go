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
