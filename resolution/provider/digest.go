package provider

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// description is text that is the same for the same meaning. Each line is a name and a value, in
// quotes so that none can look like two.
type description struct{ strings.Builder }

func (d *description) add(name string, value any) { fmt.Fprintf(d, "%s %q\n", name, fmt.Sprint(value)) }

func (d *description) send(name string, s *send) {
	if s == nil {
		return
	}
	d.add(name, s.method)
	d.add("target", s.target)
	if s.json != nil {
		d.tree("json", *s.json)
	}
	for _, f := range s.form {
		d.add("form "+percentEncoded(f.name), f.value)
	}
	d.headers(s.headers)
}

func (d *description) headers(all []header) {
	for _, h := range all {
		d.add("header", h)
	}
}

func (d *description) tree(name string, t tree) {
	d.add(name, string(t.kind)+t.literal+t.text.String())
	for i, item := range t.items {
		d.tree("in "+percentEncoded(t.names[i]), item)
	}
	d.WriteString("end\n")
}

// batchRequest is what a batch asks.
func (d *description) batchRequest(b *batch) {
	d.send("batch", &b.ask)
	d.tree("each", b.each)
	d.add("in", b.in)
	d.tree("with", b.with)
}

func (d *description) rules(name string, all []rule) {
	for _, r := range all {
		d.add(name, r.outcome)
		if r.price != nil {
			d.add("price", *r.price)
		}
		for _, f := range r.fits {
			d.add("status", fmt.Sprint(f.from, f.to))
			for _, c := range f.conditions {
				d.add("condition", fmt.Sprint(c.is, c.at, " ", c.value))
			}
		}
	}
}

func (d *description) fields(name string, f *fields) {
	for _, column := range slices.Sorted(maps.Keys(f.one)) {
		d.add(name+" "+column, f.one[column])
	}
	for _, column := range slices.Sorted(maps.Keys(f.many)) {
		e := f.many[column]
		d.add(name+" "+column, fmt.Sprintf("%q %q %q", e.each, e.value, e.kind))
	}
}

// sum is the digest of a text.
func sum(text string) [32]byte { return sha256.Sum256([]byte(text)) }

// request is a request and how its answers are taken apart.
func (d *description) request(r *Request) {
	d.add("kind", r.kind)
	d.send("ask", r.one)
	if b := r.batch; b != nil {
		d.batchRequest(b)
		d.add("size", b.size)
		d.add("answers", b.answers)
		for _, list := range []*path{b.noMatch, b.badRow} {
			d.add("list", fmt.Sprint(list != nil, list))
		}
		d.add("status", fmt.Sprint(b.status != nil, b.status))
		if b.id != nil {
			d.add("id", fmt.Sprint(b.id.send, b.id.back != nil, b.id.back))
		}
		if b.echo != nil {
			d.add("echo", b.echo)
		}
		d.add("as", b.as)
		d.add("same", b.sameAnswer)
		d.rules("element", b.rules)
	}
	d.fields("field of the request", r.fields)
}

// describe is the description of an entry without what does not decide on its answers: rate,
// limit, the day of the documentation.
func (e *Entry) describe() string {
	var d description
	d.add("name", e.Name)
	d.add("base", e.base)
	d.headers(e.headers)
	d.add("key", fmt.Sprint(e.key.how, e.key.name, " ", e.key.prefix, e.key.at))
	if t := e.key.token; t != nil {
		d.send("token", &t.send)
		d.add("at", t.at)
		d.add("expires", t.expires)
	}
	for _, kind := range e.Kinds() {
		d.request(e.requests[kind])
	}
	if e.later != nil {
		d.add("later", *e.Later)
		d.send("poll", e.later.ask)
		d.rules("polled", e.later.rules)
		if e.later.fields != nil {
			d.fields("field of a poll", e.later.fields)
		}
	}
	d.add("price", e.Price)
	d.add("cost", fmt.Sprint(e.cost.header, e.cost.isBody, e.cost.body, " ", e.unit))
	d.add("retry", e.RetryBills)
	d.add("check", e.Check)
	if e.echo != nil {
		d.add("echo", e.echo)
	}
	d.add("helper", e.helpers)
	d.rules("answer", e.rules)
	d.fields("field", &e.fields)
	return d.String()
}
