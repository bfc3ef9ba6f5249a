package client

import (
	"bytes"
	"io"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// value is a JSON value: its own node first, then the nodes of what it
// contains. A missing value is empty.
type value []node

type node struct {
	name string        // of an object's member
	text string        // of a string, without escapes; of other scalars, as written
	size int32         // number of nodes, this one included
	kind jsontext.Kind // 0 for a missing value
}

// decode reads a JSON object; anything else is empty. It accepts names that
// occur twice and bytes that are not UTF-8: many services send them.
//
// One slice of nodes, whose texts share one string, costs a fraction of maps of
// an answer of which a few members are looked at.
func decode(body []byte) value {
	r := reader{
		decoder: jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
		text:    string(body), utf8: utf8.Valid(body), nodes: make(value, 0, len(body)/24+4),
	}
	if r.value("") != nil {
		return nil
	}
	if _, err := r.decoder.ReadToken(); err != io.EOF {
		return nil
	}
	return object(r.nodes)
}

// reader is a decoder of a text that appends its values to nodes.
type reader struct {
	decoder *jsontext.Decoder
	text    string
	utf8    bool // the whole text is
	nodes   value
}

// value reads the next value.
func (r *reader) value(name string) error {
	at, kind := len(r.nodes), r.decoder.PeekKind()
	r.nodes = append(r.nodes, node{name: name, kind: kind})
	var err error
	if kind == '{' || kind == '[' {
		err = r.inside(kind)
	} else {
		r.nodes[at].text, err = r.scalar(kind)
	}
	r.nodes[at].size = int32(len(r.nodes) - at)
	return err
}

// inside reads an object or a list.
func (r *reader) inside(kind jsontext.Kind) error {
	if _, err := r.decoder.ReadToken(); err != nil {
		return err
	}
	for next := r.decoder.PeekKind(); next != '}' && next != ']'; next = r.decoder.PeekKind() {
		var name string
		if kind == '{' {
			var err error
			if name, err = r.scalar('"'); err != nil {
				return err
			}
		}
		if err := r.value(name); err != nil {
			return err
		}
	}
	_, err := r.decoder.ReadToken()
	return err
}

// scalar reads the text of a string, without its escapes, or another scalar as
// it is written.
func (r *reader) scalar(kind jsontext.Kind) (string, error) {
	written, err := r.decoder.ReadValue()
	if err != nil {
		return "", err
	}
	end := int(r.decoder.InputOffset())
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
func (v value) inside() iter.Seq[value] {
	return func(yield func(value) bool) {
		for i := 1; i < len(v); i += int(v[i].size) {
			if !yield(v[i : i+int(v[i].size)]) {
				return
			}
		}
	}
}

// list returns the items of a list. A value alone counts as a list of one; null
// and a missing value have no items.
func list(v value) iter.Seq[value] {
	switch v.kind() {
	case '[':
		return v.inside()
	case 0, 'n':
		return func(func(value) bool) {}
	}
	return func(yield func(value) bool) { yield(v) }
}

// object is v as an object, empty when it is something else.
func object(v value) value {
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
