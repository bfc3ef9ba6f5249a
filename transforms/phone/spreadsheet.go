package phone

import "strings"

// scientific reports whether s is in the notation of spreadsheets for long numbers
// (6.50555E+09, 6,5E+9). Its last digits are lost.
func scientific(s string) bool {
	s = strings.TrimLeft(s, "+-")
	mantissa, exponent, found := strings.Cut(s, "E")
	if !found {
		mantissa, exponent, found = strings.Cut(s, "e")
	}
	if !found {
		return false
	}
	whole, fraction, hasFraction := strings.Cut(mantissa, ".")
	if !hasFraction {
		whole, fraction, hasFraction = strings.Cut(mantissa, ",")
	}
	exponent = strings.TrimLeft(exponent, "+-")
	return allDigits(whole) && (!hasFraction || allDigits(fraction)) && allDigits(exponent)
}

// withoutFraction drops the ".0" of a number that was stored as a float. Else the dot
// would count as punctuation, and the zeros as digits of the number.
func withoutFraction(s string) string {
	at := strings.LastIndexAny(s, ".,")
	if at < minDigits-1 || strings.Trim(s[at+1:], "0") != "" || at+1 == len(s) || !allDigits(strings.TrimPrefix(s[:at], "+")) {
		return s
	}
	return s[:at]
}

// withoutFormula takes a text out of the formula in which it was exported (="0207…"), and
// out of quotes. A lone quote in front keeps a spreadsheet from reading a number.
func withoutFormula(s string) string {
	return strings.TrimSpace(strings.Trim(strings.TrimPrefix(s, "="), "\"'`"))
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
