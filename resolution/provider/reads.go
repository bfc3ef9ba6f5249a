package provider

import (
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/values"
)

// use is what an entry does with a value of an answer.
type use int

// The uses. Of several of one value the last counts.
const (
	looks   use = iota // whether it is there, or empty
	compare            // with a text of the entry
	asText             // it is a value of a column or a helper, or an id
	asWord             // it may be one of a few words
	asPhone
	asTime
	asFigure // it counts or costs something
	asID
)

// read is what an entry reads of a value.
type read struct {
	use        use
	conditions []condition // that it is compared by
	isNamed    bool        // its name is an id
}

// reads are the values of an answer that an entry reads, by their places in it.
type reads struct {
	root jsontree.Value
	all  map[int]*read
}

// place is the number of a value among all of an answer: their nodes are one list.
func (r *reads) place(v jsontree.Value) int { return cap(r.root) - cap(v) }

func (r *reads) mark(v jsontree.Value, as use) *read {
	if len(v) == 0 {
		return &read{}
	}
	one := r.all[r.place(v)]
	if one == nil {
		one = &read{}
		r.all[r.place(v)] = one
	}
	one.use = max(one.use, as)
	return one
}

// any reports whether anything in a value is read, or the value itself.
func (r *reads) any(v jsontree.Value) bool {
	at := r.place(v)
	for i := range len(v) {
		if r.all[at+i] != nil {
			return true
		}
	}
	return false
}

// path marks what a path leads to, and what its filters compare.
func (r *reads) path(p path, from jsontree.Value, as use) {
	for i, s := range p {
		if s.where == "" {
			continue
		}
		slices.Concat(p[:i], s.list()).in(from, func(v jsontree.Value) bool {
			for item := range jsontree.List(v).All() {
				c := condition{is: equals, value: s.is}
				if is := item.Get(s.where); len(is) > 0 {
					one := r.mark(is, compare)
					one.conditions = append(one.conditions, c)
					if c.holds(is) {
						break
					}
				}
			}
			return true
		})
	}
	p.in(from, func(v jsontree.Value) bool {
		r.mark(v, as)
		return true
	})
}

func (r *reads) rules(rules []rule, from jsontree.Value, under string) {
	for _, rule := range rules {
		for _, f := range rule.fits {
			for _, c := range f.conditions {
				p, is := inside(c.at, under)
				if !is {
					continue
				}
				as := compare
				if c.is == isThere || c.is == isntHere || c.is == isNull {
					as = looks
				}
				if len(p) > 0 {
					r.path(p[:len(p)-1], from, looks) // that it is there
				}
				r.path(p, from, as)
				p.in(from, func(v jsontree.Value) bool {
					one := r.mark(v, as)
					one.conditions = append(one.conditions, c)
					return true
				})
			}
		}
	}
}

// inside is a path in an element that is put under a name for it; false if it leads elsewhere.
func inside(p path, under string) (path, bool) {
	if under == "" || len(p) == 0 {
		return p, true
	}
	return p[1:], p[0].name == under && p[0].where == ""
}

func (r *reads) alternatives(all alternatives, from jsontree.Value, under string, as use) {
	for _, p := range all {
		if p, is := inside(p, under); is {
			r.path(p, from, as)
		}
	}
}

func (r *reads) fields(f *fields, from jsontree.Value, under string) {
	for name, at := range f.one {
		r.alternatives(at, from, under, useOf(values.ByName[name]))
	}
	for name, e := range f.many {
		as := asText
		if name == "phones" {
			as = asPhone
		}
		for _, p := range e.each {
			p, is := inside(p, under)
			if !is {
				continue
			}
			r.path(p, from, looks)
			p.in(from, func(v jsontree.Value) bool {
				for item := range jsontree.List(v).All() {
					r.alternatives(e.kind, item, "", asWord)
					if e.value == nil {
						r.mark(item, as)
					}
					r.alternatives(e.value, item, "", as)
				}
				return true
			})
		}
	}
}

// useOf is that of a column; nil is a helper.
func useOf(v *values.Value) use {
	switch {
	case v == nil:
		return asWord
	case v.Kind == values.Phone:
		return asPhone
	case v.Group == resolution.GroupHashes:
		return asText
	case v.Kind == values.Year, len(v.Makes) > 0 && strings.HasPrefix(v.Name, "company_"), v.Name == "confidence":
		return asFigure
	case v.Kind == values.Special && v.Of != nil && strings.HasSuffix(v.Name, "_at"):
		return asTime
	case v.Kind == values.Word, v.Kind == values.Special && v.Text == 0:
		return asWord
	}
	return asText
}

// reads are the values of the answer that the entry reads. v is its body.
func (x Exchange) reads(v jsontree.Value) *reads {
	r, e, b := &reads{root: v, all: map[int]*read{}}, x.Request.entry, x.Request.batch
	if x.stored != nil && !x.isRebuilt {
		r.rules(x.stored, v, "")
		r.cost(e, v, "")
		x.found(r, v, "")
		return r
	}
	whole := e.rules
	if x.Response.Polled && e.later != nil && e.later.rules != nil {
		whole = e.later.rules
	}
	r.rules(whole, v, "")
	r.cost(e, v, "")
	elements, isBatch := []element(nil), false
	if b != nil {
		elements, isBatch = b.elements(received{x.Response.Status, v, false})
	}
	for _, el := range elements {
		one := r.mark(el.Value, looks)
		one.isNamed = el.isMember
		if b.id != nil && b.id.back != nil {
			r.path(*b.id.back, el.Value, asID)
		}
		if b.id != nil && el.outcome != Unknown {
			one.use = asID
		}
		if el.outcome != Unknown {
			continue
		}
		if b.status != nil {
			r.path(*b.status, el.Value, asFigure)
		}
		r.rules(b.rules, el.Value, b.as)
		r.cost(e, el.Value, b.as)
		x.found(r, el.Value, b.as)
	}
	if !isBatch {
		x.found(r, v, "")
	}
	return r
}

// found marks what an answer about a key, or its element, says beside what it is.
func (x Exchange) found(r *reads, v jsontree.Value, under string) {
	e := x.Request.entry
	r.fields(x.Request.fields, v, under)
	if e.later != nil && e.later.fields != nil {
		r.fields(e.later.fields, v, under)
	}
	if echo := x.Request.echoOf(); echo != nil {
		r.alternatives(alternatives{*echo}, v, under, asText)
	}
	if e.later != nil && e.later.ask != nil {
		e.later.ask.places(func(name string) {
			if p, err := parsePath(name); err == nil && kindOf(name) == "" {
				r.path(p, v, asText)
			}
		})
	}
}

func (r *reads) cost(e *Entry, v jsontree.Value, under string) {
	if e.cost.isBody {
		r.alternatives(alternatives{e.cost.body}, v, under, asFigure)
	}
}

// Unread are the members of the answer that the entry does not read, by their paths, with what they are. Names
// that may be values are left out.
func (x Exchange) Unread() (all []string) {
	reading(x.Response.Body, func(v jsontree.Value) {
		if len(v) == 0 {
			return
		}
		r := x.reads(v)
		var walk func(v jsontree.Value, at string)
		walk = func(v jsontree.Value, at string) {
			if !r.any(v) && (at != "" || v.Kind() != '{') {
				all = append(all, strings.TrimPrefix(at, ".")+map[bool]string{true: ".…"}[(v.Kind() == '{' || v.Kind() == '[') && len(v) > 1])
				return
			}
			for m := range v.Inside().All() {
				name := "*"
				if v.Kind() == '{' && isMemberName(m.Name()) {
					name = m.Name()
				}
				if one := r.all[r.place(m)]; one != nil && one.isNamed {
					name = "*"
				}
				walk(m, at+"."+name)
			}
		}
		walk(v, "")
	})
	slices.Sort(all)
	return slices.Compact(all)
}
