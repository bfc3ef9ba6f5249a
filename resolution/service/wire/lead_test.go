package wire

import (
	"bytes"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
)

// FuzzLead compares the two ways to write a lead.
func FuzzLead(f *testing.F) {
	f.Add("Ada", "ada@bakery.example", uint32(0xffffffff), int64(1_700_000_000_123_000_000), 0.92)
	f.Add("", "", uint32(0), int64(0), 0.0)
	f.Add("a\"b\\c\n\x00<>&\u2028é\xff", "x", uint32(0xffffffff), int64(1), 1e-9)
	f.Fuzz(func(t *testing.T, a, b string, has uint32, at int64, number float64) {
		bit := func() bool { is := has&1 == 1; has >>= 1; return is }
		text := func(s string) string {
			if bit() {
				return s
			}
			return ""
		}
		l := resolution.Lead{Phone: text(a), NetworkURL: text(b), MatchLevel: text(a)}
		l.Contact = resolution.Contact{
			FirstName: text(a), LastName: text(b), FullName: text(a), Headline: text(b), JobTitle: text(a), Seniority: text(b),
			Department: text(a), Email: text(b), Address: resolution.Address{Street: text(a), ZipCode: text(b), City: text(a), State: text(b)},
		}
		if bit() {
			l.Emails = []resolution.ContactEmail{{Email: a, Type: b}, {Email: b}}
			l.Phones = []resolution.ContactPhone{{Phone: a}, {Phone: b, Type: a}}
		}
		if bit() {
			l.HashedEmails = []resolution.HashedEmail{{Email: a, Type: "md5"}, {Email: b}}
		}
		if bit() && at > 0 { // of years that JSON has
			seen := time.Unix(0, at).UTC()
			l.LastSeenAt = &seen
		}
		if bit() && number == number && number-number == 0 { // numbers that JSON has
			l.Confidence = &number
		}
		if bit() {
			l.Company = &resolution.Company{Name: text(a), Domain: text(b), WebsiteURL: a, NetworkURL: b, Revenue: text(a), EmployeeCount: b, About: a}
			l.Company.Address.City = text(b)
			if bit() {
				year := int32(at)
				l.Company.Industry, l.Company.YearFounded = &a, &year
			}
		}
		var got, want bytes.Buffer
		got.WriteString("before")
		WriteLead(&got, &l)
		WriteJSON(&want, l)
		if got.String() != "before"+want.String() {
			t.Errorf("got  %s\nwant %s", got.String(), want.String())
		}
	})
}
