package request

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// terms are the values of a list in the order given, each once.
type terms struct {
	values []string
	folded []string // of each value what tells it apart from others
}

// readTerm makes a value of an item, which is trimmed, and its folded form.
type readTerm func(item string) (value, folded string, wrong fault)

// terms reads a list of strings. Of values that fold alike the first stands.
func (f *form) terms(name string, least, most int, read readTerm) (t terms) {
	known := make(map[string]struct{})
	f.list(name, least, most, func(text string) fault {
		value, folded, wrong := read(trimmed(text))
		if wrong != (fault{}) {
			return wrong
		}
		if _, twice := known[folded]; !twice {
			known[folded] = struct{}{}
			t.values, t.folded = append(t.values, value), append(t.folded, folded)
		}
		return fault{}
	})
	return t
}

// words reads free text of 1 to most characters; case and spacing do not tell
// values apart.
func words(most int) readTerm {
	return func(item string) (value, folded string, wrong fault) {
		switch n := utf8.RuneCountInString(item); {
		case n == 0:
			return "", "", fault{"empty", "must not be empty"}
		case n > most:
			return "", "", fault{"too_long", fmt.Sprintf("must have at most %d characters", most)}
		}
		return item, strings.ToLower(spaced(item)), fault{}
	}
}

// spacedWords is words with one space wherever there were several.
func spacedWords(most int) readTerm {
	read := words(most)
	return func(item string) (value, folded string, wrong fault) {
		value, folded, wrong = read(item)
		return spaced(value), folded, wrong
	}
}

func spaced(s string) string { return strings.Join(strings.Fields(s), " ") }

// state reads two letters and writes them large.
func state(item string) (value, folded string, wrong fault) {
	if len(item) != 2 || !isLetter(item[0]) || !isLetter(item[1]) {
		return "", "", fault{"invalid_state", "must be two letters, such as CA"}
	}
	item = strings.ToUpper(item)
	return item, item, fault{}
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// zip reads a ZIP or a ZIP+4.
func zip(item string) (value, folded string, wrong fault) {
	five, four, plus := strings.Cut(item, "-")
	if len(five) != 5 || plus && len(four) != 4 || strings.Trim(five+four, "0123456789") != "" {
		return "", "", fault{"invalid_zip", "must be a ZIP code, such as 12345 or 12345-6789"}
	}
	return item, item, fault{}
}
