package request

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical returns the body in the one spelling that all bodies with the same
// meaning share. It is JSON with sorted names, without white space and needless
// escapes, and with numbers as digits and exponent. Fingerprints are made of it; an
// echo keeps the original spelling.
//
// RFC 8785 is no substitute: it rounds numbers to float64.
func (o Object) Canonical() []byte {
	if o.text == "" {
		return []byte("{}")
	}
	return appendCanonical(make([]byte, 0, len(o.text)), newDecoder(o.text))
}

// appendCanonical reads the next value and appends it.
func appendCanonical(dst []byte, d *jsontext.Decoder) []byte {
	switch d.PeekKind() {
	case '{':
		return appendSorted(dst, d)
	case '[':
		readToken(d)
		dst = append(dst, '[')
		for d.PeekKind() != ']' {
			dst = append(appendCanonical(dst, d), ',')
		}
		readToken(d)
		return closed(dst, ']')
	}
	t := readToken(d)
	switch t.Kind() {
	case '"':
		return appendText(dst, t.String())
	case '0':
		return appendNumber(dst, t.String())
	}
	return append(dst, t.String()...)
}

// appendSorted is appendCanonical for an object.
func appendSorted(dst []byte, d *jsontext.Decoder) []byte {
	type canonicalMember struct {
		name  string
		value []byte
	}
	var members []canonicalMember
	readToken(d)
	for d.PeekKind() != '}' {
		name := readToken(d).String()
		members = append(members, canonicalMember{name, appendCanonical(nil, d)})
	}
	readToken(d)
	slices.SortFunc(members, func(a, b canonicalMember) int { return strings.Compare(a.name, b.name) })

	dst = append(dst, '{')
	for _, m := range members {
		dst = appendText(dst, m.name)
		dst = append(dst, ':')
		dst = append(dst, m.value...)
		dst = append(dst, ',')
	}
	return closed(dst, '}')
}

// closed ends a list whose items all have a comma after them.
func closed(dst []byte, bracket byte) []byte {
	if dst[len(dst)-1] == ',' {
		dst[len(dst)-1] = bracket
		return dst
	}
	return append(dst, bracket)
}
