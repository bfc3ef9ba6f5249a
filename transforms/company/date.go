package company

import "bytes"

// isDate reports whether a normalized text is a date of a spreadsheet, such as Nov-50
// and 11-Oct, which it makes of 11-50 and 10-11, or the same in full.
func isDate(text []byte) bool {
	return hasMonth(text) || isNumericDate(text)
}

// months are the names of months in English, German, French and Spanish, cut to the
// letters that differ from other words.
var months = wordSet(
	"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec",
	"january", "february", "march", "april", "june", "july", "august", "september", "october", "november", "december",
	"mrz", "mär", "märz", "mai", "okt", "dez", "januar", "februar", "juni", "juli", "oktober", "dezember",
	"janv", "févr", "mars", "avr", "juin", "juil", "août", "déc",
	"ene", "abr", "ago", "dic",
)

// hasMonth reports whether text is the name of a month and one or two numbers.
func hasMonth(text []byte) bool {
	named, numbers := false, 0
	for len(text) > 0 {
		n := 0
		switch c := text[0]; {
		case digit(c):
			for n < len(text) && digit(text[n]) {
				n++
			}
			if n > 4 {
				return false
			}
			numbers++
		case letter(c) || c >= 0x80:
			for n < len(text) && (letter(text[n]) || text[n] >= 0x80) {
				n++
			}
			if named || !months[string(text[:n])] {
				return false
			}
			named = true
		case bytes.IndexByte([]byte("-./', "), c) >= 0:
			n = 1
		default:
			return false
		}
		text = text[n:]
	}
	return named && (numbers == 1 || numbers == 2)
}

// isNumericDate reports whether text is a date of three numbers, with the year first
// or last and one separator. A time may follow.
func isNumericDate(text []byte) bool {
	if i := bytes.IndexAny(text, " t"); i >= 0 {
		if !isTime(text[i+1:]) {
			return false
		}
		text = text[:i]
	}
	i := bytes.IndexAny(text, "-/.")
	if i < 0 {
		return false
	}
	sep := text[i : i+1]
	first, rest, _ := bytes.Cut(text, sep)
	second, third, _ := bytes.Cut(rest, sep)
	if len(first) == 4 { // year first
		return inRange(first, 1000, 9999) && inRange(second, 1, 12) && inRange(third, 1, 31)
	}
	return inRange(first, 1, 31) && inRange(second, 1, 31) &&
		(len(third) == 2 && inRange(third, 0, 99) || len(third) == 4 && inRange(third, 1000, 9999))
}

// isTime reports whether text is a time of day: digits and colons, with or without
// fractions and a zone.
func isTime(text []byte) bool {
	return len(text) > 0 && bytes.IndexByte(text, ':') > 0 &&
		len(bytes.TrimLeft(text, "0123456789:.,+-zapm ")) == 0
}

// inRange reports whether text is a number of at most four digits in a range.
func inRange(text []byte, least, most int) bool {
	n := 0
	for _, c := range text {
		if !digit(c) {
			return false
		}
		n = n*10 + int(c-'0')
	}
	return len(text) > 0 && len(text) <= 4 && least <= n && n <= most
}
