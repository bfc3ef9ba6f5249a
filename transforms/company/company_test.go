package company_test

import (
	"testing"

	"github.com/leadetl/leadetl/transforms/company"
)

func TestParseYear(t *testing.T) {
	tests := []struct {
		text string
		want int32 // 0: none
	}{
		{"2004", 2004},
		{" 2004 ", 2004},
		{"2004.0", 2004},
		{"2004.000", 2004},
		{"578", 578},
		{"0578", 578},
		{"9999", 9999},
		{"", 0},
		{"null", 0},
		{"None", 0},
		{"N/A", 0},
		{"-", 0},
		{"0", 0},
		{"0.0", 0},
		{"0099", 0},
		{"20041", 0},
		{"2004.5", 0},
		{"2004.", 0},
		{"-2004", 0},
		{"+2004", 0},
		{"2,004", 0},
		{"2004e0", 0},
		{"since 2004", 0},
		{"２００４", 0},
	}
	for _, test := range tests {
		got, ok := company.ParseYear(test.text)
		if got != test.want || ok != (test.want != 0) {
			t.Errorf("ParseYear(%q) = %d, %v, want %d", test.text, got, ok, test.want)
		}
	}
}

func TestDomain(t *testing.T) {
	tests := []struct {
		text, want string
	}{
		{"acme.example", "acme.example"},
		{"ACME.Example", "acme.example"},
		{" acme.example\u00a0", "acme.example"},
		{"www.acme.example", "acme.example"},
		{"WWW.acme.example.", "acme.example"},
		{"shop.acme.example", "shop.acme.example"},
		{"www.example", "www.example"}, // a label alone is no domain
		{"https://www.acme.example/about?x=1#top", "acme.example"},
		{"http://acme.example:8080/", "acme.example"},
		{"acme.example:443", "acme.example"},
		{"acme.example/path", "acme.example"},
		{"acme.example?x=1", "acme.example"},
		{"//acme.example/path", "acme.example"},
		{"https://user:secret@acme.example/", "acme.example"},
		{"info@acme.example", "acme.example"},
		{"bücher.example", "xn--bcher-kva.example"},
		{"BÜCHER.example", "xn--bcher-kva.example"},
		{"xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"straße.example", "xn--strae-oqa.example"},
		{"acme。example", "acme.example"},
		{"1-800-acme.example", "1-800-acme.example"},
		{"", ""},
		{"null", ""},
		{"N/A", ""},
		{"acme", ""},
		{"acme..example", ""},
		{"acme.example。", "acme.example"},
		{"acme.example..", "acme.example"},
		{"0...", ""},
		{".acme.example", ""},
		{"-acme.example", ""},
		{"acme_inc.example", ""},
		{"acme inc.example", ""},
		{"xn--\u0080.example", ""},
		{"192.0.2.1", ""},
		{"http://192.0.2.1:80/", ""},
		{"[2001:db8::1]:80", ""},
		{"https://", ""},
		{"acme.example\xff", ""},
		{"a123456789012345678901234567890123456789012345678901234567890123.example", ""},
	}
	for _, test := range tests {
		if got := company.Domain(test.text); got != test.want {
			t.Errorf("Domain(%q) = %q, want %q", test.text, got, test.want)
		}
	}
}

func TestNetworkURL(t *testing.T) {
	tests := []struct {
		text, want string
	}{
		{"https://www.network.example/company/acme/", "network.example/company/acme"},
		{"http://network.example/company/acme", "network.example/company/acme"},
		{"network.example/company/acme", "network.example/company/acme"},
		{"//network.example/company/acme", "network.example/company/acme"},
		{"HTTPS://WWW.Network.example/company/Acme", "network.example/company/Acme"},
		{"https://network.example:443/company/acme?trk=1#about", "network.example/company/acme"},
		{"https://user@network.example/company/acme", "network.example/company/acme"},
		{"network.example/company/a@b:c", "network.example/company/a@b:c"},
		{"network.example/go?to=https://other.example", "network.example/go"},
		{"network.example/", "network.example"},
		{"", ""},
		{"N/A", ""},
	}
	for _, test := range tests {
		if got := company.NetworkURL(test.text); got != test.want {
			t.Errorf("NetworkURL(%q) = %q, want %q", test.text, got, test.want)
		}
	}
}
