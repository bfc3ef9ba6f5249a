package suppression

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/profile"
)

var rules = Rules{Region: "US", Profiles: profile.DefaultRules()}

func listed(t testing.TB, cells ...string) *Set {
	t.Helper()
	b := NewBuilder(rules)
	for _, c := range cells {
		if err := b.Add(c); err != nil {
			t.Fatalf("Add(%q): %v", c, err)
		}
	}
	return b.Set()
}

// spellings are all ways in which a list may have the digests of a form.
func spellings(form string) map[string]string {
	m, s, l := md5.Sum([]byte(form)), sha1.Sum([]byte(form)), sha256.Sum256([]byte(form))
	all := map[string]string{
		"md5 hex": hex.EncodeToString(m[:]), "sha1 hex": hex.EncodeToString(s[:]), "sha256 hex": hex.EncodeToString(l[:]),
		"sha256 base64":                   base64.StdEncoding.EncodeToString(l[:]),
		"sha256 base64 without padding":   base64.RawStdEncoding.EncodeToString(l[:]),
		"sha256 base64url":                base64.URLEncoding.EncodeToString(l[:]),
		"sha256 base64url, not padded":    base64.RawURLEncoding.EncodeToString(l[:]),
		"sha256 hex among invisible ones": "\ufeff " + hex.EncodeToString(l[:]) + "\u200b\r",
	}
	for _, name := range []string{"md5 hex", "sha1 hex", "sha256 hex"} {
		all[name+" in capitals"] = strings.ToUpper(all[name])
	}
	return all
}

// TestEverySpellingOfEveryProfile: whichever digest of whichever form of an
// address is listed, in whichever spelling, its row is found.
func TestEverySpellingOfEveryProfile(t *testing.T) {
	for _, f := range []struct{ row, profile, form string }{
		{" Jane.Doe+News@Gmail.com ", "plain", "jane.doe+news@gmail.com"},
		{" Jane.Doe+News@Gmail.com ", "uid2", "janedoe@gmail.com"},
		{" Jane.Doe+News@Gmail.com ", "google until 2026-08", "janedoe+news@gmail.com"},
		{"Jane.Doe+News@GoogleMail.com", "plain and uid2", "jane.doe+news@googlemail.com"},
		{"Jane.Doe+News@GoogleMail.com", "google", "janedoe@googlemail.com"},
		{"Jane.Doe+News@GoogleMail.com", "google until 2026-08", "janedoe+news@googlemail.com"},
		{".Jane..Doe@docomo.ne.jp", "all, dots that RFC 5321 forbids", ".jane..doe@docomo.ne.jp"},
		{"Jane.Doe@Example.com", "all", "jane.doe@example.com"},
		{"JÖRG@Example.com", "plain and google", "jörg@example.com"},
		{"JÖRG@Example.com", "uid2", "jÖrg@example.com"},
		{`"A.B"@gmail.com`, "all, quoted", `"a.b"@gmail.com`},
	} {
		for name, cell := range spellings(f.form) {
			s := listed(t, cell)
			if !inColumn(t, s.Finder(), f.row) || !s.Finder().Lists(Email, f.row) {
				t.Errorf("%s, the form of %s as %s: not found", f.row, f.profile, name)
			}
			if inColumn(t, s.Finder(), "other@example.com") || s.Finder().Lists(Email, "other@example.com") {
				t.Errorf("another is found beside %s, %s", f.form, name)
			}
		}
	}
}

// inColumn asks as a run does.
func inColumn(t testing.TB, f *Finder, cells ...string) bool {
	t.Helper()
	var addresses []email.Address
	var keys []byte
	offsets := []int32{0}
	for _, cell := range append([]string{"stranger@example.org", "not an address"}, cells...) {
		a, err := email.Parse([]byte(cell))
		if err == nil {
			keys = a.AppendKey(keys)
		}
		addresses, offsets = append(addresses, a), append(offsets, int32(len(keys)))
	}
	hits := f.Emails(addresses, keys, offsets)
	if hits[0] || hits[1] {
		t.Error("a neighbour is found")
	}
	for _, hit := range hits[2:] {
		if hit {
			return true
		}
	}
	return false
}

func TestPlainIdentifiers(t *testing.T) {
	sum := func(text string) string { s := sha256.Sum256([]byte(text)); return hex.EncodeToString(s[:]) }
	md := func(text string) string { s := md5.Sum([]byte(text)); return hex.EncodeToString(s[:]) }
	sh := func(text string) string { s := sha1.Sum([]byte(text)); return hex.EncodeToString(s[:]) }
	for _, f := range []struct {
		list string
		kind Kind
		row  string
		want bool
	}{
		{"Jane.Doe@gmail.com", Email, "jane.doe@gmail.com", true},
		{"Jane.Doe@gmail.com", Email, "j.anedoe@gmail.com", true}, // the same mailbox, by uid2
		{"Jane.Doe@gmail.com", Email, "jane.doe@example.com", false},
		{"Jane@Example.com", Email, md("jane@example.com"), true}, // a row that is a digest
		{"Jane@Example.com", Email, sh("jane@example.com"), true},
		{"Jane@Example.com", Email, sum("jane@example.com"), true},
		{"jane.doe@gmail.com", Email, md("janedoe@gmail.com"), true},
		{"Jane.Doe+News@gmail.com", Email, sum("janedoe+news@gmail.com"), true}, // by google until 2026-08
		{"Jane.Doe+News@googlemail.com", Email, "jane.doe+other@googlemail.com", true},
		{sum("jane@example.com"), Email, sum("jane@example.com"), true},
		{sum("jane@example.com"), Email, md("jane@example.com"), false}, // both may be

		// White space inside an address: its digest is of the address without.
		{sum("janedoe@x.example"), Email, "Jane Doe@x.example", true},
		{sum("janedoe@x.example"), Email, "jane.doe @ x.example", false},
		{sum("jane@x.example"), Email, "jane@x. example", true},
		{sum("jane@x.example"), Email, "jane\u00a0@\tx.example\u200b", true},
		{sum("jane@x.example"), Email, "'jane @x.example", true},
		{sum("jane@x.example"), Email, "Jane Doe <jane @x.example>", true},
		{sum("jane@x.example"), Email, "joe@y.example; jane @x.example", true},
		{"j.ane@gmail.com", Email, "jane @gmail.com", true},
		{"@x.example", Email, "jane @x.example", true},
		{sum("jane@@x.example"), Email, "Jane @@x.example", true}, // no address, and hashed all the same
		{sum(`"janedoe"@x.example`), Email, `"jane doe"@x.example`, true},
		{sum("janedoe@x.example"), Email, "jane doe at x.example", false},

		{"(415) 555-9317", Phone, "+14155559317", true},
		{"+1 415 555 9317", Phone, "415-555-9317", true},
		{"+84 90 123 4567", Phone, "+14901234567", false},
		{"(415) 555-9317", Phone, sum("+14155559317"), true},
		{"+1 415 555 9317", Phone, strings.ToUpper(sum("14155559317")), true},
		{"+1 415 555 9317", Phone, sum("4155559317"), false}, // no dataset has these
		{sum("14155559317"), Phone, sum("14155559317"), true},
		{sum("14155559317"), Phone, sum("+14155559317"), false},
		{"+52 1 55 1234 5678", Phone, sum("5215512345678"), true},
		{"+52 1 55 1234 5678", Phone, sum("525512345678"), true},
		{"+47 55 12 34 56", Phone, "+1 475 512 3456", false}, // their last ten digits are all of those
		{sum("4155559317"), Phone, "+1 415 555 9317", true},
		{sum("14155559317"), Phone, "+1 415 555 9317", true},
		{md("+14155559317"), Phone, "+1 415 555 9317", true},
		// Both forms of a number that was written with what is no longer dialled.
		{"+52 55 1234 5678", Phone, "+52 1 55 1234 5678", true},
		{"+52 1 55 1234 5678", Phone, "+525512345678", true},
		{sum("+5215512345678"), Phone, "+525512345678", true},
		{sum("5215512345678"), Phone, "+52 1 55 1234 5678", true},
		{md("+525512345678"), Phone, "+52 1 55 1234 5678", true},
		{sum("551511987654321"), Phone, "+55 15 11 98765 4321", true},
		{sum("5511987654321"), Phone, "+55 15 11 98765 4321", true},
		{"+55 15 11 98765 4321", Phone, "+5511987654321", true},
		{sum("551511987654321"), Phone, "+5511987654321", false}, // a digest does not say which carrier's code it has
		{"+54 9 11 3456 7890", Phone, "+54 11 3456 7890", false},
		// California DROP, the digests it publishes.
		{"vGM7y5n+hBXRSEAklhHDPCbysyNgYTmXdMcagGUOY8E=", Phone, "+1(415)555-9317", true},
		{"ptzVkgbv9DonwvPCHmXmJ2SEOaolSh37z3ZzY/Gmm+U=", Phone, "+84(90)123 4567", true},
		{"vGM7y5n-hBXRSEAklhHDPCbysyNgYTmXdMcagGUOY8E", Phone, "4155559317", true},

		{"https://www.LinkedIn.com/in/Jane-Doe/?x=1", NetworkURL, "linkedin.com/in/jane-doe", true},
		{"linkedin.com/in/jane-doe", NetworkURL, "linkedin.com/in/jane", false},
		{sum("linkedin.com/in/jane-doe"), NetworkURL, "https://linkedin.com/in/jane-doe", true},
		{md("network.example/in/ada"), NetworkURL, "network.example/in/ada", true},
		{"https://network.example/in/ada?x=1", NetworkURL, "network.example/in/ada", true},
		{"https://network.example/in/ada?x=1", NetworkURL, "network.example/in/ada?y=2", true},
		{sum("network.example/in/ada"), NetworkURL, "network.example/in/ada?y=2", true}, // its key before
		{"https://www.facebook.com/profile.php?id=1", NetworkURL, "https://m.facebook.com/profile.php?id=1&ref=x", true},
		{"https://www.facebook.com/profile.php?id=1", NetworkURL, "https://www.facebook.com/profile.php?id=2", false},
		{sum("facebook.com/profile.php?id=1"), NetworkURL, "https://www.facebook.com/profile.php?id=1", true},

		{"192.0.2.7", IP, "192.0.2.7:443", true},
		{`{"first_name":"Ada","last_name":"EXAMPLE","company_domain":"www.x.example"}`, NetworkURL, `{"company_domain":"x.example","full_name":"ada example"}`, true},
		{`{"full_name":"Ada Example","company_domain":"x.example"}`, NetworkURL, `{"company_domain":"x.example","company_name":"x","first_name":"ada","last_name":"example"}`, true},
		{`{"full_name":"Ada Example","company_domain":"x.example"}`, NetworkURL, `{"company_domain":"y.example","full_name":"ada example"}`, false},
		{sum(`{"first_name":"ada"}`), NetworkURL, `{"first_name":"ada"}`, true},
		{"ada@x.example", NetworkURL, `{"email":"ada@x.example"}`, true},
		// Marks of spreadsheets, in a list and in a row.
		{"'jane@example.com", Email, "jane@example.com", true},
		{`="jane@example.com"`, Email, "'jane@example.com", true},
		{"'" + sum("jane@example.com"), Email, "jane@example.com", true},
		{sum("jane@example.com"), Email, "'" + sum("jane@example.com"), true},
		{"'@acme.example", Email, "jane@acme.example", true},
		{"'+14155559317", Phone, `="+14155559317"`, true},
		{"'linkedin.com/in/jane-doe", NetworkURL, "'linkedin.com/in/jane-doe", true},
		{"'192.0.2.7", IP, `="192.0.2.7"`, true},
		{"8.8.8.8", IP, "::ffff:8.8.8.8", true},
		{"8.8.8.8", IP, "64:ff9b::808:808", true}, // NAT64
		{"2001:db8::1", IP, "2001:0db8:0::1", true},
		{sum("8.8.8.8"), IP, "8.8.8.8", true},
		{"8.8.8.8", IP, "8.8.8.9", false},
	} {
		if got := listed(t, f.list).Finder().Lists(f.kind, f.row); got != f.want {
			t.Errorf("list %s, %s %s: %v, want %v", f.list, f.kind, f.row, got, f.want)
		}
	}
}

func TestAddRefuses(t *testing.T) {
	for _, f := range []struct {
		cell string
		want error
	}{
		{"[]", ErrEmpty}, {`[null, "", "n/a"]`, ErrEmpty}, {`["jane"]`, ErrUnreadable},
		{"", ErrEmpty}, {"  ", ErrEmpty}, {"NULL", ErrEmpty}, {"n/a", ErrEmpty},
		{"d41d8cd98f00b204e9800998ecf8427e", ErrEmpty}, // md5 of nothing
		{"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", ErrEmpty},
		{"74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b", ErrEmpty}, // sha256 of null
		{"6ADF97F83ACF6453D4A6A4B1070F3754", ErrEmpty},                                 // md5 of None
		{"AbpHGcgLb-kRsJGnwFEktk7uzpZOCcBY74-YBdrKVGs", ErrEmpty},                      // sha256 of a newline
		{strings.Repeat("0", 64), ErrEmpty}, {strings.Repeat("F", 40), ErrEmpty}, {strings.Repeat("A", 43) + "=", ErrEmpty},
		{"https://www.linkedin.com/in/undefined", ErrEmpty}, {"https://x.example/v?id=null", ErrEmpty},
		{"email", ErrUnreadable}, {"Hash", ErrUnreadable}, {"jane", ErrUnreadable},
		{"jane@", ErrUnreadable}, {"Jane <jane>", ErrUnreadable}, {"joe@y.example <jane@x.example>", ErrUnreadable},
		{"d41d8cd98f00b204e9800998ecf8427", ErrUnreadable}, // 31 digits
		{strings.Repeat("g", 64), ErrUnreadable},
		{strings.Repeat("A", 42) + "B", ErrUnreadable}, // base64 with bits left over
		{strings.Repeat("A", 43) + "A", ErrUnreadable},
		{"https://linkedin.com/company/acme", ErrUnreadable}, {`{"first_name":"ada","company_domain":"x.example"}`, ErrUnreadable}, {"{}", ErrUnreadable}, {"linkedin.com", ErrUnreadable},
		{`for=;for=""`, ErrUnreadable}, {"123", ErrUnreadable}, {"6.50555E+09", ErrUnreadable},
		{"jane\xff@example.com", ErrUnreadable},
	} {
		b := NewBuilder(rules)
		if err := b.Add(f.cell); !errors.Is(err, f.want) {
			t.Errorf("Add(%q) = %v, want %v", f.cell, err, f.want)
		}
		if s := b.Set(); s.Len() != 0 {
			t.Errorf("Add(%q) failed and left %d entries", f.cell, s.Len())
		}
	}
}

// TestCellsOfLists: a cell of a list is read as that of a row is, and all its values are
// listed. What cannot be read among them is told.
func TestCellsOfLists(t *testing.T) {
	for _, f := range []struct {
		cell    string
		entries int64
		err     error
		kind    Kind
		found   []string
	}{
		{"Doe, Jane <jane@x.example>", 1, nil, Email, []string{"jane@x.example", "joe@y.example; JANE@x.example"}},
		{"mailto:jane@x.example, joe@y.example", 2, nil, Email, []string{"jane@x.example", "<joe@y.example>"}},
		{"jane@x.example; tel; joe@y.example", 2, ErrUnreadable, Email, []string{"jane@x.example", "joe@y.example"}},
		{"for=8.8.8.8, for=\"[2001:db8::1]:80\"", 2, nil, IP, []string{"8.8.8.8:443", "10.0.0.1, 2001:db8::1"}},
		{`["jane@x.example",null,"5f0c9e6bd0d2b3fa1e0bd9d8a0d1d0c2"]`, 2, nil, Email, []string{"jane@x.example", `["joe@y.example","JANE@x.example"]`, "5F0C9E6BD0D2B3FA1E0BD9D8A0D1D0C2"}},
		{`["415-555-9317"]`, 1, nil, Phone, []string{"+1 415 555 9317"}},
		{"linkedin.com/in/jane linkedin.com/in/joe", 2, nil, NetworkURL, []string{"https://linkedin.com/in/joe", "x.example/a, linkedin.com/in/jane"}},
	} {
		b := NewBuilder(rules)
		if err := b.Add(f.cell); err != f.err {
			t.Errorf("Add(%q) = %v, want %v", f.cell, err, f.err)
		}
		s := b.Set()
		if s.Entries() != f.entries {
			t.Errorf("%q: %d entries, want %d", f.cell, s.Entries(), f.entries)
		}
		for _, text := range f.found {
			if !s.Finder().Lists(f.kind, text) {
				t.Errorf("%q: %q is not found", f.cell, text)
			}
		}
		if s.Finder().Lists(f.kind, "8.8.4.4") || s.Finder().Lists(f.kind, "ann@x.example, bob@x.example") {
			t.Errorf("%q: somebody else is found", f.cell)
		}
	}
}

// TestDomains: an entry of a domain is all plain addresses there, and nobody else.
func TestDomains(t *testing.T) {
	s := listed(t, " @Acme.Example ", "jane@x.example")
	if s.Entries() != 2 || s.Fingerprint() == listed(t, "jane@x.example").Fingerprint() {
		t.Errorf("%d entries, or the fingerprint of others", s.Entries())
	}
	for cell, want := range map[string]bool{
		"joe@acme.example": true, "JOE+x@ACME.example.": true, "Joe <joe@acme.example>": true, "ann@y.example, joe@acme.example": true, `"a@b"@acme.example`: true,
		"joe@mail.acme.example": false, "joe@acme.example.org": false, "joe@notacme.example": false, "jane@x.example": true, "joe@x.example": false,
		spellings("joe@acme.example")["sha256 hex"]: false,
	} {
		f := s.RememberingFinder()
		if got := f.Lists(Email, cell); got != want || len(f.Found()) > 0 != want {
			t.Errorf("%s: listed %v, %d remembered, want %v", cell, got, len(f.Found()), want)
		}
		if got := s.Finder().Names(cell); got != want {
			t.Errorf("%s is named: %v", cell, got)
		}
	}
	if s.Fingerprint() != listed(t, "*@acme.example", "jane@x.example").Fingerprint() {
		t.Error("with * before it, a domain is another entry")
	}
	for _, cell := range []string{"@", "*@", "*", "@acme", "@acme..example", "@acme.example@x.example", "@a b.example"} {
		if err := NewBuilder(rules).Add(cell); err != ErrUnreadable {
			t.Errorf("Add(%q) = %v", cell, err)
		}
	}
}

func TestFingerprint(t *testing.T) {
	a, b := "jane@example.com", "+14155559317"
	same := listed(t, a, b).Fingerprint()
	if got := listed(t, b, a, strings.ToUpper(a), b).Fingerprint(); got != same {
		t.Error("order and duplicates change the fingerprint")
	}
	if got := listed(t, a).Fingerprint(); got == same {
		t.Error("another list has the same fingerprint")
	}
	// The same 64 bits of two algorithms are two lists.
	if listed(t, strings.Repeat("ab", 16)).Fingerprint() == listed(t, strings.Repeat("ab", 20)).Fingerprint() {
		t.Error("md5 and sha1 have the same fingerprint")
	}
}

// TestRemembered: every entry that a row matches is remembered, and no other.
func TestRemembered(t *testing.T) {
	all := spellings("jane@example.com")
	other := spellings("joe@example.com")["sha256 base64"]
	s := listed(t, all["md5 hex"], all["sha256 base64"], other)
	f := s.RememberingFinder()
	if !inColumn(t, f, "jane@example.com") {
		t.Fatal("not found")
	}
	again, err := DecodeFound(f.Found().Encode())
	if err != nil || !reflect.DeepEqual(again, f.Found()) {
		t.Fatalf("decoded %v, %v; want %v", again, err, f.Found())
	}
	for text, want := range map[string]bool{all["md5 hex"]: true, all["sha256 hex"]: true, all["sha256 base64url"]: true, all["sha1 hex"]: false, other: false} {
		if found, ok := again.Digest(text); !ok || found != want {
			t.Errorf("Digest(%s) = %v, %v; want %v", text, found, ok, want)
		}
	}
	if _, ok := again.Digest("jane@example.com"); ok {
		t.Error("an address is taken for a digest")
	}
	for _, damaged := range []string{"x", strings.Repeat("\xff", 9), strings.Repeat("\x00", 10)} {
		if _, err := DecodeFound([]byte(damaged)); err == nil {
			t.Errorf("%q is decoded", damaged)
		}
	}
}

// TestColumnIsRowByRow compares the two ways to look an address up, over lists
// of every mix.
func TestColumnIsRowByRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		pick := func(of ...string) string { return of[random.IntN(len(of))] }
		address := func() string {
			return pick("jane", "j.ane", "jane+x", "JÖ", "joe.d", "+x") + pick("@gmail.com", "@Example.com", "@googlemail.com", "@gmailx.com", "@xmail.com")
		}
		cell := func() string {
			a, err := email.Parse([]byte(address()))
			if err != nil {
				t.Fatal(err)
			}
			if random.IntN(3) == 0 {
				return address()
			}
			all := forms(a)
			of := spellings(string(all[random.IntN(len(all))]))
			return of[pick("md5 hex", "sha1 hex", "sha256 hex", "sha256 base64")]
		}
		b := NewBuilder(rules)
		if random.IntN(4) == 0 {
			b.Add(pick("@gmail.com", "@EXAMPLE.com"))
		}
		for range random.IntN(8) {
			if err := b.Add(cell()); err != nil {
				t.Fatal(err)
			}
		}
		f := b.Set().Finder()
		var addresses []email.Address
		var keys []byte
		cells, offsets := []string{}, []int32{0}
		for range random.IntN(200) {
			c := pick(cell(), address(), "none")
			a, err := email.Parse([]byte(c))
			if err == nil {
				keys = a.AppendKey(keys)
			}
			cells, addresses, offsets = append(cells, c), append(addresses, a), append(offsets, int32(len(keys)))
		}
		for i, hit := range f.Emails(addresses, keys, offsets) {
			if want := f.Lists(Email, cells[i]); hit != want {
				t.Fatalf("%s: the column says %v, the row %v", cells[i], hit, want)
			}
		}
	})
}

func TestAddressOfAnIP(t *testing.T) {
	f := listed(t, "8.8.8.8").Finder()
	if !f.Address(netip.MustParseAddr("64:ff9b::808:808")) || f.Address(netip.MustParseAddr("64:ff9b::808:809")) {
		t.Error("NAT64 is not looked up by the address inside")
	}
}

// FuzzAdd: a cell that is taken is found again by what was in it, whatever it
// was taken for.
func FuzzAdd(f *testing.F) {
	for _, cell := range []string{"jane@example.com", "+1 415 555 9317", "linkedin.com/in/x", "1.2.3.4", "::1", strings.Repeat("0", 64), "1-800-FLOWERS", "a/b@c.de"} {
		f.Add(cell)
	}
	f.Fuzz(func(t *testing.T, cell string) {
		b := NewBuilder(rules)
		if b.Add(cell) != nil {
			return
		}
		find := b.Set().Finder()
		for _, k := range []Kind{Email, Phone, NetworkURL, IP} {
			if find.Lists(k, strings.TrimFunc(cell, isSurrounding)) {
				return
			}
		}
		t.Errorf("%q was taken for something, and is not found", cell)
	})
}

func ExampleFinder_Lists() {
	b := NewBuilder(Rules{Region: "US"})
	b.Add("vGM7y5n+hBXRSEAklhHDPCbysyNgYTmXdMcagGUOY8E=")
	fmt.Println(b.Set().Finder().Lists(Phone, "(415) 555-9317"))
	// Output: true
}
