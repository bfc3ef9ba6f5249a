package rows

import (
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

// MayBeData reports whether a header may be a row of data. Do not show the names of
// such a header. It is none only if most of its names are made of words that columns
// are called by, and no name looks like a value: the name of a person looks like
// that of a column.
func MayBeData(names []string) bool {
	if AreData(names) {
		return true
	}
	known, other := 0, 0
	for _, name := range names {
		switch found, unknown := words(name); {
		case unknown:
			other++
		case found: // others are letters, such as a and b, and mean nothing
			known++
		}
	}
	return other > 0 && known <= other
}

// AreData reports whether a header is probably a row, because one of its names is
// probably a value.
func AreData(names []string) bool { return slices.ContainsFunc(names, isData) }

// isData reports whether the name of a column is probably a value: an address, a page or a
// number.
func isData(name string) bool {
	if strings.ContainsRune(name, '@') || strings.Contains(name, "://") || strings.Contains(name, "/in/") {
		return true
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	digits, letters := 0, 0
	for _, r := range name {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
			letters++
		}
	}
	hex := digits > 0 && len(name) >= 32 && digits+letters == len(name)
	return hex || digits >= 6 && letters == 0
}

// words looks for words in a name, such as those of FirstName, first_name or
// E-Mail 2. found says that it has one of columnWords, and unknown that it has
// something else than these, single letters and the numbers behind them.
func words(name string) (found, unknown bool) {
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return !isWord(r) }) {
		all := []string{part}
		if !columnWords[strings.ToLower(part)] {
			all = splitWords(part)
		}
		for _, word := range all {
			switch first := word[0]; {
			case columnWords[strings.ToLower(word)]:
				found = true
			case first >= '0' && first <= '9':
				unknown = unknown || !found || len(word) > 4
			case len(word) > 1:
				unknown = true
			}
		}
	}
	return found, unknown
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

// splitWords splits where a number begins or ends, and before a capital after a
// small letter.
func splitWords(text string) (words []string) {
	from, before := 0, rune(0)
	for i, r := range text {
		if i > 0 && (unicode.IsDigit(r) != unicode.IsDigit(before) || unicode.IsUpper(r) && unicode.IsLower(before)) {
			words, from = append(words, text[from:i]), i
		}
		before = r
	}
	return append(words, text[from:])
}
