// Package suggest says which known name was probably meant by an unknown one.
package suggest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Name ends a message about an unknown name with the known name that was
// probably meant. It is empty when none is close.
func Name(name string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	if best := Nearest(name, known); startsWith(best, name) || IsClose(name, best) {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}

// OneOf ends a message about an unknown name: with the known name that was probably
// meant, or with all of them if none is close.
func OneOf(name string, known []string) string {
	return cmp.Or(Name(name, known), "; it is one of "+strings.Join(known, ", "))
}

// IsClose reports whether a name is probably a misspelling of another one: a
// third of its letters may differ, two may have changed places, the name is a longer
// word for it, as output is for out, or it is two of its letters, as rn of run.
func IsClose(name, of string) bool {
	edits := Edits(name, of)
	return len(name) > 2 && edits <= max(1, len(name)/3) || edits == 2 && sameLetters(name, of) || isShortFor(of, name) || len(name) == 2 && isShortFor(name, of)
}

// isShortFor reports whether a name of at least two letters has every second letter of
// a word, in its order and with the same first one.
func isShortFor(name, word string) bool {
	if len(name) < 2 || len(name) >= len(word) || 2*len(name)+1 < len(word) || name[0] != word[0] {
		return false
	}
	for i := range len(name) {
		at := strings.IndexByte(word, name[i])
		if at < 0 {
			return false
		}
		word = word[at+1:]
	}
	return true
}

func sameLetters(a, b string) bool {
	x, y := []byte(a), []byte(b)
	slices.Sort(x)
	slices.Sort(y)
	return bytes.Equal(x, y)
}

// Nearest returns the known name that needs the fewest edits. Names that start
// with the typed text come first.
func Nearest(name string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int {
		if startsWith(a, name) != startsWith(b, name) {
			if startsWith(a, name) {
				return -1
			}
			return 1
		}
		return cmp.Compare(Edits(name, a), Edits(name, b))
	})
}

// startsWith reports whether a name starts with the typed text. Fewer than four
// letters are not enough to tell.
func startsWith(name, typed string) bool {
	return len(strings.TrimLeft(typed, "-")) >= 4 && strings.HasPrefix(name, typed)
}

// Edits is the Levenshtein distance of two words.
func Edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
