package request

import (
	"slices"
	"strings"
)

// Canonical is the body in the one spelling that all bodies of its meaning
// share, itself JSON: names sorted by their bytes, no white space, nothing
// escaped that need not be, numbers as digits and exponent. For fingerprints;
// an echo keeps the spelling that came.
func (o Object) Canonical() []byte {
	if o.text == "" {
		return []byte("{}")
	}
	c := cursor{text: o.text}
	return c.appendCanonical(make([]byte, 0, len(o.text)))
}

// appendCanonical moves past the next value and appends it.
func (c *cursor) appendCanonical(dst []byte) []byte {
	switch c.text[c.at] {
	case '{':
		return c.appendSorted(dst)
	case '[':
		dst = append(dst, '[')
		c.each(func(string) {
			dst = c.appendCanonical(dst)
			dst = append(dst, ',')
		})
		return closed(dst, ']')
	case '"':
		return appendText(dst, unquote(c.scalar()))
	case 't', 'f', 'n':
		return append(dst, c.scalar()...)
	}
	return appendNumber(dst, c.scalar())
}

// appendSorted is appendCanonical of an object.
func (c *cursor) appendSorted(dst []byte) []byte {
	type canonicalMember struct {
		name  string
		value []byte
	}
	var members []canonicalMember
	c.each(func(name string) {
		members = append(members, canonicalMember{unquote(name), c.appendCanonical(nil)})
	})
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

// closed ends a list whose items each have a comma behind them.
func closed(dst []byte, bracket byte) []byte {
	if dst[len(dst)-1] == ',' {
		dst[len(dst)-1] = bracket
		return dst
	}
	return append(dst, bracket)
}
