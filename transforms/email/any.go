package email

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/leadetl/leadetl/internal/invisible"
	"github.com/leadetl/leadetl/internal/nullword"
	"github.com/leadetl/leadetl/internal/spreadsheet"
)

// parseAny is the definition of Parse. It checks the most helpful reasons first.
func parseAny(cell []byte) (Address, error) {
	if !utf8.Valid(cell) {
		return Address{}, ErrInvalidUTF8
	}
	text := bytes.TrimFunc(spreadsheet.ValueOf(cell), isSurrounding)
	if len(text) == 0 || nullword.Is(text) {
		return Address{}, ErrEmpty
	}
	if bytes.IndexByte(text, '@') < 0 {
		if d, ok := ParseDigest(text); ok {
			if d.MeansNobody() {
				return Address{}, ErrEmpty
			}
			return Address{text: text, kind: d.Kind, ascii: true, upper: true}, nil
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
	at, unusual, ok := scan(text)
	if !ok {
		return Address{}, ErrInvalid
	}
	a := Address{text: text, at: uint8(at), upper: true, unusual: unusual}
	a.ascii = !bytes.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
	if !a.ascii {
		// Some letters are longer in lower case (Ⱥ has two bytes, ⱥ three), and
		// the key must be a valid address too.
		var buf [2 * maxAddress]byte
		if _, _, ok := scan(appendLower(buf[:0], text)); !ok {
			return Address{}, ErrInvalid
		}
	}
	return a, nil
}

// scan checks the syntax of an address and returns the index of its @. text is UTF-8
// without control, space and invisible characters. The local part may have any others
// beyond ASCII, the domain letters, marks and digits. Comments, address literals and
// domains of one label are refused. Source: RFC 5321 4.1.2, RFC 6531 3.3, RFC 5892.
func scan(text []byte) (at int, unusual, ok bool) {
	if len(text) > maxAddress {
		return 0, false, false
	}
	if len(text) > 0 && text[0] == '"' {
		at = quotedEnd(text)
	} else {
		at, unusual = atomEnd(text)
	}
	if at < 1 || at > maxLocal || at == len(text) || text[at] != '@' {
		return 0, false, false
	}
	domain := text[at+1:]
	return at, unusual || bytes.IndexByte(domain, '_') >= 0, isDomain(domain)
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

// atomEnd returns the length of the atoms and dots at the start of text, 0 without an
// atom. unusual says that a dot is at their edge or beside another dot.
func atomEnd(text []byte) (end int, unusual bool) {
	prev, dots := byte('.'), 0
	for ; end < len(text) && (text[end] >= utf8.RuneSelf || localClass[text[end]] != foreign); end++ {
		if text[end] == '.' {
			dots++
			unusual = unusual || prev == '.'
		}
		prev = text[end]
	}
	if dots == end {
		return 0, false
	}
	return end, unusual || prev == '.'
}

// isDomain reports whether text is two or more labels of 1 to 63 bytes, without
// hyphens at their edges. maxAddress bounds the length of the whole. No top-level
// domain has an underscore.
func isDomain(text []byte) bool {
	for labels := 1; ; labels++ {
		end := bytes.IndexByte(text, '.')
		if end < 0 {
			return labels >= 2 && isLabel(text) && bytes.IndexByte(text, '_') < 0
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
	return !bytes.ContainsFunc(text, func(c rune) bool {
		if c < utf8.RuneSelf {
			return c != '_' && domainClass[c] == foreign
		}
		return !unicode.In(c, unicode.L, unicode.Mn, unicode.Mc, unicode.Nd) // as in hosts of profiles
	})
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
	return unicode.IsSpace(r) || invisible.Is(r) // NBSP is a space
}

// isForbidden reports whether r is a control, space or invisible character, or the one
// that stands for bytes that were lost: several addresses would have it in one place.
func isForbidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r <= ' ' || r == 0x7F
	}
	return unicode.In(r, unicode.Cc, unicode.Z) || r == utf8.RuneError || invisible.Is(r)
}
