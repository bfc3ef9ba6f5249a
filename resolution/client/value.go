package client

import (
	"bytes"
	"io"
	"iter"
	"regexp"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// value is a JSON value: its own node first, then the nodes of what it
// contains. A missing value is empty.
type value []node

type node struct {
	name string        // of an object's member
	text string        // of a string, without escapes; of an object, a list and other scalars, as written
	size int32         // number of nodes, this one included
	kind jsontext.Kind // 0 for a missing value
}

// decoder reads JSON. One slice of nodes costs a fraction of maps of an answer
// of which a few members are looked at.
type decoder struct {
	tokens *jsontext.Decoder
	body   bytes.Buffer
	text   string // of body
	utf8   bool   // the whole text is
	nodes  value
}

var tolerant = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// decode reads a JSON object, or a list of one; anything else is empty. It accepts
// names that occur twice, bytes that are not UTF-8, and NaN and infinities as null:
// many services send them. The value is valid until the next decode. Its texts are
// valid for longer: they are parts of body, which must not change afterwards.
func (r *decoder) decode(body []byte) value {
	v := r.strictly(body)
	if v == nil {
		if without, any := withoutNaN(body); any {
			v = r.strictly(without)
		}
	}
	return v
}

// strictly is decode for numbers as JSON has them.
func (r *decoder) strictly(body []byte) value {
	r.body = *bytes.NewBuffer(body)
	if r.tokens == nil {
		r.tokens = jsontext.NewDecoder(&r.body, tolerant...)
	} else {
		r.tokens.Reset(&r.body, tolerant...)
	}
	r.text, r.utf8 = unsafe.String(unsafe.SliceData(body), len(body)), utf8.Valid(body)
	if cap(r.nodes) == 0 {
		r.nodes = make(value, 0, len(body)/24+4)
	}
	r.nodes = r.nodes[:0]
	if r.value("") != nil {
		return nil
	}
	if _, err := r.tokens.ReadToken(); err != io.EOF {
		return nil
	}
	return object(r.nodes)
}

// maxKeptNodes bounds the memory that is used again: a page of a search has
// tens of thousands of nodes.
const maxKeptNodes = 1024

// forget drops the texts of the last body.
func (r *decoder) forget() {
	r.text, r.body = "", bytes.Buffer{}
	if cap(r.nodes) > maxKeptNodes {
		r.nodes = nil
	}
	clear(r.nodes)
}

// value reads the next value.
func (r *decoder) value(name string) error {
	at, kind := len(r.nodes), r.tokens.PeekKind()
	r.nodes = append(r.nodes, node{name: name, kind: kind})
	var err error
	if kind == '{' || kind == '[' {
		r.nodes[at].text, err = r.inside(kind)
	} else {
		r.nodes[at].text, err = r.scalar(kind)
	}
	r.nodes[at].size = int32(len(r.nodes) - at)
	return err
}

// inside reads an object or a list, and returns it as it is written.
func (r *decoder) inside(kind jsontext.Kind) (string, error) {
	if _, err := r.tokens.ReadToken(); err != nil {
		return "", err
	}
	from := r.tokens.InputOffset() - 1
	for next := r.tokens.PeekKind(); next != '}' && next != ']'; next = r.tokens.PeekKind() {
		var name string
		if kind == '{' {
			var err error
			if name, err = r.scalar('"'); err != nil {
				return "", err
			}
		}
		if err := r.value(name); err != nil {
			return "", err
		}
	}
	if _, err := r.tokens.ReadToken(); err != nil {
		return "", err
	}
	return r.text[from:r.tokens.InputOffset()], nil
}

// scalar reads the text of a string, without its escapes, or another scalar as
// it is written.
func (r *decoder) scalar(kind jsontext.Kind) (string, error) {
	written, err := r.tokens.ReadValue()
	if err != nil {
		return "", err
	}
	end := int(r.tokens.InputOffset())
	text := r.text[end-len(written) : end]
	switch {
	case kind != '"':
		return text, nil
	case r.utf8 && strings.IndexByte(text, '\\') < 0:
		return text[1 : len(text)-1], nil
	}
	unquoted, _ := jsontext.AppendUnquote(nil, text) // the error is about invalid characters, which it replaces
	return string(unquoted), nil
}

func (v value) kind() jsontext.Kind {
	if len(v) == 0 {
		return 0
	}
	return v[0].kind
}

// get returns the member of an object with the name, the last one of several.
func (v value) get(name string) (found value) {
	for i := 1; i < len(v); i += int(v[i].size) {
		if v[i].name == name {
			found = v[i : i+int(v[i].size)]
		}
	}
	return found
}

// inside returns the members of an object or the items of a list.
func (v value) inside() values {
	if len(v) == 0 {
		return nil
	}
	return values(v[1:])
}

// values are the nodes of values, one after another.
type values []node

// all yields the values. It is short enough that the compiler inlines it, which
// saves a loop its memory.
func (v values) all() iter.Seq[value] {
	return func(yield func(value) bool) {
		for i := 0; i < len(v); i += int(v[i].size) {
			if !yield(value(v[i : i+int(v[i].size)])) {
				return
			}
		}
	}
}

// list returns the items of a list. A value alone counts as a list of one; null
// and a missing value have no items.
func list(v value) values {
	switch v.kind() {
	case '[':
		return v.inside()
	case 0, 'n':
		return nil
	}
	return values(v)
}

// object is v as an object, empty when it is something else. A list of one object
// is that object.
func object(v value) value {
	if v.kind() == '[' && len(v) > 1 && len(v) == 1+int(v[1].size) {
		v = v[1:]
	}
	if v.kind() == '{' {
		return v
	}
	return nil
}

// text is v as text: a string without surrounding space, a number as it is
// written, "" for everything else.
func text(v value) string {
	switch v.kind() {
	case '"', '0':
		return strings.TrimSpace(v[0].text)
	}
	return ""
}

// truth is v as a boolean; is reports whether it is one.
func truth(v value) (yes, is bool) {
	return v.kind() == 't', v.kind() == 't' || v.kind() == 'f'
}

// noNumbers are texts, or words for numbers that JSON does not have.
var noNumbers = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|(?i:[-+]?\b(?:nan|inf|infinity)\b)`)

// withoutNaN returns a body with null in the place of words for numbers that JSON does
// not have, and whether there are any.
func withoutNaN(body []byte) (without []byte, any bool) {
	without = noNumbers.ReplaceAllFunc(body, func(found []byte) []byte {
		if found[0] == '"' {
			return found
		}
		any = true
		return []byte("null")
	})
	return without, any
}
