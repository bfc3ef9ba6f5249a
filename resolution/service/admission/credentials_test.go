package admission

import (
	"net/http"
	"net/netip"
	"testing"
)

func TestClientAddress(t *testing.T) {
	g := &Gate{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}
	for _, c := range []struct {
		peer, forwarded string
		want            string
	}{
		{"192.0.2.1:5", "", "192.0.2.1"},
		{"192.0.2.1:5", "198.51.100.7", "192.0.2.1"}, // nobody we trust says so
		{"[::ffff:192.0.2.1]:5", "", "192.0.2.1"},
		{"[fe80::1%eth0]:5", "", "fe80::1"},
		{"10.0.0.1:5", "", "10.0.0.1"},
		{"10.0.0.1:5", "198.51.100.7", "198.51.100.7"},
		{"10.0.0.1:5", "203.0.113.9, 198.51.100.7", "198.51.100.7"}, // the first is what the caller made up
		{"10.0.0.1:5", "198.51.100.7, 10.2.3.4", "198.51.100.7"},
		{"10.0.0.1:5", "198.51.100.7:4711,10.2.3.4", "198.51.100.7"},
		{"10.0.0.1:5", "[2001:db8::1]:80", "2001:db8::1"},
		{"[fd00::1]:5", "2001:db8::1", "2001:db8::1"},
		{"10.0.0.1:5", "10.9.9.9", "10.9.9.9"},
		{"10.0.0.1:5", "198.51.100.7, unknown", "10.0.0.1"},
	} {
		r := &http.Request{RemoteAddr: c.peer, Header: http.Header{}}
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := g.clientAddress(r); got.String() != c.want {
			t.Errorf("peer %s, X-Forwarded-For %q: %s, want %s", c.peer, c.forwarded, got, c.want)
		}
	}
}

func TestAddressKey(t *testing.T) {
	for _, c := range []struct{ address, want string }{
		{"192.0.2.1", "192.0.2.1"},
		{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
		{"2001:db8:1:2:ffff::", "2001:db8:1:2::/64"},
	} {
		if got := addressKey(netip.MustParseAddr(c.address)); got != c.want {
			t.Errorf("%s: %s, want %s", c.address, got, c.want)
		}
	}
}
