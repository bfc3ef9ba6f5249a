package cliflag

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Suggest ends a message about an unknown name with the known name that was
// probably meant. It is empty when none is close.
func Suggest(name string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	if best := nearest(name, known); startsWith(best, name) || isClose(name, best) {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}

// isClose reports whether a name is probably a misspelling of another one: a
// third of its letters may differ, and two may have changed places.
func isClose(name, of string) bool {
	edits := Edits(name, of)
	return edits <= max(1, len(name)/3) || edits == 2 && sameLetters(name, of)
}

func sameLetters(a, b string) bool {
	x, y := []byte(a), []byte(b)
	slices.Sort(x)
	slices.Sort(y)
	return bytes.Equal(x, y)
}

// nearest returns the known name that needs the fewest edits. Names that start
// with the typed text come first.
func nearest(name string, known []string) string {
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
