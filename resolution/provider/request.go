package provider

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/leadetl/leadetl/resolution"
)

// send is a request with placeholders.
type send struct {
	method  string
	target  text // path and query
	json    *tree
	form    []formField
	headers []header
}

type formField struct {
	name  string
	value text
}

// Message is a request as it is sent, without base and key.
type Message struct {
	Method string
	Target string // path and query
	// Type is the content type of the body, "" without one.
	Type    string
	Body    string
	headers []header
}

// Request is how an entry asks about a kind of identifier: one key a request, or many.
type Request struct {
	entry  *Entry
	kind   resolution.Identifier
	one    *send  // nil if there is only a batch
	batch  *batch // nil without one; else it is used
	fields *fields
	name   string
}

// batch is how many keys are asked about in one request.
type batch struct {
	size       int
	ask        send
	each       tree
	in         []string // members to the list of keys; none if it is the body
	with       tree     // the body beside them
	answers    path
	status     *path // of an element, nil if it has the answer's
	id         *identity
	echo       *path  // where a match without id says its key, nil if it does not
	as         string // the name that each element is put under, "" for none
	rules      []rule
	sameAnswer bool
}

// identity is how an element of an answer names its key.
type identity struct {
	send path
	back *path // nil if the name of the member is the id
}

// Name names the question: the kind of identifier, and what is asked without base and key.
func (r *Request) Name() string { return r.name }

// Kind is what is asked about.
func (r *Request) Kind() resolution.Identifier { return r.kind }

// Key is what tells the question about a key from others at this provider: keys with the same
// text are one question. A key that lacks the form which the provider asks for is not askable.
func (r *Request) Key(key string) (rendered string, askable bool) {
	if r.batch != nil {
		element, is := r.batch.each.render(nil, withRef(formOf(key), 0))
		return string(element), is && r.batch.askable(key)
	}
	m, is := r.one.render(formOf(key))
	return strings.TrimSuffix(m.Method+" "+m.Target+"\n"+m.Body, "\n"), is
}

// Message is the request about some keys, all of which are askable; one without a batch.
func (r *Request) Message(keys ...string) (m Message, is bool) {
	if r.batch == nil {
		m, is = r.one.render(formOf(keys[0]))
	} else {
		m, is = r.batch.render(keys)
	}
	m.headers = slices.Concat(r.entry.headers, m.headers)
	return m, is
}

func withRef(value place, ref int) place {
	return func(name string) (string, bool) {
		if name == "ref" {
			return strconv.Itoa(ref), true
		}
		return value(name)
	}
}

// render fills in the placeholders. It is false if one has no value, or a segment of the path
// would be one of dots, which means another path.
func (s *send) render(value place) (m Message, is bool) {
	m = Message{Method: s.method, headers: s.headers}
	if m.Target, is = s.target.render(value, percentEncoded); !is || hasDots(m.Target) {
		return m, false
	}
	switch {
	case s.json != nil:
		body, is := s.json.render(nil, value)
		m.Type, m.Body = "application/json", string(body)
		return m, is
	case s.form != nil:
		var all []string
		for _, f := range s.form {
			v, is := f.value.render(value, asItIs)
			if !is {
				return m, false
			}
			all = append(all, percentEncoded(f.name)+"="+percentEncoded(v))
		}
		m.Type, m.Body = "application/x-www-form-urlencoded", strings.Join(all, "&")
	}
	return m, true
}

func hasDots(target string) bool {
	path, _, _ := strings.Cut(target, "?")
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// places calls yield with the placeholders of a request.
func (s *send) places(yield func(name string)) {
	s.target.places(yield)
	if s.json != nil {
		s.json.places(yield)
	}
	for _, f := range s.form {
		f.value.places(yield)
	}
}

// askable reports whether the request itself can be made for a key.
func (b *batch) askable(key string) bool {
	_, is := b.render([]string{key})
	return is
}

// render makes the request about some keys.
func (b *batch) render(keys []string) (m Message, is bool) {
	list := []byte{'['}
	for i, key := range keys {
		if i > 0 {
			list = append(list, ',')
		}
		if list, is = b.each.render(list, withRef(formOf(key), i+1)); !is {
			return m, false
		}
	}
	list = append(list, ']')
	body := b.with.with(b.in, tree{kind: 'l', literal: string(list)})
	ask := b.ask
	ask.json = &body
	return ask.render(formOf(""))
}

// ids are the ids of keys, as they are sent; nil if elements go by their positions.
func (b *batch) ids(keys []string) []string {
	if b.id == nil {
		return nil
	}
	at, _ := b.each.at(b.id.send)
	ids := make([]string, len(keys))
	for i, key := range keys {
		id, _ := at.render(withRef(formOf(key), i+1), asItIs)
		ids[i] = sameID(id)
	}
	return ids
}

// nameOf is the name of a request. A batch that answers as a single request does has its name.
func nameOf(r *Request) string {
	var d description
	if r.batch == nil || r.one != nil && r.batch.sameAnswer {
		d.send("ask", r.one)
	} else {
		d.batchRequest(r.batch)
	}
	d.headers(r.entry.headers)
	digest := sum(d.String())
	return string(r.kind) + ":" + hex.EncodeToString(digest[:8])
}

// sameID is the spelling of an id that is compared. Addresses have several.
func sameID(id string) string {
	if a, err := netip.ParseAddr(id); err == nil {
		return a.String()
	}
	return id
}
