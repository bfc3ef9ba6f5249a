package provider

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/leadetl/leadetl/internal/yamltree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/person"
)

// text is text with placeholders, such as /v1/{email}.
type text []piece

// maxPieces bounds a text.
const maxPieces = 32

// piece is text as it is, or a placeholder.
type piece struct{ literal, place string }

// parseText reads a text in which {name} is a placeholder and {{ a brace. A text without quotes
// has none.
func parseText(n *yamltree.Node) (t text, err error) {
	rest := n.Text
	if !n.Quoted && strings.Contains(rest, "{") {
		return nil, errors.New("text with placeholders is written in quotes")
	}
	var literal strings.Builder
	for rest != "" {
		before, after, found := strings.Cut(rest, "{")
		literal.WriteString(before)
		switch {
		case !found:
			rest = ""
		case strings.HasPrefix(after, "{"):
			literal.WriteByte('{')
			rest = after[1:]
		default:
			name, following, closed := strings.Cut(after, "}")
			if !closed || name == "" || strings.ContainsAny(name, "{ ") {
				return nil, errors.New("a { without a placeholder such as {email}; write {{ for a brace")
			}
			if literal.Len() > 0 {
				t = append(t, piece{literal: literal.String()})
				literal.Reset()
			}
			t = append(t, piece{place: name})
			rest = following
		}
		if len(t) > maxPieces {
			return nil, errors.New("a text with too many placeholders")
		}
	}
	if literal.Len() > 0 {
		t = append(t, piece{literal: literal.String()})
	}
	return t, nil
}

// places calls yield with the placeholders.
func (t text) places(yield func(name string)) {
	for _, p := range t {
		if p.place != "" {
			yield(p.place)
		}
	}
}

// render fills the placeholders with their values, each changed by encode. It is false if one has
// no value.
func (t text) render(value place, encode func(string) string) (string, bool) {
	var b strings.Builder
	for _, p := range t {
		if p.place == "" {
			b.WriteString(p.literal)
			continue
		}
		v, is := value(p.place)
		if !is {
			return "", false
		}
		b.WriteString(encode(v))
	}
	return b.String(), true
}

func asItIs(s string) string { return s }

// String writes a text as in a file.
func (t text) String() string {
	var b strings.Builder
	for _, p := range t {
		if p.place != "" {
			b.WriteString("{" + p.place + "}")
		} else {
			b.WriteString(strings.ReplaceAll(p.literal, "{", "{{"))
		}
	}
	return b.String()
}

// percentEncoded keeps A–Z a–z 0–9 - . _ ~ alone, so that a value is one segment of a path or one
// value of a query.
func percentEncoded(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

// tree is a JSON value with placeholders in its texts: a text, an object, a list, or a literal
// such as 7 or true.
type tree struct {
	kind    byte // '"', '{', '[' or 'l'
	text    text
	literal string
	items   []tree
	names   []string // of the items of an object, in order
}

// tree reads a value that is sent as JSON, where no value is null. Text without quotes that JSON knows as
// a number or a boolean is that.
func (r *reader) tree(n *yamltree.Node) (t tree) {
	switch n.Kind {
	case yamltree.Null:
		if n.Text == "" {
			r.fail(n, "%s has no value; write null, or quote a placeholder", titled(n))
		}
		return tree{kind: 'l', literal: "null"}
	case yamltree.Text:
		if !n.Quoted && isLiteral(n.Text) {
			return tree{kind: 'l', literal: n.Text}
		}
		var err error
		t.kind = '"'
		t.text, err = parseText(n)
		r.failed(n, err)
		return t
	case yamltree.List:
		t.kind = '['
	default:
		t.kind = '{'
	}
	items := slices.Clone(n.Items)
	if t.kind == '{' {
		slices.SortFunc(items, func(a, b *yamltree.Node) int { return strings.Compare(a.Name, b.Name) })
	}
	for _, item := range items {
		t.items, t.names = append(t.items, r.tree(item)), append(t.names, item.Name)
	}
	return t
}

// isLiteral reports whether JSON knows a text as a number or a boolean.
func isLiteral(s string) bool {
	v := jsontext.Value(s)
	return v.IsValid() && s == strings.TrimSpace(s) && strings.IndexByte(`"{[`, s[0]) < 0
}

func (t tree) places(yield func(name string)) {
	t.text.places(yield)
	for _, item := range t.items {
		item.places(yield)
	}
}

// render appends the JSON.
func (t tree) render(to []byte, value place) (_ []byte, is bool) {
	switch t.kind {
	case 'l':
		return append(to, t.literal...), true
	case '"':
		s, is := t.text.render(value, asItIs)
		if !is {
			return nil, false
		}
		return appendQuoted(to, s), true
	}
	to = append(to, t.kind)
	for i, item := range t.items {
		if i > 0 {
			to = append(to, ',')
		}
		if t.kind == '{' {
			to = append(appendQuoted(to, t.names[i]), ':')
		}
		if to, is = item.render(to, value); !is {
			return nil, false
		}
	}
	return append(to, t.kind+2), true
}

// appendQuoted appends a text as JSON. Bytes that are not UTF-8 become the character for that.
func appendQuoted(to []byte, s string) []byte {
	to, _ = jsontext.AppendQuote(to, s)
	return to
}

// at is the text that a path leads to in a tree; false without one.
func (t tree) at(p path) (text, bool) {
	if len(p) == 0 {
		return t.text, t.kind == '"'
	}
	for i, item := range t.items {
		if t.kind == '{' && t.names[i] == p[0].name || t.kind == '[' && i == p[0].index {
			return item.at(p[1:])
		}
	}
	return nil, false
}

// with puts a value at a path of members.
func (t tree) with(p []string, value tree) tree {
	if len(p) == 0 {
		return value
	}
	t.items, t.names = slices.Clone(t.items), slices.Clone(t.names)
	i, found := slices.BinarySearch(t.names, p[0])
	if !found {
		t.items, t.names = slices.Insert(t.items, i, tree{kind: '{'}), slices.Insert(t.names, i, p[0])
	}
	t.items[i] = t.items[i].with(p[1:], value)
	return t
}

// formsOf are the placeholders for the forms of a key, by the kind of identifier.
var formsOf = map[resolution.Identifier][]string{
	resolution.Email:      {"email", "email_md5", "email_sha256"},
	resolution.NetworkURL: {"network_url", "network_url_https", "handle"},
	resolution.IP:         {"ip"},
	resolution.Phone:      {"phone"},
	resolution.Person:     person.Names,
}

// kindOf is the kind of identifier that a placeholder is a form of, "" if it is none.
func kindOf(placeholder string) resolution.Identifier {
	for kind, names := range formsOf {
		if slices.Contains(names, placeholder) {
			return kind
		}
	}
	return ""
}

// place returns the value of a placeholder; false if it has none.
type place func(name string) (value string, is bool)

// formOf are the forms of a key. A key that lacks a form of its kind is not asked about.
func formOf(key string) place {
	return func(name string) (value string, is bool) {
		if !utf8.ValidString(key) {
			return "", false
		}
		switch name {
		case "network_url", "ip", "phone":
			value = key
		case "network_url_https":
			value = "https://" + key
		case "handle":
			value = handle(key)
		default:
			if value = emailForm(name, key); person.Is(name) {
				value = person.Values(key)[name]
			}
		}
		return value, value != ""
	}
}

// handle is the name of a person's page in the network, "" for any other page.
func handle(key string) string {
	_, name, found := strings.Cut(key, "/in/")
	if host, _, _ := strings.Cut(key, "/"); !found || !strings.HasPrefix(key, host+"/in/") || strings.ContainsAny(name, "/?#") {
		return ""
	}
	return name
}

// emailForm is a form of a key that is an address or a digest of one.
func emailForm(name, key string) string {
	if !strings.Contains(key, "@") {
		lengths := map[string]int{"email_md5": 32, "email_sha256": 64}
		if len(key) == lengths[name] {
			return key
		}
		return ""
	}
	switch name {
	case "email":
		return key
	case "email_md5":
		sums := email.Sum([]byte(key))
		return hex.EncodeToString(sums.MD5[:])
	case "email_sha256":
		sums := email.Sum([]byte(key))
		return hex.EncodeToString(sums.SHA256[:])
	}
	return ""
}
