package rows

import "testing"

func TestAreData(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  bool
	}{
		{nil, false},
		{[]string{"id", "email", "Work e-mail", "phone_2", "2024", "ip"}, false},
		{[]string{"hem_sha256", "utm_source", "q4-2025"}, false},
		{[]string{"1", "ada@x.example"}, true},
		{[]string{"https://network.example/in/ada"}, true},
		{[]string{"network.example/in/ada"}, true},
		{[]string{"192.31.196.5"}, true},
		{[]string{"2001:db8::1"}, true},
		{[]string{"+1 202 555 0100"}, true},
		{[]string{"d41d8cd98f00b204e9800998ecf8427e"}, true},
	} {
		if got := AreData(c.names); got != c.want {
			t.Errorf("AreData(%q) = %v, want %v", c.names, got, c.want)
		}
	}
}
