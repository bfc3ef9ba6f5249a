package fiction

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/transforms/phone"
)

// TestForms: what is made has the form of what was there, and nothing of it.
func TestForms(t *testing.T) {
	for _, f := range []struct{ text, form string }{
		{"Mira Halden", `^[A-Z][a-z]{3} [A-Z][a-z]{5}$`},
		{"MIRA", `^[A-Z]{4}$`},
		{"O'Neil-Smith, 12 Quay St.", `^[A-Z]'[A-Z][a-z]{3}-[A-Z][a-z]{4}, [0-9]{2} [A-Z][a-z]{3} [A-Z][a-z]\.$`},
		{"04101", `^0[0-9]{4}$`},
		{"mira.halden+news@mail.northwind.co.uk", `^[a-z]{4}\.[a-z]{6}\+[a-z]{4}@[a-z]{4}\.[a-z]{9}\.example$`},
		{"MIRA@NORTHWIND.COM", `^[A-Z]{4}@[A-Z]{9}\.EXAMPLE$`},
		{"mira%40northwind.com", `^[a-z]{4}%40[a-z]{9}\.example$`},
		{"a%2520b", `^[a-z]%2520[a-z]$`},
		{"https://www.northwind.com/team/mira?id=42", `^https://www\.[a-z]{9}\.example/[a-z]{4}/[a-z]{4}\?[a-z]{2}=[0-9]{2}$`},
		{"https://de.linkedin.com/in/mira-halden-4b1", `^https://de\.linkedin\.com/in/[a-z]{4}-[a-z]{6}-[0-9][a-z][0-9]$`},
		{"linkedin.com/company/northwind-tools", `^linkedin\.com/company/[a-z]{9}-[a-z]{5}$`},
		{"8.8.8.8", `^(192\.0\.2|198\.51\.100|203\.0\.113)\.[0-9]+$`},
		{"2a00:1450::200e", `^2001:db8::[0-9a-f]{4}$`},
		{"C4CA4238A0B923820DCC509A6F75849B", `^[0-9A-F]{32}$`},
		{"write to mira@northwind.com, or Mira", `^[a-z]{5} [a-z]{2} [a-z]{4}@[a-z]{9}\.example, [a-z]{2} [A-Z][a-z]{3}$`},
		{"Müller", `^[A-Z]\pL[a-z]{4}$`},
		{"Иван", `^\p{Cyrillic}{4}$`},
		{"", `^$`},
		{"%", `^%$`},
	} {
		m := New([]string{"linkedin.com"})
		made := m.Text(f.text)
		if !regexp.MustCompile(f.form).MatchString(made) {
			t.Errorf("%s became %s, want %s", f.text, made, f.form)
		}
		if again := m.Text(f.text); again != made {
			t.Errorf("%s became %s, and then %s", f.text, made, again)
		}
		if made == f.text && len(f.text) > 1 {
			t.Errorf("%s stays", f.text)
		}
	}
}

// TestSame: one value is one value in every writing, and two are two.
func TestSame(t *testing.T) {
	m := New([]string{"linkedin.com"})
	address, name := m.Text("mira.halden@northwind.com"), strings.Fields(m.Text("Mira Halden"))
	for _, f := range []struct{ text, want string }{
		{"MIRA.HALDEN@NORTHWIND.COM", strings.ToUpper(address)},
		{"mira.halden%40northwind.com", strings.Replace(address, "@", "%40", 1)},
		{"<mira.halden@northwind.com>;", "<" + address + ">;"},
		{"https://linkedin.com/in/mira-halden", "https://linkedin.com/in/" + strings.ToLower(name[0]+"-"+name[1])},
		{"northwind.com", address[strings.Index(address, "@")+1:]},
		{hash("mira.halden@northwind.com"), hash(address)},
		{strings.ToUpper(hash("mira.halden@northwind.com")), strings.ToUpper(hash(address))},
	} {
		if made := m.Text(f.text); made != f.want {
			t.Errorf("%s became %s, want %s", f.text, made, f.want)
		}
	}
	seen := map[string]string{}
	for _, text := range strings.Fields("ada bob eva ada@x.com ada@y.com bob@x.com 10 11 12 13 8.8.8.8 8.8.4.4") {
		made := m.Text(text)
		if seen[made] != "" {
			t.Errorf("%s and %s became %s", seen[made], text, made)
		}
		seen[made] = text
	}
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// TestPhones: a number becomes one of the same region and type, in the same writing.
func TestPhones(t *testing.T) {
	for _, f := range []struct{ text, form string }{
		{"+14155552671", `^\+120255501\d\d$`},
		{"14155552671", `^120255501\d\d$`},
		{"+1 (415) 555-2671", `^\+1 \(202\) 555-01\d\d$`},
		{"(415) 555-2671", `^\(202\) 555-01\d\d$`},
		{"+1 613 236 1111", `^\+1 613 555 01\d\d$`},
		{"+44 7400 123456", `^\+44 7400 12\d{4}$`},
		{"+44 20 7031 3000", `^\+44 20 7946 0\d{3}$`},
		{"0044 7400 123456", `^0044 740012\d{4}$|^0044 7400 12\d{4}$`},
		{"+33612345678", `^\+3361234\d{4}$`},
		{"+61 412 345 678", `^\+61 491 570 \d{3}$`},
		{"+46701234567", `^\+4670174\d{4}$`},
		{"+4915112345678", `^\+49\d{10,11}$`},
		{"+81312345678", `^\+81\d{9,10}$`},
		{"12345", `^\d{5}$`},
		{"call me", `^[a-z]{4} [a-z]{2}$`},
	} {
		m := New(nil)
		made := m.Phone(f.text)
		if !regexp.MustCompile(f.form).MatchString(made) || made == f.text {
			t.Errorf("%s became %s, want %s", f.text, made, f.form)
		}
		was, err := phone.Parse(f.text, "US")
		if is, err2 := phone.Parse(made, "US"); err == nil && (err2 != nil || phone.Describe(was.E164) != phone.Describe(is.E164)) {
			t.Errorf("%s became %s: %v, not %v", f.text, made, phone.Describe(is.E164), phone.Describe(was.E164))
		}
		if n, err := phone.Parse(f.text, ""); err == nil && strings.HasPrefix(n.E164, "+") {
			is, _ := phone.Parse(made, "")
			if other := m.Text("tel: " + n.E164 + "."); !strings.HasSuffix(other, is.E164+".") {
				t.Errorf("%s became %s, and in a text %s", f.text, made, other)
			}
		}
	}
}
