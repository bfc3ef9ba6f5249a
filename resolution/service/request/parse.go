package request

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds how deep values may be nested, including the body's own
// object. It bounds the stack of all code that walks a body later.
const maxDepth = 32

// ErrMalformed says that a body is not a JSON object that Parse accepts.
var ErrMalformed = errors.New("malformed JSON")

// MalformedError is an ErrMalformed that says what is wrong and where. Its text
// never contains any of the body.
type MalformedError struct {
	What   string // "a name occurs twice in one object"
	Offset int    // of the first wrong byte, from 0; the body's length when it ends too early
}

func (e *MalformedError) Error() string {
	return fmt.Sprintf("%v: %s, at byte %d", ErrMalformed, e.What, e.Offset)
}

// Unwrap returns ErrMalformed.
func (e *MalformedError) Unwrap() error { return ErrMalformed }

// Object is a parsed body: its members in their original order, numbers as they
// were written. It is read-only and safe for concurrent use. The zero value has
// no members.
type Object struct {
	text    string // compact JSON
	members []member
}

// member is one member of an object.
type member struct {
	name     string
	from, to int // position of the value in the text
}

var byteOrderMark = []byte("\uFEFF")

// Parse reads a body: one JSON object in UTF-8 with unique names at every
// level, at most 32 levels deep, followed only by white space. A leading byte
// order mark is skipped. The Object does not refer to body. The error is a
// *MalformedError.
// Source: RFC 8259, and RFC 7493 2.1 and 2.3 for characters and names.
func Parse(body []byte) (Object, error) {
	text := bytes.TrimPrefix(body, byteOrderMark)
	o, wrong := parseObject(text)
	if wrong != nil {
		wrong.Offset += len(body) - len(text)
		return Object{}, wrong
	}
	return o, nil
}

func parseObject(body []byte) (Object, *MalformedError) {
	if !utf8.Valid(body) {
		return Object{}, &MalformedError{"a byte that is not UTF-8", firstInvalid(body)}
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(body))
	o, wrong := compact(d, body)
	if wrong != nil {
		return Object{}, wrong
	}
	if rest := trimSpace(body[d.InputOffset():]); len(rest) > 0 {
		return Object{}, &MalformedError{"more than one value", len(body) - len(rest)}
	}
	if o.text[0] != '{' {
		return Object{}, &MalformedError{"not an object", len(body) - len(trimSpace(body))}
	}
	return o, nil
}

// compact reads the first value of a body from its decoder, and drops the white
// space between its tokens.
func compact(d *jsontext.Decoder, body []byte) (Object, *MalformedError) {
	var text strings.Builder
	text.Grow(len(body)) // once: names point into it
	members := make([]member, 0, 8)
	for text.Len() == 0 || d.StackDepth() > 0 {
		depth := d.StackDepth()
		parent, index := d.StackIndex(depth) // a name and its value count separately
		next := d.PeekKind()
		ends := next == '}' || next == ']'
		isName := parent == '{' && index%2 == 0
		switch {
		case ends || index == 0:
		case parent == '{' && !isName:
			text.WriteByte(':')
		default:
			text.WriteByte(',')
		}
		written, err := read(d, next)
		if err != nil {
			return Object{}, malformed(err, body)
		}
		if d.StackDepth() > maxDepth {
			return Object{}, &MalformedError{"nested deeper than 32 levels", int(d.InputOffset()) - 1}
		}
		from := text.Len()
		text.Write(written)
		if depth == 1 && isName && !ends {
			members = append(members, member{name: unquote(text.String()[from:]), from: text.Len() + len(":")})
		}
		if d.StackDepth() == 1 && len(members) > 0 {
			members[len(members)-1].to = text.Len()
		}
	}
	return Object{text: text.String(), members: members}, nil
}

// read reads a bracket, a name or a scalar as it is written.
func read(d *jsontext.Decoder, next jsontext.Kind) (jsontext.Value, error) {
	switch next {
	case '{', '}', '[', ']':
		_, err := d.ReadToken()
		return jsontext.Value{byte(next)}, err
	}
	return d.ReadValue()
}

// malformed says what is wrong with a body, in words that contain none of it.
func malformed(err error, body []byte) *MalformedError {
	var wrong *jsontext.SyntacticError
	switch {
	case err == io.EOF:
		return &MalformedError{"empty", len(body)}
	case !errors.As(err, &wrong) || errors.Is(err, io.ErrUnexpectedEOF):
		return &MalformedError{"ends before it is complete", len(body)}
	case errors.Is(err, jsontext.ErrDuplicateName):
		return &MalformedError{"a name occurs twice in one object", int(wrong.ByteOffset)}
	case strings.Contains(wrong.Err.Error(), "surrogate pair"): // no error value exists for it
		return &MalformedError{"half of a surrogate pair", int(wrong.ByteOffset)}
	}
	at := int(wrong.ByteOffset)
	if after, comma := bytes.CutPrefix(body[at:], []byte(",")); comma {
		// Of a trailing comma, the bracket behind it is what cannot stand there.
		if rest := trimSpace(after); len(rest) > 0 && (rest[0] == '}' || rest[0] == ']') {
			at = len(body) - len(rest)
		}
	}
	return &MalformedError{"a character that cannot stand there", at}
}

func trimSpace(text []byte) []byte { return bytes.TrimLeft(text, " \t\r\n") }

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

// get returns the value of a member as it is written; empty when the member is
// missing or null.
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

// Pick returns the members with one of the names, as JSON without braces.
func (o Object) Pick(names []string) []byte {
	var picked []byte
	for _, m := range o.members {
		if slices.Contains(names, m.name) {
			if picked != nil {
				picked = append(picked, ',')
			}
			picked = append(appendText(picked, m.name), ':')
			picked = append(picked, o.text[m.from:m.to]...)
		}
	}
	return picked
}
