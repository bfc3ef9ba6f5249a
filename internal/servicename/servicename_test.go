package servicename

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func TestSpelledAlike(t *testing.T) {
	for _, f := range []struct {
		a, b string
		want bool
	}{
		{"http://127.0.0.1:8080", "http://localhost:8080", true},
		{"http://127.0.0.1:8080", "http://[::1]:8080", true},
		{"http://127.0.0.1:8080", "http://127.8.9.1:8080", true},
		{"http://127.0.0.1:8080", "http://[::ffff:127.0.0.1]:8080", true},
		{"http://0.0.0.0:8080", "http://api.localhost.:8080", true},
		{"http://leads.example", "https://leads.example", true},
		{"http://leads.example:80", "https://leads.example:443", true},
		{"http://leads.example:8080", "https://leads.example:8080", true},
		{"https://leads.example", "https://Leads.EXAMPLE.", true},
		{"https://leads.example/v1", "HTTPS://leads.example/V1//", true},
		{"https://leads.example", "leads.example", true},
		{"https://bücher.example", "https://xn--bcher-kva.example", true},
		{"http://[2001:DB8::0:1]", "http://[2001:db8::1]", true},

		{"http://127.0.0.1:8080", "http://127.0.0.1:8081", false},
		{"http://127.0.0.1:8080", "http://10.0.0.1:8080", false},
		{"https://leads.example", "https://leads.example:8443", false},
		{"https://leads.example/v1", "https://leads.example/v2", false},
		{"https://leads.example", "https://eu.leads.example", false},
		{"https://leads.example", "leads", false},
		{"leads", "other", false},
		{"%", "%", false}, // no address: only an equal name is the same
	} {
		if got := spelledAlike(f.a, f.b); got != f.want || spelledAlike(f.b, f.a) != f.want {
			t.Errorf("%s and %s are alike: %v, want %v", f.a, f.b, got, f.want)
		}
	}
}

func TestResolveAlike(t *testing.T) {
	table := map[string]string{
		"old.example": "192.0.2.1 2001:db8::1", "new.example": "192.0.2.9 2001:db8::1", "own.example": "127.0.0.1", "far.example": "198.51.100.1",
	}
	was := lookUp
	t.Cleanup(func() { lookUp = was })
	lookUp = func(_ context.Context, _, host string) (all []netip.Addr, err error) {
		for text := range strings.FieldsSeq(table[host]) {
			all = append(all, netip.MustParseAddr(text))
		}
		if all == nil {
			err = errors.New("no such host")
		}
		return all, err
	}
	for _, f := range []struct {
		a, b string
		want bool
	}{
		{"http://old.example", "https://new.example/", true},
		{"http://old.example:9000/v1", "https://new.example:9000/V1", true},
		{"http://old.example", "http://192.0.2.1", true},
		{"http://127.0.0.1:8080", "http://own.example:8080", true},
		{"http://localhost:8080", "http://own.example:8080", true},
		{"http://old.example", "http://far.example", false},
		{"http://old.example:9000", "http://new.example:9001", false},
		{"http://old.example/v1", "http://new.example/v2", false},
		{"http://gone.example", "http://lost.example", false},
		{"http://old.example", "leads", false},
	} {
		if got := Alike(t.Context(), f.a, f.b); got != f.want || Alike(t.Context(), f.b, f.a) != f.want {
			t.Errorf("%s and %s are alike: %v, want %v", f.a, f.b, got, f.want)
		}
	}
}
