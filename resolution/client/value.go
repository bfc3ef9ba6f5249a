package client

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// value is a value of a JSON text: itself first, and behind it what it holds.
// It is empty where there is none. Texts share the memory of the whole.
type value []node

// node is one value of a text.
type node struct {
	name    string // of an object's member
	text    string // as it is written; of objects and lists "" as nobody asks
	size    int32  // how many nodes belong to it, with itself
	kind    byte   // the first of its characters, 0 for a number
	rewrite bool   // of a string: that what it stands for is not what is written
}

// decode reads a JSON object. It is empty when the text is none.
//
// encoding/json says whether the text is JSON at all. What is left is to find
// where its values begin and end, for a fraction of what it costs to make maps
// of an answer of which a few members are looked at.
func decode(body []byte) value {
	if !json.Valid(body) {
		return nil
	}
	r := reader{text: string(body), utf8: utf8.Valid(body)}
	r.nodes = make([]node, 0, len(body)/24+4)
	r.value("")
	return object(r.nodes)
}

// reader goes through a text that is JSON.
type reader struct {
	text  string
	at    int
	utf8  bool // the text is
	nodes []node
}

// value reads the value that comes next.
func (r *reader) value(name string) {
	r.space()
	n, start := len(r.nodes), r.at
	r.nodes = append(r.nodes, node{name: name, kind: r.text[start]})
	switch r.text[start] {
	case '{':
		for r.at++; r.more('}'); {
			name, rewrite := r.string()
			if rewrite {
				name = rewritten(name)
			} else {
				name = name[1 : len(name)-1]
			}
			r.space()
			r.at++ // the colon
			r.value(name)
		}
	case '[':
		for r.at++; r.more(']'); {
			r.value("")
		}
	case '"':
		r.nodes[n].text, r.nodes[n].rewrite = r.string()
	default:
		for r.at < len(r.text) && !ends(r.text[r.at]) {
			r.at++
		}
		r.nodes[n].text = r.text[start:r.at]
		if c := r.text[start]; c == '-' || c >= '0' && c <= '9' {
			r.nodes[n].kind = 0
		}
	}
	r.nodes[n].size = int32(len(r.nodes) - n)
}

// more goes to the next member or item, if there is one before the end, and
// else behind the end.
func (r *reader) more(end byte) bool {
	r.space()
	if r.text[r.at] == ',' {
		r.at++
		r.space()
	}
	if r.text[r.at] != end {
		return true
	}
	r.at++
	return false
}

// string goes behind a string, which it returns as it is written. rewrite says
// that what the string stands for is something else.
func (r *reader) string() (text string, rewrite bool) {
	start := r.at
	r.at++
	if n := strings.IndexByte(r.text[r.at:], '"'); strings.IndexByte(r.text[r.at:r.at+n], '\\') < 0 {
		r.at += n + 1
		return r.text[start:r.at], !r.utf8
	}
	for ; r.text[r.at] != '"'; r.at++ {
		if r.text[r.at] == '\\' {
			r.at++
		}
	}
	r.at++
	return r.text[start:r.at], true
}

func (r *reader) space() {
	for r.at < len(r.text) && isSpace(r.text[r.at]) {
		r.at++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// ends tells what comes behind a number or a word.
func ends(c byte) bool { return c == ',' || c == ']' || c == '}' || isSpace(c) }

// rewritten is what a string stands for.
func rewritten(text string) (s string) {
	_ = json.Unmarshal([]byte(text), &s) // a string of a text that is JSON
	return s
}

// kind is the first character of a value, 0 for a number, and 'x' for none.
func (v value) kind() byte {
	if len(v) == 0 {
		return 'x'
	}
	return v[0].kind
}

// get is the member of an object that has the name, the last of several.
func (v value) get(name string) (found value) {
	for i := 1; i < len(v); i += int(v[i].size) {
		if v[i].name == name {
			found = v[i : i+int(v[i].size)]
		}
	}
	return found
}

// inside are the members or items of a value, one behind the other: see cut.
func (v value) inside() value {
	if len(v) == 0 {
		return nil
	}
	return v[1:]
}

// cut takes the first from several values. Both are empty behind the last:
//
//	for v, rest := list(m).cut(); len(v) > 0; v, rest = rest.cut()
func (v value) cut() (first, rest value) {
	if len(v) == 0 {
		return nil, nil
	}
	return v[:v[0].size], v[v[0].size:]
}

// object is v as an object, empty when it is none.
func object(v value) value {
	if v.kind() == '{' {
		return v
	}
	return nil
}

// list is v as a list, to be cut: a value alone is a list of one, null and
// absence none.
func list(v value) value {
	switch v.kind() {
	case '[':
		return v.inside()
	case 'x', 'n':
		return nil
	}
	return v
}

// text is v as text: a string without the space around it, a number as it is
// written, "" for everything else.
func text(v value) string {
	switch v.kind() {
	case '"':
		if v[0].rewrite {
			return strings.TrimSpace(rewritten(v[0].text))
		}
		return strings.TrimSpace(v[0].text[1 : len(v[0].text)-1])
	case 0:
		return v[0].text
	}
	return ""
}

// truth is v as a yes or no; is says that it is one.
func truth(v value) (yes, is bool) {
	return v.kind() == 't', v.kind() == 't' || v.kind() == 'f'
}
