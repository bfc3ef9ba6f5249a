package platform

import (
	"strings"

	"github.com/leadetl/leadetl/transforms/phone"
)

// NumberOf reads a phone number of a country, or of one that is not known. Then it has its country code, with
// + or 00 before it, or without where that is the number of a plan, as all platforms read digits alone.
func NumberOf(text, country string) (phone.Number, bool) {
	n, err := phone.Parse(text, country)
	if err == nil {
		return n, true
	}
	text = strings.TrimSpace(text)
	if country != "" || text == "" || strings.ContainsAny(text[:1], "+0") {
		return n, false
	}
	n, err = phone.Parse("+"+text, "")
	if err != nil || !phone.Describe(n.E164).Valid && !isNorthAmerican(n.E164) {
		return phone.Number{}, false // it may be a number of a country without its code
	}
	return n, true
}

// isNorthAmerican reports whether a number has the eleven digits of the North American plan, in which no number
// without country code begins with 1.
func isNorthAmerican(e164 string) bool { return len(e164) == 12 && e164[1] == '1' }
