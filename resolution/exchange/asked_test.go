package exchange

import (
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
)

// TestCompare: which identifiers in an answer are those of a question.
func TestCompare(t *testing.T) {
	const (
		ada       = "ada@bakery.example"
		another   = "9e26471d35a78862c17e467d87cddedf"
		janeGmail = "jane.doe+news@gmail.com"
	)
	k := NewAsked([]string{"linkedin.com"})
	for _, f := range []struct {
		kind      resolution.Identifier
		key, said string
		want      Naming
	}{
		{"email", ada, "", NamesNone},
		{"email", ada, ada, NamesThis},
		{"email", ada, " ADA@Bakery.example ", NamesThis},
		{"email", ada, "bob@bakery.example", NamesAnother},
		{"email", ada, "ada", NamesNone},
		{"email", ada, "a**@bakery.example", NamesNone},
		{"email", ada, sums(ada)[0], NamesThis},
		{"email", ada, strings.ToUpper(sums(ada)[2]), NamesThis},
		{"email", ada, another, NamesAnother},
		{"email", sums(ada)[0], ada, NamesThis},
		{"email", sums(ada)[0], sums(ada)[2], NamesNone},
		{"email", sums(ada)[0], another, NamesAnother},
		{"email", janeGmail, "janedoe@gmail.com", NamesThis},
		{"email", janeGmail, "janedoe+news@gmail.com", NamesThis},
		{"email", janeGmail, "jane.d.oe@gmail.com", NamesThis},
		{"email", janeGmail, sums("janedoe@gmail.com")[1], NamesThis},
		{"email", janeGmail, "janeroe@gmail.com", NamesAnother},

		{"network_url", "linkedin.com/in/ada", "https://www.linkedin.com/in/Ada/?trk=x", NamesThis},
		{"network_url", "linkedin.com/in/ada", "uk.linkedin.com/in/ada", NamesThis},
		{"network_url", "linkedin.com/in/ada", "linkedin.com/in/bob", NamesAnother},
		{"network_url", "linkedin.com/in/ada", "linkedin.com/company/ada", NamesAnother},
		{"network_url", "linkedin.com/in/ada", "people.example/in/ada", NamesAnother},
		{"network_url", "linkedin.com/in/ada", "ada", NamesNone},
		{"network_url", "linkedin.com/in/ACoAABc", "linkedin.com/in/acoaabc", NamesThis},
		{"network_url", "linkedin.com/in/åse", "linkedin.com/in/%C3%A5se", NamesThis},
		{"network_url", "people.example/ada", "https://PEOPLE.example/Ada", NamesThis},
		{"network_url", "people.example/ada", "https://people.example/bob", NamesAnother},
		{"network_url", "people.example/v?a=1&id=7", "http://people.example/v?id=7&a=1&utm_source=x", NamesThis},
		{"network_url", "people.example/v?a=1&id=7", "people.example/v", NamesThis},
		{"network_url", "people.example/v?a=1&id=7", "people.example/v?id=7", NamesThis},
		{"network_url", "people.example/v?id=7", "people.example/v?id=8", NamesAnother},

		{"ip", "192.0.2.1", "192.0.2.1", NamesThis},
		{"ip", "192.0.2.1", "::ffff:192.0.2.1", NamesThis},
		{"ip", "2001:db8::1", "2001:DB8:0:0::1", NamesThis},
		{"ip", "192.0.2.1", "192.0.2.2", NamesAnother},
		{"ip", "192.0.2.1", "home", NamesNone},
	} {
		q := k.Question(f.kind, f.key, "")
		if got, _ := q.Says(f.said); got != f.want {
			t.Errorf("%s is asked, %q is said: %d, want %d", f.key, f.said, got, f.want)
		}
	}
}

// TestNamesAreBounded: the last names are known, however many there were.
func TestNamesAreBounded(t *testing.T) {
	k := NewAsked(nil)
	k.addName(1, 7)
	for n := range uint64(2 * maxNames) {
		k.addName(n+2, 7)
	}
	if n := len(k.recent) + len(k.older); n > 2*maxNames || k.recent[2*maxNames+1] != 7 || k.older[1] != 0 {
		t.Errorf("%d names", n)
	}
}

// sums are the digests of an address by the plain profile: MD5, SHA-1, SHA-256.
func sums(address string) []string {
	a, err := email.Parse([]byte(address))
	if err != nil {
		panic(err)
	}
	return digests(a)[:3]
}
