package platform

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/internal/nullword"
	"github.com/leadetl/leadetl/internal/spreadsheet"
)

// longest bounds a text, in bytes.
const longest = 300

// clean is a text without what surrounds it, and with single spaces; "" for one that is none.
func clean(text string) string {
	if len(text) > longest || !utf8.ValidString(text) {
		return ""
	}
	around := func(c rune) bool { return unicode.IsSpace(c) || invisible.Is(c) }
	text = strings.Join(strings.FieldsFunc(spreadsheet.Text(strings.TrimFunc(text, around)), around), " ")
	if nullword.Is(text) {
		return ""
	}
	return norm.NFC.String(text)
}

func lower(text string) string { return strings.ToLower(clean(text)) }

// isNoLetter reports whether a character is white space, punctuation or a symbol.
func isNoLetter(c rune) bool {
	return unicode.IsSpace(c) || unicode.IsPunct(c) || unicode.IsSymbol(c) || unicode.IsControl(c)
}

// lettersOnly is a text in lower case without white space and punctuation. Letters of every script stay.
func lettersOnly(text string) string {
	return strings.Map(func(c rune) rune {
		if isNoLetter(c) {
			return -1
		}
		return c
	}, lower(text))
}

// titles and suffixes are no part of a name for Google.
var (
	titles   = []string{"mr", "mrs", "ms", "miss", "dr", "prof"}
	suffixes = []string{"jr", "sr", "ii", "iii", "iv"}
)

// googleName is lower case without title and suffix; accents stay. What becomes of punctuation and inner
// spaces is open: the API reference forbids punctuation, the formatter of googleads/data-manager-python@5abbf5d
// keeps it and drops white space when it hashes.
// Source: support.google.com/google-ads/answer/7659867, and the template g.co/wudy8r.
func googleName(text, _ string) (name string, open bool) {
	words := strings.Fields(lower(text))
	is := func(of []string, word string) bool { return slices.Contains(of, strings.TrimRight(word, ".")) }
	for len(words) > 1 && is(titles, words[0]) {
		words = words[1:]
	}
	for len(words) > 1 && is(suffixes, words[len(words)-1]) {
		words = words[:len(words)-1]
		words[len(words)-1] = strings.TrimRight(words[len(words)-1], ",")
	}
	name = strings.Join(words, " ")
	if strings.ContainsFunc(name, isNoLetter) {
		return "", true
	}
	return name, false
}

// metaName is lower case without white space and punctuation. Letters of every script and their accents stay.
// Meta's older code for Python and PHP keeps a to z alone; the printed digest of "valéry" decides.
// Source: Meta, customer information parameters, 2026-01-09.
func metaName(text, _ string) (string, bool) { return lettersOnly(text), false }

// metaCity is lower case without white space and punctuation. What becomes of accents is open: Meta's page
// keeps them, facebook/capi-param-builder@b0b6f0b drops them.
// Source: Meta, customer information parameters, 2026-01-09.
func metaCity(text, _ string) (city string, open bool) {
	city = lettersOnly(text)
	if strings.ContainsFunc(city, func(c rune) bool { return c >= utf8.RuneSelf }) {
		return "", true
	}
	return city, false
}

// metaState is the two letters of a state of the United States, and elsewhere lower case without white space
// and punctuation.
// Source: Meta, customer information parameters, 2026-01-09.
func metaState(text, country string) (state string, open bool) {
	state = lettersOnly(text)
	switch code, known := states[state]; {
	case strings.ContainsFunc(state, func(c rune) bool { return c >= utf8.RuneSelf }):
		return "", true
	case country != "US":
	case known:
		return code, false
	case len(state) != 2:
		return "", false
	}
	return state, false
}

// metaZip is lower case without spaces; in the United States the first five digits.
// Source: Meta, customer information parameters, 2026-01-09. It names area, district and sector for the United
// Kingdom; facebook/facebook-java-business-sdk@a73f92d (NR9 5AL is nr95al) keeps the whole code.
func metaZip(text, country string) (string, bool) {
	zip := strings.ReplaceAll(lower(text), " ", "")
	if country != "US" {
		return zip, false
	}
	if _, ok := zipOfUS(zip); !ok {
		return "", false
	}
	return zip[:5], false
}

// zipOfUS is what follows the first five digits. ok is false if the text has fewer, or other characters.
func zipOfUS(zip string) (extension string, ok bool) {
	if len(zip) < 5 || strings.Trim(zip[:5], "0123456789") != "" {
		return "", false
	}
	extension = strings.TrimPrefix(zip[5:], "-")
	return extension, strings.Trim(extension, "0123456789") == ""
}

// googleZip is as it is written, in the United States five digits or five and four.
// Source: googleads/data-manager-python@5abbf5d, formatter; support.google.com/google-ads/answer/7476159.
func googleZip(text, country string) (string, bool) {
	zip := clean(text)
	if country != "US" {
		return zip, false
	}
	switch extension, ok := zipOfUS(strings.ReplaceAll(zip, " ", "")); {
	case !ok:
		return "", false
	case len(extension) == 4:
		return zip[:5] + "-" + extension, false
	}
	return zip[:5], false
}

// upTo is a text as it is written, and none if it is longer.
func upTo(characters int) func(text, _ string) (string, bool) {
	return func(text, _ string) (string, bool) {
		if text = clean(text); utf8.RuneCountInString(text) > characters {
			return "", false
		}
		return text, false
	}
}

// states are the two letters of the states of the United States by their names without spaces.
var states = map[string]string{
	"alabama": "al", "alaska": "ak", "arizona": "az", "arkansas": "ar", "california": "ca", "colorado": "co", "connecticut": "ct",
	"delaware": "de", "districtofcolumbia": "dc", "florida": "fl", "georgia": "ga", "hawaii": "hi", "idaho": "id", "illinois": "il",
	"indiana": "in", "iowa": "ia", "kansas": "ks", "kentucky": "ky", "louisiana": "la", "maine": "me", "maryland": "md",
	"massachusetts": "ma", "michigan": "mi", "minnesota": "mn", "mississippi": "ms", "missouri": "mo", "montana": "mt",
	"nebraska": "ne", "nevada": "nv", "newhampshire": "nh", "newjersey": "nj", "newmexico": "nm", "newyork": "ny",
	"northcarolina": "nc", "northdakota": "nd", "ohio": "oh", "oklahoma": "ok", "oregon": "or", "pennsylvania": "pa",
	"rhodeisland": "ri", "southcarolina": "sc", "southdakota": "sd", "tennessee": "tn", "texas": "tx", "utah": "ut", "vermont": "vt",
	"virginia": "va", "washington": "wa", "westvirginia": "wv", "wisconsin": "wi", "wyoming": "wy",
}
