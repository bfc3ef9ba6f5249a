// Package jsontree reads JSON as services send it: tolerant, and without a map or a text of its
// own for each value. A tree is one slice of nodes, of which a few are looked at.
package jsontree

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"regexp"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// Value is a JSON value. The first node is the value itself; the nodes of its
// members or items follow. A missing value is empty.
type Value []node

type node struct {
	name string        // of an object's member
	text string        // of a string, without escapes; of an object, a list and other scalars, as written
	size int32         // number of nodes, this one included
	kind jsontext.Kind // 0 for a missing value
}

// Decoder reads JSON. One slice of nodes costs a fraction of maps of an answer
// of which a few members are looked at.
type Decoder struct {
	// Most bounds the values in a body, each of which takes 48 bytes; 0 is no bound. One with
	// more is not read.
	Most int

	tokens *jsontext.Decoder
	body   bytes.Buffer
	text   string // of body
	utf8   bool   // the whole text is
	nodes  Value
}

var tolerant = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// Decode reads one JSON value; it is empty if the body is anything else. It accepts
// names that occur twice, bytes that are not UTF-8, and NaN and infinities as null:
// many services send them. The value is valid until the next Decode. Its texts are
// valid for longer: they are parts of body, which must not change afterwards.
func (r *Decoder) Decode(body []byte) Value {
	v := r.strictly(body)
	if v == nil {
		if without, any := withoutNaN(body); any {
			v = r.strictly(without)
		}
	}
	return v
}

// strictly is Decode for numbers as JSON has them.
func (r *Decoder) strictly(body []byte) Value {
	r.body = *bytes.NewBuffer(body)
	if r.tokens == nil {
		r.tokens = jsontext.NewDecoder(&r.body, tolerant...)
	} else {
		r.tokens.Reset(&r.body, tolerant...)
	}
	r.text, r.utf8 = unsafe.String(unsafe.SliceData(body), len(body)), utf8.Valid(body)
	if cap(r.nodes) == 0 {
		r.nodes = make(Value, 0, len(body)/24+4)
	}
	r.nodes = r.nodes[:0]
	if r.value("") != nil {
		return nil
	}
	if _, err := r.tokens.ReadToken(); err != io.EOF {
		return nil
	}
	return r.nodes
}

// maxKeptNodes bounds the memory that is used again: a page of a search has
// tens of thousands of nodes.
const maxKeptNodes = 1024

// Forget drops the texts of the last body.
func (r *Decoder) Forget() {
	r.text, r.body = "", bytes.Buffer{}
	if cap(r.nodes) > maxKeptNodes {
		r.nodes = nil
	}
	clear(r.nodes)
}

var errTooMany = errors.New("more values than may be read")

// value reads the next value.
func (r *Decoder) value(name string) error {
	at, kind := len(r.nodes), r.tokens.PeekKind()
	if r.Most > 0 && at >= r.Most {
		return errTooMany
	}
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
func (r *Decoder) inside(kind jsontext.Kind) (string, error) {
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
func (r *Decoder) scalar(kind jsontext.Kind) (string, error) {
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

// Kind is the kind of a value, by its first character; 0 if it is missing.
func (v Value) Kind() jsontext.Kind {
	if len(v) == 0 {
		return 0
	}
	return v[0].kind
}

// Name is the name of a member of an object.
func (v Value) Name() string {
	if len(v) == 0 {
		return ""
	}
	return v[0].name
}

// Written is a string without its quotes and escapes, and any other value as it is written.
func (v Value) Written() string {
	if len(v) == 0 {
		return ""
	}
	return v[0].text
}

// Get returns the member of an object with the name, the last one of several.
func (v Value) Get(name string) (found Value) {
	for i := 1; i < len(v); i += int(v[i].size) {
		if v[i].name == name {
			found = v[i : i+int(v[i].size)]
		}
	}
	return found
}

// Inside returns the members of an object or the items of a list.
func (v Value) Inside() Values {
	if len(v) == 0 {
		return nil
	}
	return Values(v[1:])
}

// Values are the nodes of values, one after another.
type Values []node

// All yields the values. It is short enough that the compiler inlines it, which
// saves a loop its memory.
func (v Values) All() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for i := 0; i < len(v); i += int(v[i].size) {
			if !yield(Value(v[i : i+int(v[i].size)])) {
				return
			}
		}
	}
}

// List returns the items of a list. A value alone counts as a list of one; null
// and a missing value have no items.
func List(v Value) Values {
	switch v.Kind() {
	case '[':
		return v.Inside()
	case 0, 'n':
		return nil
	}
	return Values(v)
}

// Object is v as an object, empty when it is something else. A list of one object
// is that object.
func Object(v Value) Value {
	if v.Kind() == '[' && len(v) > 1 && len(v) == 1+int(v[1].size) {
		v = v[1:]
	}
	if v.Kind() == '{' {
		return v
	}
	return nil
}

// Text is v as text: a string without surrounding space, a number as it is
// written, "" for everything else.
func Text(v Value) string {
	switch v.Kind() {
	case '"', '0':
		return strings.TrimSpace(v[0].text)
	}
	return ""
}

// Truth is v as a boolean; is reports whether it is one.
func Truth(v Value) (yes, is bool) {
	return v.Kind() == 't', v.Kind() == 't' || v.Kind() == 'f'
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
