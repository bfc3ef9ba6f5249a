package ipaddr

import (
	"strings"
	"testing"
)

// Cells as proxies write them, and which address of several is the first public one.
func TestForwarded(t *testing.T) {
	for _, f := range []struct{ cell, want string }{
		{"1.2.3.4", "1.2.3.4"},
		{"1.2.3.4:443", "1.2.3.4"},
		{"[2001:db8::1]:443", "2001:db8::1"},
		{"1.2.3.4,", "1.2.3.4"},
		{", 1.2.3.4 ;", "1.2.3.4"},
		{"for=1.2.3.4", "1.2.3.4"},
		{"For=1.2.3.4;proto=https;by=5.6.7.8", "1.2.3.4"},
		{`proto=http; for="[2001:db8::1]:4711"`, "2001:db8::1"},
		{"for=1.2.3.4:80", "1.2.3.4"},
		{"by=5.6.7.8", "invalid_ip"},
		{"for=unknown", "invalid_ip"},
		{`for="", for=1.2.3.4`, "1.2.3.4"},
		{"for=", "invalid_ip"},
		{"for=_hidden", "invalid_ip"},
		{"1.2.3.4 and", "invalid_ip"},
		{",", "invalid_ip"},
		{"-", "empty"},
		{"10.0.0.1, 8.8.8.8, 9.9.9.9", "multiple: 10.0.0.1 + 8.8.8.8 + 9.9.9.9; first public 8.8.8.8"},
		{"10.0.0.1 8.8.8.8", "multiple: 10.0.0.1 + 8.8.8.8; first public 8.8.8.8"},
		{"unknown, 8.8.8.8", "multiple: invalid_ip + 8.8.8.8; first public 8.8.8.8"},
		{"unknown, 10.0.0.1", "multiple: invalid_ip + 10.0.0.1; first public 10.0.0.1"},
		{"unknown; _x", "multiple: invalid_ip + invalid_ip; first public invalid_ip"},
		{`for=192.168.0.1, for="[2606:4700::1]:80";proto=http`, "multiple: 192.168.0.1 + 2606:4700::1; first public 2606:4700::1"},
		{"for=8.8.8.8, 9.9.9.9", "multiple: 8.8.8.8 + 9.9.9.9; first public 8.8.8.8"},
	} {
		got := read(f.cell)
		if all := Split(f.cell); all != nil {
			var words []string
			for _, entry := range all {
				words = append(words, read(entry))
			}
			got += ": " + strings.Join(words, " + ") + "; first public " + read(FirstPublic(all))
		}
		if got != f.want {
			t.Errorf("%q: %s, want %s", f.cell, got, f.want)
		}
	}
}

func read(cell string) string {
	a, err := Read(cell)
	if err != nil {
		return err.Error()
	}
	return a.String()
}
