package searches

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// fold returns the form in which texts are compared: without case, without compatibility
// variants (full-width letters, ligatures, composed or not), and with single spaces. Source:
// Unicode 3.13, toNFKC_Casefold, after the simple lower case of stored keywords.
func fold(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	if isASCII(text) {
		return text
	}
	text = norm.NFKC.String(cases.Fold().String(norm.NFKC.String(text)))
	return strings.Join(strings.Fields(text), " ")
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// words returns the words by which phrases match: the runs of letters, digits and marks of the
// folded text. In scripts without spaces each character is a word, so that a phrase finds a
// part of a text. A text without any of these is one word, and only the same text finds it.
func words(text string) []string {
	text = fold(text)
	var all []string
	start, alone := -1, false // of the present word; whether it only takes marks
	end := func(i int) {
		if start >= 0 {
			all = append(all, text[start:i])
			start, alone = -1, false
		}
	}
	for i, r := range text {
		switch {
		case unicode.IsMark(r): // of the character before it, a letter or not
		case r >= firstUnspaced && unicode.In(r, unspaced...):
			end(i)
			start, alone = i, true
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			if alone {
				end(i)
			}
			if start < 0 {
				start = i
			}
		default:
			end(i)
		}
	}
	end(len(text))
	if all == nil && text != "" {
		return []string{text}
	}
	return all
}

// firstUnspaced is the first character of unspaced.
const firstUnspaced = 0x0E00

var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer,
	unicode.Myanmar}
