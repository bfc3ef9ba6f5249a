package company_test

import (
	"strconv"
	"testing"

	"github.com/leadetl/leadetl/transforms/company"
)

// FuzzParseRange holds any text's bounds to order, and reads them again as
// they would be written.
func FuzzParseRange(f *testing.F) {
	for _, text := range []string{
		"SIZE_51_TO_200", "Self-employed", "501-1,000 employees", "10 000+", "251-1K", "<10", "≤10", "Under $500,000",
		"$1 mil. - $5 mil.", "$1-10M", "1.5bn", "~200", "Nov-50", "1950-11-01 00:00:00", "50-11", "1.000.000",
		"9223372036854775807", "11-50 (estimated)", "over 1'000",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := company.ParseRange(text)
		if r.HasMin && r.HasMax && r.Min > r.Max || r.Min < 0 || r.Max < 0 {
			t.Errorf("ParseRange(%q) = %+v, want bounds in order", text, r)
		}
		if !r.HasMin && r.Min != 0 || !r.HasMax && r.Max != 0 || r.Spreadsheet && (r.HasMin || r.HasMax) {
			t.Errorf("ParseRange(%q) = %+v, want nothing where there is no bound", text, r)
		}
		again := ""
		switch {
		case r.HasMin && r.HasMax:
			again = strconv.FormatInt(r.Min, 10) + "-" + strconv.FormatInt(r.Max, 10)
		case r.HasMin:
			again = strconv.FormatInt(r.Min, 10) + "+"
		case r.HasMax:
			again = "≤" + strconv.FormatInt(r.Max, 10)
		default:
			return
		}
		if got := company.ParseRange(again); got != r {
			t.Errorf("ParseRange(%q) = %+v, written %q it is %+v", text, r, again, got)
		}
	})
}

// FuzzYearAndAddresses reads what the other functions give a second time: it
// must not change any more.
func FuzzYearAndAddresses(f *testing.F) {
	for _, text := range []string{
		"2004.0", "https://www.acme.example:8080/about?x=1", "bücher.example", "xn--bcher-kva.example", "www.www.acme.example.",
		"user:secret@acme.example", "192.0.2.1", "[2001:db8::1]:80", "network.example/company/acme/",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if year, ok := company.ParseYear(text); ok {
			if again, _ := company.ParseYear(strconv.Itoa(int(year))); again != year {
				t.Errorf("ParseYear(%q) = %d, read again %d", text, year, again)
			}
		}
		if domain := company.Domain(text); company.Domain(domain) != domain {
			t.Errorf("Domain(%q) = %q, read again %q", text, domain, company.Domain(domain))
		}
		company.NetworkURL(text)
	})
}
