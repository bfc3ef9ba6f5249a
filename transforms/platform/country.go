package platform

import (
	"strings"
	"sync"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
)

// CountryOf returns the two capital letters of a country, of these or three letters, or of its English name;
// "" for another text.
func CountryOf(text string) string {
	text = clean(text)
	if code := countryNames()[lettersOnly(text)]; code != "" {
		return code
	}
	if len(text) != 2 && len(text) != 3 {
		return ""
	}
	region, err := language.ParseRegion(text)
	if err != nil || !region.Canonicalize().IsCountry() {
		return ""
	}
	return region.Canonicalize().String()
}

// countryNames are the two letters of countries by their English names, and by what else they are called.
var countryNames = sync.OnceValue(func() map[string]string {
	names := map[string]string{"unitedstatesofamerica": "US", "greatbritain": "GB", "england": "GB", "czechrepublic": "CZ", "türkiye": "TR"}
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			region, err := language.ParseRegion(string([]rune{a, b}))
			if err == nil && region.IsCountry() && region == region.Canonicalize() {
				names[lettersOnly(display.English.Regions().Name(region))] = region.String()
			}
		}
	}
	delete(names, "")
	return names
})

// countryUpper and countryLower are the two letters, as callers of CountryOf have them.
func countryUpper(code, _ string) (string, bool) { return code, false }

func countryLower(code, _ string) (string, bool) { return strings.ToLower(code), false }
