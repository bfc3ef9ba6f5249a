package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

// maxDepth is how deep values may lie in each other, the body's object
// included: deep enough for anything written by hand, and a bound for all that
// walks over a body afterwards.
const maxDepth = 32

// Object is a parsed body: its members in the order given, numbers as they were
// written. It is read only and may be used from any number of goroutines. The
// zero value has no members.
type Object struct {
	text    string // compact JSON
	members []member
}

// member is one member of an object.
type member struct {
	name     string
	from, to int // where the value is in the text
}

var byteOrderMark = []byte("\uFEFF")

// Parse reads a body: one JSON object in UTF-8, of distinct names all the way
// down, not deeper than 32, and nothing behind it but white space. A byte order
// mark before it is passed over. The Object keeps nothing of body. The error is
// a *MalformedError.
// Source: RFC 8259, and RFC 7493 2.1 and 2.3 for characters and names.
func Parse(body []byte) (Object, error) {
	whole := body
	body = bytes.TrimPrefix(body, byteOrderMark)
	fail := func(what string, offset int) (Object, error) {
		return Object{}, &MalformedError{What: what, Offset: offset + len(whole) - len(body)}
	}

	if !utf8.Valid(body) {
		return fail("a byte that is not UTF-8", firstInvalid(body))
	}
	text, deep := compact(body)
	if deep >= 0 {
		return fail("nested deeper than 32 levels", deep)
	}
	if !json.Valid(body) {
		return fail(syntax(body))
	}
	if text[0] != '{' {
		return fail("not an object", original(body, 0))
	}
	if at := loneSurrogate(text); at >= 0 {
		return fail("half of a surrogate pair", original(body, at))
	}
	o := Object{text: text, members: make([]member, 0, 8)}
	if at := o.read(); at >= 0 {
		return fail("a name occurs twice in one object", original(body, at))
	}
	return o, nil
}

// syntax says what is wrong with a body that is no JSON, and where.
func syntax(body []byte) (what string, offset int) {
	d := json.NewDecoder(bytes.NewReader(body))
	var value json.RawMessage
	err := d.Decode(&value)
	var wrong *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF):
		return "empty", len(body)
	case errors.As(err, &wrong):
		return "a character that cannot stand there", int(wrong.Offset) - 1
	case err != nil:
		return "ends before it is complete", len(body)
	}
	end := int(d.InputOffset())
	return "more than one value", end + len(body[end:]) - len(bytes.TrimLeft(body[end:], " \t\r\n"))
}

func firstInvalid(body []byte) int {
	for i := 0; i < len(body); {
		r, n := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && n <= 1 {
			return i
		}
		i += n
	}
	return len(body)
}

// get is the value of a member as it is written, empty when there is none or it
// is null.
func (o Object) get(name string) value {
	for _, m := range o.members {
		if m.name == name {
			if v := value(o.text[m.from:m.to]); v.kind() != nullKind {
				return v
			}
			return ""
		}
	}
	return ""
}
