package provider

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/yamltree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/person"
)

// ofTransport are headers that are not for an entry to set.
var ofTransport = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Accept-Encoding", "Content-Encoding", "Expect", "Upgrade", "Te", "Trailer"}

// headers reads headers that are sent with a request. They have no placeholders.
func (r *reader) headers(n *yamltree.Node) (all []header) {
	for name, m := range members(n) {
		name = http.CanonicalHeaderKey(name)
		if slices.Contains(ofTransport, name) {
			r.fail(m, "the header %s is not for an entry to set", name)
		}
		all = append(all, header{name, m.Text})
	}
	slices.SortFunc(all, func(a, b header) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.value, b.value))
	})
	return all
}

// send reads a request: METHOD /path?query, or a map with it, a body and headers.
func (r *reader) send(n *yamltree.Node) (s send) {
	line := n
	if m := members(n); m["send"] != nil {
		line = m["send"]
		r.body(&s, m["json"], m["form"])
		s.headers = r.headers(m["headers"])
	}
	if textOf(line) == "" {
		return s
	}
	var is bool
	t, err := parseText(line)
	r.failed(line, err)
	if err != nil || len(t) == 0 {
		return s
	}
	s.method, t[0].literal, is = strings.Cut(t[0].literal, " ")
	if !is || s.method != http.MethodGet && s.method != http.MethodPost || !strings.HasPrefix(t[0].literal, "/") {
		r.fail(line, `a request has the form "GET /path" or "POST /path"`)
		return s
	}
	if s.method == http.MethodGet && (s.json != nil || s.form != nil) {
		r.fail(line, "a GET has no body; write POST")
	}
	for i, p := range t {
		if strings.ContainsFunc(p.literal, isNotInURL) {
			r.fail(line, "a path or query has a character that has to be written as %% and two digits")
		}
		t[i].literal = strings.NewReplacer("{", "%7B", "}", "%7D").Replace(p.literal)
	}
	s.target = t
	return s
}

func isNotInURL(c rune) bool {
	return c <= ' ' || c > '~' || strings.ContainsRune("\"#<>\\^`|", c)
}

func (r *reader) body(s *send, json, form *yamltree.Node) {
	switch {
	case json != nil && form != nil:
		r.fail(form, "a request has json or form, not both")
	case json != nil:
		t := r.tree(json)
		s.json = &t
	case form != nil:
		s.form = []formField{}
		for _, m := range form.Items {
			t, err := parseText(m)
			r.failed(m, err)
			s.form = append(s.form, formField{m.Name, t})
		}
		slices.SortFunc(s.form, func(a, b formField) int { return strings.Compare(a.name, b.name) })
	}
}

// checkPlaces refuses placeholders that a request cannot have.
func (r *reader) checkPlaces(n *yamltree.Node, places func(yield func(string)), known []string) (found []string) {
	places(func(name string) {
		if !slices.Contains(known, name) {
			r.fail(n, "{%s} is no placeholder here%s", name, suggest(name, known))
		}
		found = append(found, name)
	})
	return found
}

// requests reads ask and batch.
func (r *reader) requests(ask, batch *yamltree.Node, e *Entry) {
	known := []string{string(resolution.NetworkURL), string(resolution.Email), string(resolution.IP), string(resolution.Person)}
	if e.Check != "" {
		known = []string{string(e.Check)}
	}
	for name, n := range members(ask) {
		kind := resolution.Identifier(name)
		if !slices.Contains(known, name) {
			r.fail(n, "%s is no key of \"ask\"%s", quoted(name), suggest(name, known))
			continue
		}
		s := r.send(n)
		if places := r.checkPlaces(n, s.places, formsOf[kind]); len(places) == 0 && s.method != "" {
			r.fail(n, "the request does not name its key: write {%s} in it", formsOf[kind][0])
		}
		e.requests[kind] = &Request{entry: e, kind: kind, one: &s, fields: &e.fields}
	}
	if batch != nil {
		r.batch(batch, e)
	}
}

// batch reads how many keys are asked about in one request. Their kind follows from each.
func (r *reader) batch(n *yamltree.Node, e *Entry) {
	m := members(n)
	if m["ask"] == nil || m["each"] == nil {
		return
	}
	b := &batch{size: int(count(m["size"], 1)), ask: r.send(m["ask"]), as: textOf(m["as"]), sameAnswer: textOf(m["same_answer"]) == "true"}
	if b.ask.method == http.MethodGet || b.ask.json != nil || b.ask.form != nil {
		r.fail(m["ask"], "a batch is a POST whose body are in and with")
	}
	r.checkPlaces(m["ask"], b.ask.places, nil)
	b.each = r.tree(m["each"])
	b.with = tree{kind: '{'}
	if m["with"] != nil {
		b.with = r.tree(m["with"])
		r.checkPlaces(m["with"], b.with.places, nil)
	}
	if in := textOf(m["in"]); in != "." {
		b.in = strings.Split(in, ".")
	} else if len(b.with.items) > 0 {
		r.fail(m["with"], "the body is the list alone (in: \".\"), so it has no other members")
	}
	if answers := r.path(m["answers"]); answers != nil {
		b.answers = *answers
	}
	b.status, b.echo, b.rules = r.path(m["status"]), e.echo, e.rules
	if m["echo"] != nil {
		b.echo = r.path(m["echo"])
	}
	if m["rules"] != nil {
		b.rules = r.rules(m["rules"])
	}
	b.noMatch, b.badRow = r.path(m["no_match"]), r.path(m["bad_row"])
	for _, name := range []string{"no_match", "bad_row"} {
		if m[name] != nil && m["id"] == nil {
			r.fail(m[name], "%s is a list of ids, and the entry does not say under id what they are", name)
		}
	}
	r.id(m["id"], b)
	r.ofKind(n, m, b, e)
}

// ofKind finds the kind of identifier that a batch asks about.
func (r *reader) ofKind(n *yamltree.Node, m map[string]*yamltree.Node, b *batch, e *Entry) {
	kind := resolution.Identifier("")
	b.each.places(func(name string) {
		switch of := kindOf(name); {
		case name == "ref":
		case of == "":
			r.fail(m["each"], "{%s} is no placeholder%s", name, suggest(name, slices.Concat(formsOf[resolution.NetworkURL], formsOf[resolution.Email], formsOf[resolution.IP], person.Names)))
		case kind != "" && of != kind, e.Check != "" && of != e.Check:
			r.fail(m["each"], "{%s} is of another kind of identifier: a batch asks about one", name)
		default:
			kind = of
		}
	})
	if kind == "" {
		r.fail(m["each"], "each does not name its key: write {network_url}, {email}, {ip} or values of a person in it, in quotes")
		return
	}
	if b.id != nil {
		b.id.kind = kind
	}
	request := e.requests[kind]
	if request == nil {
		request = &Request{entry: e, kind: kind, fields: &e.fields}
		e.requests[kind] = request
	}
	if request.one != nil && !b.sameAnswer {
		r.warnings = append(r.warnings, fmt.Sprintf("%s:%d: ask of %s is never used: batch asks about it", r.file, n.Line, kind))
	}
	request.batch = b
	if m["fields"] == nil {
		return
	}
	own := r.fields(m["fields"], e)
	if request.fields = &own; b.sameAnswer {
		r.fail(m["fields"], "a batch with same_answer has no fields of its own")
	}
	if e.later != nil && e.later.fields != nil {
		r.fail(m["fields"], "batch and later both have fields; write those of a batch in batch alone")
	}
}

// id reads how an element names its key.
func (r *reader) id(n *yamltree.Node, b *batch) {
	if n == nil {
		return
	}
	m := members(n)
	sent := r.path(m["send"])
	if sent == nil {
		return
	}
	b.id = &identity{send: *sent, back: r.path(m["back"])}
	named := false
	if t, is := b.each.at(*sent); is {
		b.id.id = t
		t.places(func(string) { named = true })
	}
	if !named {
		r.fail(n, "send does not lead to a text in each that has a placeholder, such as \"{ref}\"")
	}
}

// later reads how an answer that comes later is asked for.
func (r *reader) later(n *yamltree.Node, e *Entry) {
	if n == nil {
		return
	}
	m := members(n)
	e.Later = &Polling{
		Every: r.duration(m["every"], 30*time.Second, time.Second, time.Hour),
		Wait:  r.duration(m["wait"], 30*time.Minute, time.Second, 30*24*time.Hour),
	}
	e.later = &poll{rules: r.rules(m["answers"])}
	if ask := m["ask"]; textOf(ask) != "same" {
		s := r.send(ask)
		s.places(func(name string) {
			if kindOf(name) != "" {
				return
			}
			if _, err := parsePath(name); err != nil {
				r.fail(ask, "{%s} is neither a form of the key nor a path into the answer: %v", name, err)
			}
		})
		e.later.ask = &s
	}
	if m["fields"] != nil {
		own := r.fields(m["fields"], e)
		if e.later.fields = &own; m["answers"] == nil {
			r.fail(n, "later has fields of its own, so it needs answers of its own")
		}
	}
}

// balance reads how to ask for what is left. Such a request has the key alone.
func (r *reader) balance(n *yamltree.Node) *balance {
	m := members(n)
	credits := r.path(m["credits"])
	if credits == nil || m["ask"] == nil {
		return nil
	}
	b := &balance{line: n.Line, ask: r.send(m["ask"]), credits: *credits, counts: textOf(m["counts"])}
	r.checkPlaces(m["ask"], b.ask.places, nil)
	return b
}

// consistent checks what several keys of an entry say together.
func (r *reader) consistent(n *yamltree.Node, m map[string]*yamltree.Node, e *Entry) {
	all := slices.Clone(e.rules)
	if e.later != nil {
		all = append(all, e.later.rules...)
	}
	comesLater := slices.ContainsFunc(e.rules, func(u rule) bool { return u.outcome == Later })
	for _, request := range e.requests {
		if request.batch != nil {
			all = append(all, request.batch.rules...)
		}
		r.keyFits(m["key"], request, e)
	}
	if !slices.ContainsFunc(all, func(u rule) bool { return u.outcome == Match }) {
		r.fail(n, "%s has no rule for a match", titled(n))
	}
	for _, u := range all {
		if u.outcome == Later && e.later == nil {
			r.fail(&yamltree.Node{Line: u.line}, "a rule says later, and nothing says how to ask later")
		}
	}
	for _, u := range all {
		if u.price != nil {
			e.Price.Rules = max(e.Price.Rules, *u.price)
		}
	}
	if e.later != nil && !comesLater {
		r.fail(m["later"], "no rule in answers says later")
	}
	for _, name := range e.helpers {
		if !fills(e, name) {
			r.fail(m["helper"], "no field fills the helper %s", name)
		}
	}
	for _, name := range e.Columns() {
		if e.Check != "" {
			r.fail(m["fields"], "%s is a column: a verifier has helpers alone", name)
		}
	}
}

// fills reports whether a field has a name.
func fills(e *Entry, name string) bool {
	is := e.fields.one[name] != nil
	for _, request := range e.requests {
		is = is || request.fields.one[name] != nil
	}
	return is || e.later != nil && e.later.fields != nil && e.later.fields.one[name] != nil
}

// keyFits checks that a request has a place for a key in its body.
func (r *reader) keyFits(n *yamltree.Node, request *Request, e *Entry) {
	if e.key.how != "body" {
		return
	}
	for _, s := range []*send{request.one, request.ask()} {
		if s != nil && s.form == nil && (s.json == nil || s.json.kind != '{') {
			r.fail(n, "the key is sent in the body, and a request has no object or form there")
		}
	}
}

// ask is the request of a batch with the form of its body; nil without a batch.
func (r *Request) ask() *send {
	if r.batch == nil {
		return nil
	}
	s := r.batch.ask
	s.json = &tree{kind: '{'}
	if len(r.batch.in) == 0 {
		s.json = &tree{kind: '['}
	}
	return &s
}

// finish adds what follows from the rest.
func (e *Entry) finish() {
	for _, request := range e.requests {
		request.name, request.hash = nameOf(request), hashOf(request)
		if request.kind == resolution.Person {
			request.values = formsIn(request)
		}
	}
	e.digest = sum(e.describe())
	slices.Sort(e.warnings)
}
