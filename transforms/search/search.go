// Package search has the rules for the fields of a keyword search: which values are
// valid, which are equal, and which days a search covers.
//
// The one thing to know before using it: a rule returns what is wrong as a Fault,
// which never repeats the value. Readers of JSON and CSV add where the value is.
package search

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits bound a search. Texts are counted in characters.
type Limits struct {
	Keywords    int // items, at least one
	Places      int // items in each of cities, states and zips
	JobTitles   int // items in each of inclusions and exclusions
	TermLength  int // a keyword, a job title
	CityLength  int
	DateSpan    int // days from the first to the last, both included
	DefaultSpan int // days if a date is missing
	PageLimit   int // leads on a page
	HEMs        int // hashed emails of a lead
	Depth       int // page × limit: how many leads of a search can be read
}

// DefaultLimits are the limits of the interface.
func DefaultLimits() Limits {
	return Limits{
		Keywords: 100, Places: 500, JobTitles: 100,
		TermLength: 200, CityLength: 100,
		DateSpan: 31, DefaultSpan: 8,
		PageLimit: 1000, HEMs: 20, Depth: 100_000,
	}
}

// Fault says what is wrong with a value; nothing in the zero value.
type Fault struct {
	Code   string // a word for programs: too_long, invalid_state
	Detail string // a sentence for people
}

// Term reads a Trimmed value of a list. Values with the same folded form are equal.
type Term func(item string) (value, folded string, wrong Fault)

// Words reads free text of 1 to most characters, compared without regard to case and
// spacing.
func Words(most int) Term {
	return func(item string) (value, folded string, wrong Fault) {
		switch n := utf8.RuneCountInString(item); {
		case n == 0:
			return "", "", Fault{"empty", "must not be empty"}
		case n > most:
			return "", "", Fault{"too_long", fmt.Sprintf("must have at most %d characters", most)}
		}
		return item, strings.ToLower(spaced(item)), Fault{}
	}
}

// SpacedWords is Words with single spaces.
func SpacedWords(most int) Term {
	read := Words(most)
	return func(item string) (value, folded string, wrong Fault) {
		value, folded, wrong = read(item)
		return spaced(value), folded, wrong
	}
}

func spaced(s string) string { return strings.Join(strings.Fields(s), " ") }

// State reads two letters, and returns them in upper case.
func State(item string) (value, folded string, wrong Fault) {
	if len(item) != 2 || !isLetter(item[0]) || !isLetter(item[1]) {
		return "", "", Fault{"invalid_state", "must be two letters, such as CA"}
	}
	item = strings.ToUpper(item)
	return item, item, Fault{}
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// Zip reads a ZIP or a ZIP+4.
func Zip(item string) (value, folded string, wrong Fault) {
	five, four, plus := strings.Cut(item, "-")
	if len(five) != 5 || plus && len(four) != 4 || strings.Trim(five+four, "0123456789") != "" {
		return "", "", Fault{"invalid_zip", "must be a ZIP code, such as 12345 or 12345-6789"}
	}
	return item, item, Fault{}
}

// LeadType reads b2b or b2c.
func LeadType(text string) (string, Fault) {
	switch t := strings.ToLower(text); t {
	case "b2b", "b2c":
		return t, Fault{}
	}
	return "", Fault{"unknown_value", "must be b2b or b2c"}
}

// Trimmed returns text without white space and invisible characters at its ends.
func Trimmed(text string) string {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) })
}
