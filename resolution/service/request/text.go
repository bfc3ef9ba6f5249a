package request

import (
	"encoding/json"
	"strings"
)

// unquote is the text of a string as it is written, quotes and all.
func unquote(written string) string {
	inside := written[1 : len(written)-1]
	if strings.IndexByte(inside, '\\') < 0 {
		return inside
	}
	var s string
	if err := json.Unmarshal([]byte(written), &s); err != nil {
		panic("request: a string of a parsed body is no JSON: " + err.Error()) // Parse lets none through
	}
	return s
}

// appendText appends text, which is UTF-8, as a JSON string. Only what has to
// be escaped is, so that a text has one spelling. Source: RFC 8259 7.
func appendText(dst []byte, text string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&0xF])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// loneSurrogate returns where JSON text, valid and compact, has an escaped half
// of a surrogate pair without the other half: no character, and decoders put
// another in its place. -1 when nowhere.
func loneSurrogate(text string) int {
	for i := 0; ; {
		next := strings.IndexByte(text[i:], '\\')
		if next < 0 {
			return -1
		}
		i += next
		if text[i+1] != 'u' {
			i += 2
			continue
		}
		switch unit := hexUnit(text[i+2:]); {
		case unit < 0xD800 || unit > 0xDFFF:
			i += 6
		case unit > 0xDBFF, !strings.HasPrefix(text[i+6:], `\u`):
			return i
		default:
			if low := hexUnit(text[i+8:]); low < 0xDC00 || low > 0xDFFF {
				return i
			}
			i += 12
		}
	}
}

// hexUnit reads four hex digits.
func hexUnit(text string) (unit int) {
	for i := range 4 {
		switch c := text[i]; {
		case c <= '9':
			unit = unit<<4 | int(c-'0')
		default:
			unit = unit<<4 | int(c|0x20-'a'+10)
		}
	}
	return unit
}
