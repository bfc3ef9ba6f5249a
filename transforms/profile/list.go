package profile

import (
	"strings"
	"unicode"

	"github.com/leadetl/leadetl/internal/spreadsheet"
)

// isList reports whether s is a list: of its pieces between white space, commas,
// semicolons and bars, two look like addresses. Some addresses contain commas.
func isList(s string) bool {
	if !strings.ContainsFunc(s, isSeparator) {
		return false
	}
	addresses := 0
	for piece := range strings.FieldsFuncSeq(s, isSeparator) {
		if looksLikeAddress(strings.TrimFunc(piece, isSurrounding)) {
			addresses++
		}
	}
	return addresses > 1
}

// Split returns the addresses of a cell that Parse finds several in; nil of any other cell, and
// if something else is between them: some addresses have commas.
func Split(s string) (all []string) {
	if s = strings.TrimFunc(spreadsheet.Value(s), isSurrounding); !isList(s) {
		return nil
	}
	for piece := range strings.FieldsFuncSeq(s, isSeparator) {
		if piece = strings.TrimFunc(piece, isSurrounding); piece == "" {
			continue
		}
		if !looksLikeAddress(piece) {
			return nil
		}
		all = append(all, piece)
	}
	return all
}

func isSeparator(c rune) bool {
	return c == ',' || c == ';' || c == '|' || unicode.IsSpace(c)
}

// looksLikeAddress reports whether s begins with a scheme or with a host and a
// slash.
func looksLikeAddress(s string) bool {
	start, _, found := strings.Cut(s, "/")
	if !found {
		return false
	}
	if strings.HasSuffix(start, ":") {
		return len(start) > 1
	}
	_, ok := cleanHost(start)
	return ok
}
