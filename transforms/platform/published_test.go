package platform

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/transforms/email"
)

// What platforms and their code print of a value: how it is written, and its digest.
func TestPublished(t *testing.T) {
	file, err := os.Open("testdata/published.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	records, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]int{}
	for _, r := range records[1:] {
		name, kind, input, want, digest, source := r[0], r[1], r[2], r[3], r[4], r[5]
		p := ByName(name)
		if p == nil {
			continue // its file is not known
		}
		kind, country, _ := strings.Cut(kind, ":")
		got, hashed, takes := written(p, kind, input, country)
		if !takes {
			continue
		}
		tried[name]++
		if !slices.Contains(got, want) {
			t.Errorf("%s %s %q is written as %q, want %q (%s)", name, kind, input, got, want, source)
		}
		sum := sha256.Sum256([]byte(want))
		if digest != "" && hex.EncodeToString(sum[:]) != digest {
			t.Errorf("%s %s %q: the digest of %q is not %s (%s)", name, kind, input, want, digest, source)
		}
		if hashed != (digest != "") {
			t.Errorf("%s %s is hashed: %v (%s)", name, kind, hashed, source)
		}
	}
	for name, n := range map[string]int{"google": 24, "meta": 44, "tiktok": 6, "linkedin": 1, "microsoft": 3, "pinterest": 1, "x": 3} {
		if tried[name] != n {
			t.Errorf("%d examples of %s were tried, want %d", tried[name], name, n)
		}
	}
}

// written are the ways in which a platform has a value of a kind of the table. takes is false of a kind that
// the file does not have.
func written(p *Platform, kind, input, country string) (forms []string, hashed, takes bool) {
	field := map[string]Field{
		"email": Email, "email_gmail": Email, "phone_e164": Phone, "phone_digits": Phone, "first_name": FirstName, "last_name": LastName,
		"country": Country, "country_name": Country, "city": City, "state": State, "state_name": State, "zip": ZipCode,
	}[kind]
	i := slices.IndexFunc(p.Columns, func(c Column) bool { return c.Field == field && field != "" })
	if i < 0 {
		return nil, false, false
	}
	if (kind == "state" || kind == "state_name") && country == "" {
		country = "US"
	}
	switch field {
	case Email:
		a, err := email.Read([]byte(input))
		for _, m := range p.Mails {
			if form, ok := m.Append(nil, a); ok && err == nil {
				forms = append(forms, string(form))
			}
		}
	case Phone:
		n, _ := NumberOf(input, country)
		for _, form := range p.Numbers {
			forms = append(forms, n.Form(form.Form))
		}
	case Country:
		input = CountryOf(input)
		fallthrough
	default:
		value, _ := p.Columns[i].Write(input, country)
		forms = append(forms, value)
	}
	return forms, p.Columns[i].Hashed, true
}
