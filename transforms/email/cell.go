package email

import (
	"bytes"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leadetl/leadetl/internal/spreadsheet"
)

// Read is Parse of a cell that may have more around its address: a name as in
// Jane <jane@x.example>, mailto:, or separators at the end. One address in angle brackets
// wins over the commas of the name before it. Where Parse reads a cell, Read says the same.
// A cell with several addresses is ErrMultiple; Split returns them.
func Read(cell []byte) (Address, error) {
	a, err := Parse(cell)
	if err == nil || err == ErrEmpty || err == ErrInvalidUTF8 {
		return a, err
	}
	pieces := pieces(spreadsheet.ValueOf(cell))
	switch {
	case len(several(pieces)) > 1:
		return Address{}, ErrMultiple
	case len(pieces) != 1:
		return Address{}, err
	}
	inside, ok := unwrap(pieces[0])
	if !ok {
		return Address{}, err
	}
	if a, inner := Parse(inside); inner == nil && a.kind == Plaintext {
		return a, nil
	}
	return Address{}, err
}

// Split returns the values of a cell in which Read finds several, as they are written there;
// nil of any other cell. Read reads each, or says what is wrong with it.
func Split(cell string) (all []string) {
	if _, err := Read([]byte(cell)); err == ErrMultiple {
		for _, value := range several(pieces([]byte(spreadsheet.Value(cell)))) {
			all = append(all, string(value))
		}
	}
	return all
}

// several returns pieces of which two or more have an @, and else nil.
func several(pieces [][]byte) [][]byte {
	addresses := 0
	for _, p := range pieces {
		if bytes.IndexByte(p, '@') >= 0 {
			addresses++
		}
	}
	if addresses < 2 {
		return nil
	}
	return pieces
}

// pieces cuts a cell at the separators of lists outside quotes and angle brackets. The pieces of
// a name before an address in angle brackets stay with it. It is nil if a quote or a bracket
// does not end.
func pieces(cell []byte) (all [][]byte) {
	from := 0
	name, start := -1, 0 // the first piece of a name, and where it begins in the cell
	add := func(to int) {
		p := bytes.TrimFunc(cell[from:to], isSurrounding)
		switch {
		case len(p) == 0:
		case bytes.IndexByte(p, '@') < 0:
			if name < 0 {
				name, start = len(all), from
			}
			all = append(all, p)
		case p[len(p)-1] == '>' && name >= 0:
			all = append(all[:name], bytes.TrimFunc(cell[start:to], isSurrounding))
			name = -1
		default:
			all, name = append(all, unbarred(p)...), -1
		}
		from = to + 1
	}
	quoted, angle := false, false
	for i := 0; i < len(cell); i++ {
		switch c := cell[i]; {
		case quoted && c == '\\':
			i++
		case c == '"' && !angle:
			quoted = !quoted
		case quoted:
		case c == '<' || c == '>':
			if angle == (c == '<') {
				return nil
			}
			angle = !angle
		case !angle && (c == ',' || c == ';' || c == '\n' || c == '\r'):
			add(i)
		}
	}
	if quoted || angle {
		return nil
	}
	add(len(cell))
	return all
}

// unbarred cuts a piece at bars or at white space, if there is an address in every part. A bar
// may belong to an address.
func unbarred(piece []byte) [][]byte {
	if bytes.ContainsAny(piece, `<>"`) {
		return [][]byte{piece}
	}
	for _, isSeparator := range []func(rune) bool{func(c rune) bool { return c == '|' }, unicode.IsSpace} {
		parts := bytes.FieldsFunc(piece, isSeparator)
		for i, p := range parts {
			if parts[i] = bytes.TrimFunc(p, isSurrounding); bytes.Count(p, []byte("@")) != 1 {
				parts = nil
				break
			}
		}
		if parts != nil {
			return parts
		}
	}
	return [][]byte{piece}
}

// unwrap returns the address of a piece, without a name and mailto:. ok is false if the name
// is another address, and if the address has other recipients beside it.
func unwrap(piece []byte) (address []byte, ok bool) {
	address, ok = withoutMailto(piece)
	if !ok || len(address) == 0 || address[len(address)-1] != '>' {
		return address, ok
	}
	open := bytes.LastIndexByte(address, '<')
	if open < 0 {
		return nil, false
	}
	name := bytes.TrimFunc(address[:open], func(c rune) bool { return c == '"' || c == '\'' || isSurrounding(c) })
	inside, ok := withoutMailto(bytes.TrimFunc(address[open+1:len(address)-1], isSurrounding))
	if bytes.IndexByte(name, '@') >= 0 && !bytes.EqualFold(name, inside) {
		return nil, false
	}
	return inside, ok
}

// withoutMailto returns the address of a mailto: link (RFC 6068), and any other text as it is.
func withoutMailto(text []byte) (address []byte, ok bool) {
	const scheme = "mailto:"
	if len(text) < len(scheme) || !bytes.EqualFold(text[:len(scheme)], []byte(scheme)) {
		return text, true
	}
	to, query, _ := strings.Cut(string(text[len(scheme):]), "?")
	if query, err := url.QueryUnescape(query); err != nil || strings.Contains(query, "@") {
		return nil, false
	}
	to, err := url.PathUnescape(to)
	return []byte(to), err == nil && utf8.ValidString(to)
}
