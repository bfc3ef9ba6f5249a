package rows

import "testing"

func TestMayBeData(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  bool
	}{
		{nil, false},
		{[]string{"id", "email", "Work e-mail", "phone_2", "2024", "ip"}, false},
		{[]string{"hem_sha256", "utm_source", "q4-2025"}, false},
		{[]string{"FirstName", "LAST NAME", "Straße"}, false},
		{[]string{"a", "b"}, false},
		{[]string{"LinkedIn", "Kunde", "workEmail2"}, false},
		{[]string{"md5", "SHA-256", "ipv4", "address2"}, false},
		{[]string{"id", "Kundenname", "E-Mail"}, false},
		{[]string{"Doe", "Jane", "12 Main St"}, true},
		{[]string{"jane-doe-82a505"}, true},
		{[]string{"Doe", "J"}, true},
		{[]string{"Jane", "Day"}, true},
		{[]string{"Jane Street"}, true},
		{[]string{"12 Main Street", "City", "Doe"}, true},
		{[]string{"Doe", "Phone"}, true},
		{[]string{"女", "名"}, true},
		{[]string{"王小明"}, true},
		{[]string{"Müller", "Hans", "Berlin", "id"}, true},
		{[]string{"42", "Berlin"}, true},
		{[]string{"1985-04-12", "F", "90210"}, true},
		{[]string{"1", "ada@x.example"}, true},
		{[]string{"https://network.example/in/ada"}, true},
		{[]string{"network.example/in/ada"}, true},
		{[]string{"192.31.196.5"}, true},
		{[]string{"2001:db8::1"}, true},
		{[]string{"+1 202 555 0100"}, true},
		{[]string{"d41d8cd98f00b204e9800998ecf8427e"}, true},
	} {
		if got := MayBeData(c.names); got != c.want {
			t.Errorf("MayBeData(%q) = %v, want %v", c.names, got, c.want)
		}
	}
}
