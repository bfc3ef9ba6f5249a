package provider

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
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
	values []string
	hash   string // email_md5 or email_sha256, if it sends nothing else of a key; else ""
}

// batch is how many keys are asked about in one request.
type batch struct {
	size       int
	ask        send
	each       tree
	in         []string // members to the list of keys; none if it is the body
	with       tree     // the body beside them
	answers    path
	noMatch    *path // where ids are without a match, nil if answers has them
	badRow     *path // where ids are that are refused
	status     *path // of an element, nil if it has the answer's
	id         *identity
	echo       *path  // where an element says its key, nil if it does not
	as         string // the name that each element is put under, "" for none
	rules      []rule
	sameAnswer bool
}

// identity is how an element of an answer names its key.
type identity struct {
	kind resolution.Identifier
	send path
	back *path // nil if the name of the member is the id
	id   text  // what is sent
}

// spelling is the one spelling of an id: that of what it is made of, as far as an id is known that
// has a key in it.
func (i *identity) spelling(known *exchange.Asked, id string) string {
	at := slices.IndexFunc(i.id, func(p piece) bool { return kindOf(p.place) != "" })
	if at < 0 {
		return id
	}
	before, after, place := i.id[:at].String(), i.id[at+1:].String(), i.id[at].place
	inner := strings.TrimSuffix(strings.TrimPrefix(id, before), after)
	if key := known.Form(i.kind, inner); key != "" {
		inner, _ = formOf(key)(place)
	}
	if place == "handle" {
		inner = strings.ToLower(inner)
	}
	return before + inner + after
}

// Name names the question: the kind of identifier, and what is asked without base and key.
func (r *Request) Name() string { return r.name }

// Kind is what is asked about.
func (r *Request) Kind() resolution.Identifier { return r.kind }

// Values are the placeholders for values of a person in what is sent, polls included.
func (r *Request) Values() []string { return r.values }

// Question is the key of the question about a key: an address and its hash are one question to who is
// asked about the hash alone. A key that lacks the form which the provider asks for is not askable.
func (r *Request) Question(key string) (question string, askable bool) {
	if r.batch != nil {
		return r.question(key), r.batch.askable(key)
	}
	_, askable = r.one.render(formOf(key))
	return r.question(key), askable
}

func (r *Request) question(key string) string {
	if r.hash == "" {
		return key
	}
	return cmp.Or(emailForm(r.hash, key), key)
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

// ids are the ids of keys, in their one spelling; nil if elements go by their positions.
func (b *batch) ids(known *exchange.Asked, keys []string) []string {
	if b.id == nil {
		return nil
	}
	ids := make([]string, len(keys))
	for i, key := range keys {
		id, _ := b.id.id.render(withRef(formOf(key), i+1), asItIs)
		ids[i] = b.id.spelling(known, id)
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

// formsIn are the placeholders for forms of a key that a request and its polls have.
func formsIn(r *Request) (places []string) {
	add := func(name string) {
		if kindOf(name) == r.kind {
			places = append(places, name)
		}
	}
	if r.batch != nil {
		r.batch.each.places(add)
	}
	if r.one != nil && (r.batch == nil || r.batch.sameAnswer) {
		r.one.places(add)
	}
	if later := r.entry.later; later != nil && later.ask != nil {
		later.ask.places(add)
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// hashOf is the hash of addresses that a request and its polls send, if they send nothing else of a
// key; else "".
func hashOf(r *Request) string {
	if places := formsIn(r); len(places) == 1 && strings.HasPrefix(places[0], "email_") {
		return places[0]
	}
	return ""
}
