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
	text    []byte // compact JSON
	members []member
}

// member is one member of an object.
type member struct {
	name     []byte
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

// compact is body without the white space between its tokens. deep is where the
// first level too many begins, -1 when none does. Of bodies that are no JSON it
// makes something and does not fail.
func compact(body []byte) (text []byte, deep int) {
	text = make([]byte, 0, len(body))
	depth := 0
	for i := 0; i < len(body); i++ {
		switch c := body[i]; c {
		case ' ', '\t', '\r', '\n':
			continue
		case '"':
			end := i + 1
			for end < len(body) && body[end] != '"' {
				if body[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(body)-1)
			text = append(text, body[i:end+1]...)
			i = end
			continue
		case '{', '[':
			if depth++; depth > maxDepth {
				return nil, i
			}
		case '}', ']':
			depth--
		}
		text = append(text, body[i])
	}
	return text, -1
}

// original is where in body the byte is that stands at offset at of its compact
// form. It does the work again, for errors only.
func original(body []byte, at int) int {
	quoted := false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			if at < 2 {
				return i + at
			}
			at -= 2
			i++
			continue
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			continue
		}
		if at == 0 {
			return i
		}
		at--
	}
	return len(body)
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

// read finds the members and returns where a name stands that its object has
// already, -1 when none does.
func (o *Object) read() (twice int) {
	c := cursor{text: o.text}
	var at nameScope
	twice = -1
	c.each(func(written []byte) {
		m := member{name: unquote(written), from: c.at}
		if !at.add(m.name) && twice < 0 {
			twice = c.at - 1 - len(written)
		}
		if inner := walkNames(&c); inner >= 0 && twice < 0 {
			twice = inner
		}
		m.to = c.at
		o.members = append(o.members, m)
	})
	return twice
}

// walkNames moves past the next value and returns where a name in it stands
// twice, -1 for nowhere.
func walkNames(c *cursor) (twice int) {
	if !c.composite() {
		c.scalar()
		return -1
	}
	var at nameScope
	twice = -1
	c.each(func(written []byte) {
		if written != nil && !at.add(unquote(written)) && twice < 0 {
			twice = c.at - 1 - len(written)
		}
		if inner := walkNames(c); inner >= 0 && twice < 0 {
			twice = inner
		}
	})
	return twice
}

// nameScope is the set of the names of one object: a list while they are few,
// which costs no memory, a map when they are many.
type nameScope struct {
	few  [8][]byte
	n    int
	many map[string]struct{}
}

// add reports whether name is new.
func (s *nameScope) add(name []byte) bool {
	if s.many == nil {
		for _, known := range s.few[:s.n] {
			if bytes.Equal(known, name) {
				return false
			}
		}
		if s.n < len(s.few) {
			s.few[s.n] = name
			s.n++
			return true
		}
		s.many = make(map[string]struct{}, 4*len(s.few))
		for _, known := range s.few {
			s.many[string(known)] = struct{}{}
		}
	}
	if _, known := s.many[string(name)]; known {
		return false
	}
	s.many[string(name)] = struct{}{}
	return true
}

// get is the value of a member as it is written, nil when there is none or it
// is null.
func (o Object) get(name string) value {
	for _, m := range o.members {
		if string(m.name) == name {
			if v := value(o.text[m.from:m.to]); v.kind() != nullKind {
				return v
			}
			return nil
		}
	}
	return nil
}
