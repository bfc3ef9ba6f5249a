package person

import (
	"maps"
	"strings"
	"testing"
)

// TestCanonical: all spellings of a value are one.
func TestCanonical(t *testing.T) {
	for _, f := range []struct{ name, text, want string }{
		{"first_name", " ADA ", "ada"},
		{"first_name", "Anna  Maria\u00a0B.", "anna maria b."},
		{"last_name", "Mu\u0308ller", "m\u00fcller"},
		{"last_name", "M\u00dcLLER\u200b", "m\u00fcller"},
		{"last_name", "'Example", "example"},
		{"last_name", "O'Neil", "o'neil"},
		{"full_name", "n/a", ""},
		{"full_name", "a\xffb", ""},
		{"company_name", "Bakery  & Sons", "bakery & sons"},
		{"company_domain", "https://www.Example.com/", "example.com"},
		{"company_domain", "B\u00fccher.example", "xn--bcher-kva.example"},
		{"company_domain", "XN--BCHER-KVA.example", "xn--bcher-kva.example"},
		{"company_domain", "Bakery", ""},
		{"company_domain", "", ""},
		{"email", " Ada@X.example", "ada@x.example"},
		{"email", "Ada", ""},
	} {
		got := Canonical(f.name, f.text)
		if got != f.want || Canonical(f.name, got) != got {
			t.Errorf("%s %q: %q, want %q", f.name, f.text, got, f.want)
		}
	}
}

// TestForms: who is named in another way is the same.
func TestForms(t *testing.T) {
	const byDomain, byName = `{"company_domain":"x.example","full_name":"ada example"}`, `{"company_name":"x","full_name":"ada example"}`
	for _, f := range []struct{ key, want string }{
		{`{"first_name":"ada","last_name":"example","company_domain":"x.example"}`, byDomain},
		{`{"full_name":"ada example","company_domain":"x.example","company_name":"x"}`, byDomain + byName},
		{`{"full_name":"ada example"}`, ""},
		{`{"last_name":"example","company_name":"x"}`, ""},
		{`{}`, ""},
		{"ada@x.example", ""},
	} {
		if got := strings.Join(Forms(Values(f.key)), ""); got != f.want {
			t.Errorf("%s: %s, want %s", f.key, got, f.want)
		}
	}
}

// TestKey: a key has the values that are there, in one order, and gives them back.
func TestKey(t *testing.T) {
	values := map[string]string{"last_name": "o\"neil", "first_name": "ada", "full_name": ""}
	key := Key(values)
	if want := `{"first_name":"ada","last_name":"o\"neil"}`; key != want || !IsKey(key) {
		t.Errorf("%s, want %s", key, want)
	}
	delete(values, "full_name")
	if got := Values(key); !maps.Equal(got, values) {
		t.Errorf("%v, want %v", got, values)
	}
	for _, key := range []string{"", "a@x.example", "{", "[]"} {
		if got := Values(key); got != nil {
			t.Errorf("%q has %v", key, got)
		}
	}
}
