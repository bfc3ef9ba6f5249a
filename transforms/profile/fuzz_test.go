package profile

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// A key is an address that is its own key, without scheme, fragment or anything
// that cannot be seen to be there.
func FuzzKeyOfKey(f *testing.F) {
	for _, fact := range networkFacts {
		f.Add(fact.in)
	}
	for _, s := range []string{
		"https://x.example/v?b=1&a=2&utm_source=x#y", "x.example?b,y.example/c&a", "x.example/in/a?b=c:%2f%2f&", "linkedin.com/in/https://x.example/?b&a", "linkedin.com/in/www.linkedin.com/in/@a.", "linkedin.com/in/http/x.example/a#b=c", "x.example/in/https/a#b=c",
		"https://www.m.network.example:1/m/In/A%CD%BEda?x#y", "people.example/a%2Cb.example/c%25zz", "x.example/%E2%80%8Ba%E2%80%8D",
		"www.www.m.x.example/J%CC%8C", "a.example/%C2%A0b;c", "K.example/in/%E2%84%AA", "linkedin.com/pub/ACoAA/1/2/3",
		"x.example/in/http:/y", "https://www.x.example/in/ada_b-1/", "http://m.x.example/in/a", "x.1/in/a", "linkedin.com/in/a//", "1.2/in/a-", "a-.b/in/c",
		"linkedin.com.x.example/in/a", "uk.linkedin.com/in/a", "x/in/a", "www.com/in/a", "x.example/in/m", "https://https://x.y/in/a", "x.example/%2e%2e/in/%20", "linkedin.com/%6D/%69n/%41CoAA", "people.example/@Ada",
	} {
		f.Add(s)
	}
	rules := DefaultRules()
	f.Fuzz(func(t *testing.T, s string) {
		u, err := rules.Parse(s)
		person, personErr := rules.ParsePerson(s)
		comparePerson(t, rules, s)
		if err != nil {
			if personErr != err || u != (URL{}) {
				t.Fatalf("Parse(%q) = %v, %v; ParsePerson: %v", s, u, err, personErr)
			}
			return
		}
		if personErr == nil && person != u.Key {
			t.Fatalf("ParsePerson(%q) = %q, want %q", s, person, u.Key)
		}
		if again, err := rules.Parse(u.Key); err != nil || again != u {
			t.Fatalf("Parse(%q) = %q, and of that %q, %v", s, u, again, err)
		}
		address, query, _ := strings.Cut(u.Key, "?")
		if !utf8.ValidString(u.Key) || strings.Contains(address, "//") || strings.ContainsAny(address, "#<>,;|") || strings.ContainsAny(query, "#<>") ||
			strings.ContainsFunc(u.Key, unicode.IsSpace) || strings.ContainsFunc(u.Key, unicode.IsControl) {
			t.Fatalf("Parse(%q) has key %q", s, u.Key)
		}
	})
}

var sink []byte

func BenchmarkParsePerson(b *testing.B) {
	rules := DefaultRules()
	for name, s := range map[string]string{
		"plain": "https://www.linkedin.com/in/jane-doe-82a505", "capitals, query": "https://www.linkedin.com/in/Jane-Doe-82a505/?trk=x",
		"country": "https://de.linkedin.com/in/jane-doe-82a505#about", "encoded": "https://www.linkedin.com/in/jane%2Ddoe-82a505",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sink, _ = rules.AppendPerson(sink[:0], s)
			}
		})
	}
}
