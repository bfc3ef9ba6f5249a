package email

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/leadetl/leadetl/internal/nullword"
)

// parseAny is the definition of Parse. It checks the most helpful reasons first.
func parseAny(cell []byte) (Address, error) {
	if !utf8.Valid(cell) {
		return Address{}, ErrInvalidUTF8
	}
	text := bytes.TrimFunc(cell, isSurrounding)
	if len(text) == 0 || nullword.Is(text) {
		return Address{}, ErrEmpty
	}
	if bytes.IndexByte(text, '@') < 0 {
		if a, found, err := digest(text); found {
			return a, err
		}
	}
	if isList(text) {
		// Before the search for spaces: "a@b.co, c@d.co" is a list first.
		return Address{}, ErrMultiple
	}
	if bytes.ContainsFunc(text, isForbidden) {
		return Address{}, ErrInvalidCharacter
	}
	text = bytes.TrimSuffix(text, []byte(".")) // the dot of the root
	at, ok := scan(text)
	if !ok {
		return Address{}, ErrInvalid
	}
	a := Address{text: text, at: uint8(at), upper: true}
	a.ascii = !bytes.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
	if !a.ascii {
		// Some letters are longer in lower case (Ⱥ has two bytes, ⱥ three), and
		// the key must be a valid address too.
		var buf [2 * maxAddress]byte
		if _, ok := scan(appendLower(buf[:0], text)); !ok {
			return Address{}, ErrInvalid
		}
	}
	return a, nil
}

// scan checks the syntax of an address and returns the index of its @. text is UTF-8
// without control, format or space characters. Both parts may have any characters
// beyond ASCII. Comments, address literals and domains of one label are refused.
// Source: RFC 5321 4.1.2, RFC 6531 3.3.
func scan(text []byte) (at int, ok bool) {
	if len(text) > maxAddress {
		return 0, false
	}
	if len(text) > 0 && text[0] == '"' {
		at = quotedEnd(text)
	} else {
		at = dotAtomEnd(text)
	}
	if at < 1 || at > maxLocal || at == len(text) || text[at] != '@' {
		return 0, false
	}
	return at, isDomain(text[at+1:])
}

// quotedEnd returns the length of the quoted string at the start of text, 0 if it
// does not end.
func quotedEnd(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			i++ // whatever it quotes
			if i < len(text) && text[i] >= utf8.RuneSelf {
				return 0
			}
		}
	}
	return 0
}

// dotAtomEnd returns the length of the dot-atom at the start of text, 0 if a dot is
// at its edge or beside another dot.
func dotAtomEnd(text []byte) int {
	prev := byte('.')
	i := 0
	for ; i < len(text) && (text[i] >= utf8.RuneSelf || localClass[text[i]] != foreign); i++ {
		if text[i] == '.' && prev == '.' {
			return 0
		}
		prev = text[i]
	}
	if prev == '.' {
		return 0
	}
	return i
}

// isDomain reports whether text is two or more labels of 1 to 63 bytes, without
// hyphens at their edges. maxAddress bounds the length of the whole.
func isDomain(text []byte) bool {
	for labels := 1; ; labels++ {
		end := bytes.IndexByte(text, '.')
		if end < 0 {
			return labels >= 2 && isLabel(text)
		}
		if !isLabel(text[:end]) {
			return false
		}
		text = text[end+1:]
	}
}

func isLabel(text []byte) bool {
	if len(text) == 0 || len(text) > maxLabel || text[0] == '-' || text[len(text)-1] == '-' {
		return false
	}
	for _, c := range text {
		if c < utf8.RuneSelf && domainClass[c] == foreign {
			return false
		}
	}
	return true
}

// isList reports whether a separator outside quotes has an @ on both sides. Else it
// may be a part of the local part: a|b@example.com is one address.
func isList(text []byte) bool {
	quoted, before, separated := false, false, false
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if quoted {
				i++
			}
		case '"':
			quoted = !quoted
		case ',', ';', '|':
			separated = separated || before && !quoted
		case '@':
			if quoted {
				continue
			}
			if separated {
				return true
			}
			before = true
		}
	}
	return false
}

// isSurrounding reports whether r is trimmed at both ends: white space, and the
// invisible characters of text that was copied from pages and spreadsheets.
func isSurrounding(r rune) bool {
	switch {
	case unicode.IsSpace(r), // NBSP is one
		r == '\uFEFF',                  // BOM
		'\u200B' <= r && r <= '\u200F', // zero-width, bidi marks
		'\u202A' <= r && r <= '\u202E', // bidi embedding
		'\u2060' <= r && r <= '\u2064', // word joiner, invisible operators
		r == '\u00AD':                  // soft hyphen
		return true
	}
	return false
}

// isForbidden reports whether r is a control, format or space character.
func isForbidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r <= ' ' || r == 0x7F
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Z)
}
