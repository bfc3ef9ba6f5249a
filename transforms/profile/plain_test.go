package profile

import "testing"

// The short way reads addresses as Parse does: all of these parts with others.
func TestPlainPersonIsParsed(t *testing.T) {
	schemes := []string{"", "http://", "https://", "HTTPS://", "//", "ftp://", "network://"}
	hosts := []string{
		"network.example", "www.network.example", "WWW.Network.Example", "de.network.example", "www.m.DE.network.example", "m.www.network.example",
		"sub.network.example", "notnetwork.example", "network.example.evil.example", "x.example", "X.example", "www.m.x.example", "www.com", "m.x",
		"localhost", "10.0.0.1", "-a.x.example", "a..example", "x.example.", "x.example:80", "u@network.example", "",
	}
	paths := []string{"/in/", "/IN/", "//in//", "/m/in/", "/in/in/", "/company/", "/pub/", "/"}
	slugs := []string{
		"jane-doe", "Jane-Doe", "jane_doe-1", "ACoAAABc", "ACwAAaB", "acoaaB", "ACxAAABc", "n", "N", "m", "MWlite", "comm", "in", "Pub", "null", "NULL",
		"Undefined-Undefined", "n-a", "Your-Name", "Null-Doe", "-", "_-", "-a", "a-", "me", "https", "HTTP", "www", "a.b", "jané", "J%61ne", "o'neil", "",
	}
	rests := []string{
		"", "/", "//", "/en", "/a", "//A", "/in/x", "/in/x/in/y", "/details/experience/", "/%zz%FF", "/x.example", "?", "?trk=x", "/?b=1&A=2", "#about", "/#/ada", "#id=1",
		"?u=https://x.example/#y", "?x,y.example/z", "?a;b", "?a|b", "? ", " ", ">", "?q=<b>", "?q=\"'\\", "?q=\x00", "?q=é", "&x=y", ".", "!", "/,x.example/y",
	}
	rules := Rules{Hosts: []string{"network.example", "sub.network.example"}}
	plain, combination := 0, 0
	for _, scheme := range schemes {
		for _, host := range hosts {
			for _, path := range paths {
				for _, slug := range slugs {
					for _, rest := range rests {
						if combination++; combination%13 == 0 && comparePerson(t, rules, scheme+host+path+slug+rest) {
							plain++
						}
					}
				}
			}
		}
	}
	if plain < 500 {
		t.Errorf("%d addresses went the short way", plain)
	}
}

// comparePerson compares the short way with Parse. It reports whether the address goes it.
func comparePerson(t *testing.T, rules Rules, s string) bool {
	t.Helper()
	want, wantErr := rules.parsePerson(s)
	if got, err := rules.ParsePerson(s); got != want || err != wantErr {
		t.Fatalf("ParsePerson(%q) = %q, %v; without the short way %q, %v", s, got, err, want, wantErr)
	}
	if got, err := rules.AppendPerson([]byte("A"), s); string(got) != "A"+want || err != wantErr {
		t.Fatalf("AppendPerson(%q) = %q, %v; without the short way %q, %v", s, got, err, want, wantErr)
	}
	_, _, ok := rules.plainPerson(s)
	return ok
}

// Addresses with capitals, queries and countries are common, and cost no memory.
func TestPlainPersonTakesCommonForms(t *testing.T) {
	rules := Rules{Hosts: []string{"network.example"}}
	var to []byte
	for _, s := range []string{
		"https://www.network.example/in/jane-doe", "https://WWW.Network.Example/In/Jane-Doe", "http://de.network.example/in/jane-doe?trk=x&Q=%20", "network.example/in/Jane-Doe/#about",
		"https://www.network.example/in/ACoAAABCdEfGhIjKlMnOpQrStUvWxYz0123456/", "https://uk.network.example/in/jane-doe//details/experience/?a=b#c", "https://x.example/in/Jane-Doe/#y",
	} {
		if _, _, ok := rules.plainPerson(s); !ok {
			t.Errorf("%q goes the long way", s)
		}
		if n := testing.AllocsPerRun(10, func() { to, _ = rules.AppendPerson(to[:0], s) }); n > 0 {
			t.Errorf("%q: %v allocations", s, n)
		}
	}
}
