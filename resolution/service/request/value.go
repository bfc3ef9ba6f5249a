package request

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// value is a JSON value of a parsed body, as compact text; empty if it is missing.
type value string

// The kinds of values that fields are asked for.
const (
	nullKind    jsontext.Kind = 'n'
	booleanKind jsontext.Kind = 't' // true and false
	numberKind  jsontext.Kind = '0'
	stringKind  jsontext.Kind = '"'
	arrayKind   jsontext.Kind = '['
	objectKind  jsontext.Kind = '{'
)

// expected is the detail of a problem with a value of another kind.
var expected = map[jsontext.Kind]string{
	booleanKind: "must be true or false",
	numberKind:  "must be a number",
	stringKind:  "must be a string",
	arrayKind:   "must be an array",
	objectKind:  "must be an object",
}

func (v value) kind() jsontext.Kind {
	if v[0] == 'f' {
		return booleanKind
	}
	return jsontext.Value(v[:1]).Kind()
}

// text is the content of a string.
func (v value) text() string { return unquote(string(v)) }

// each calls visit for every item of an array.
func (v value) each(visit func(item value)) {
	d := newDecoder(string(v))
	readToken(d)
	for d.PeekKind() != ']' {
		item, err := d.ReadValue()
		if err != nil {
			panic(notJSON + err.Error())
		}
		visit(value(item))
	}
}

// count is the number of items in an array.
func (v value) count() (n int) {
	v.each(func(value) { n++ })
	return n
}

// notJSON begins a panic: Parse accepts only JSON.
const notJSON = "request: a parsed body is not JSON: "

// newDecoder returns a decoder of text from a parsed body, whose names and
// characters were checked.
func newDecoder(text string) *jsontext.Decoder {
	return jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true))
}

func readToken(d *jsontext.Decoder) jsontext.Token {
	t, err := d.ReadToken()
	if err != nil {
		panic(notJSON + err.Error())
	}
	return t
}

// unquote returns the text of a string written with its quotes.
func unquote(written string) string {
	if strings.IndexByte(written, '\\') < 0 {
		return written[1 : len(written)-1]
	}
	text, err := jsontext.AppendUnquote(nil, written)
	if err != nil {
		panic(notJSON + err.Error())
	}
	return string(text)
}

// appendText appends UTF-8 text as a JSON string. It escapes only what must be
// escaped, so that a text has one spelling. Source: RFC 8259 7.
//
// jsontext.AppendQuote writes \n for a line feed; fingerprints that are stored
// were made with \u000a.
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
