package company

import "strings"

// ParseYear reads a founding year: a number, or the text of a float (2004.0). ok is
// false if it is not a year from 100 to 9999.
func ParseYear(text string) (year int32, ok bool) {
	text = trim(text)
	if whole, fraction, found := strings.Cut(text, "."); found && fraction != "" && strings.Trim(fraction, "0") == "" {
		text = whole
	}
	if len(text) < len("100") || len(text) > len("9999") {
		return 0, false
	}
	for i := range len(text) {
		if !digit(text[i]) {
			return 0, false
		}
		year = year*10 + int32(text[i]-'0')
	}
	if year < 100 {
		return 0, false
	}
	return year, true
}
