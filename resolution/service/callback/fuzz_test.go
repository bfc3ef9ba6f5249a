package callback

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/transforms/ipaddr"
)

// FuzzCheck holds Check against net/url, which reads the address for itself:
// whatever is accepted is https to a usual port of a host that is no special
// address in any spelling, and so is what would be dialled.
func FuzzCheck(f *testing.F) {
	for _, c := range hostile {
		f.Add(c.raw)
	}
	for _, raw := range []string{
		"https://hooks.example.com:8443/a?b=c", "https://8.8.8.8/", "https://[2606:4700:4700::1111]:443/", "https://b\u00fccher.example/%41",
	} {
		f.Add(raw)
	}
	policy := &Policy{Resolver: resolverOf(zone{})}
	f.Fuzz(func(t *testing.T, raw string) {
		checked, err := policy.parse(raw) // Check without the names that are not found
		if err != nil {
			return
		}
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatalf("%q is accepted, but no URL: %v", raw, err)
		}
		for _, u := range []*url.URL{u, checked.url} {
			if u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Opaque != "" {
				t.Fatalf("%q is accepted: scheme %q, user %v, fragment %q", raw, u.Scheme, u.User, u.Fragment)
			}
			if p := u.Port(); p != "" && p != "443" && p != "8443" || strings.HasSuffix(u.Host, ":") {
				t.Fatalf("%q is accepted: host and port %q", raw, u.Host)
			}
		}
		if len(raw) > maxURLBytes || strings.ContainsAny(raw, " \t\r\n\\\x00") {
			t.Fatalf("%q is accepted", raw)
		}
		if got := checked.url.Hostname(); got != checked.host || got != strings.ToLower(got) || !ascii(got) {
			t.Fatalf("%q: calls %q, judged %q", raw, got, checked.host)
		}
		if checked.addr.IsValid() {
			checkedAddress(t, raw, checked)
			return
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil {
			t.Fatalf("%q: %v passes for a name", raw, a)
		}
		last := checked.host[strings.LastIndex(checked.host, ".")+1:]
		if strings.Trim(last, "0123456789") == "" || !strings.Contains(checked.host, ".") || last == "localhost" || last == "internal" {
			t.Fatalf("%q: %q passes for a public name", raw, checked.host)
		}
		if again, err := policy.parse(checked.url.String()); err != nil || again.receiver() != checked.receiver() {
			t.Fatalf("%q: %s is called, which is %v, %v", raw, checked.url, again.receiver(), err)
		}
	})
}

// checkedAddress holds a literal address against Check, against ipaddr, and
// against the dialling.
func checkedAddress(t *testing.T, raw string, checked target) {
	policy := new(Policy)
	_, err := policy.Check(t.Context(), raw)
	special := ipaddr.ClassOf(checked.addr) != ipaddr.Public || checked.addr.Is6() && checked.addr.As16()[0]>>5 != 1
	if err == nil && special {
		t.Fatalf("%q is accepted: %v is special", raw, checked.addr)
	}
	network := "tcp4"
	if checked.addr.Is6() {
		network = "tcp6"
	}
	if dialled := policy.judge(network, checked.receiver(), false); (dialled == nil) != (err == nil) {
		t.Fatalf("%q: accepted %v, dialled %v", raw, err, dialled)
	}
}
