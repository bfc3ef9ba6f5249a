package provider

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/jsontree"
	names "github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/values"
)

// Exchange is a request to a provider and its answer, as somebody sees them who tries an entry. The request is
// that before the key is added.
type Exchange struct {
	Request  *Request
	Keys     []string // "" for one that a poll does not know
	Message  Message
	Response Response
	Verdicts []Verdict // of each key
	// Failure is why no answer came; nil if one did.
	Failure error
	Took    time.Duration

	stored    []rule // that judge it, of an answer that is stored: there is no more of it than the body about a key
	isRebuilt bool   // that body is put into an answer to a batch
}

// Stored is the exchange about a key whose answer is stored, as it is read now. It has no headers, and of a batch
// the element of the key.
func (r *Request) Stored(key string, status int, body []byte, was Outcome, credits *int64) Exchange {
	x := Exchange{Request: r, Keys: []string{key}, Response: Response{Status: status, Body: body}}
	x.Message, _ = r.Message(key)
	v := Verdict{Status: status, Body: body, Credits: credits}
	reading(body, func(value jsontree.Value) {
		for _, x.stored = range r.entry.rulesOf(r.kind) {
			if v.classify(x.stored, received{status, value, len(body) == 0}); v.Outcome == was {
				break
			}
		}
	})
	x.Response.Polled = r.entry.later != nil && len(r.entry.later.rules) > 0 && &x.stored[0] == &r.entry.later.rules[0]
	if len(body) == 0 && r.batch != nil { // its key was in a list
		v.Outcome = was
	}
	x.Verdicts = []Verdict{v}
	return x
}

// IsStored reports whether the answer had come before.
func (x Exchange) IsStored() bool { return x.stored != nil }

// Limits are the headers of the answer that say how much more may be asked, in order.
func (x Exchange) Limits() (all []string) {
	e := x.Request.entry
	for name, values := range x.Response.Header {
		said := name == http.CanonicalHeaderKey(e.limit) || name == http.CanonicalHeaderKey(e.cost.header)
		for _, word := range []string{"limit", "credit", "quota", "remaining", "retry-after", "balance"} {
			said = said || strings.Contains(strings.ToLower(name), word)
		}
		if said {
			all = append(all, name+": "+strings.Join(values, ", "))
		}
	}
	slices.Sort(all)
	return all
}

// KeyAt says where a request has the key, for behind it.
func (e *Entry) KeyAt() string {
	switch k := e.key; k.how {
	case "none":
		return ""
	case "header", "query":
		return ", with the key in " + k.how + " " + k.name
	case "body":
		return ", with the key in body " + strings.Join(k.at, ".")
	case "token":
		return ", with a token"
	default:
		return ", with the key as " + k.how
	}
}

// Outcomes are what the answer means for the keys.
func (x Exchange) Outcomes() string {
	var all []string
	for _, v := range x.Verdicts {
		all = append(all, named(v.Outcome))
	}
	return strings.Join(all, ", ")
}

// Price says what the answer about a key cost, and who says so.
func (x Exchange) Price(v Verdict) string {
	e, by := x.Request.entry, "by the price of the entry"
	switch {
	case x.stored != nil:
		by = "as booked"
	case saysCost(e, x.Response, v):
		by = "as the answer says"
	case e.cost.isSet():
		by = "by the price of the entry: the answer does not say it where cost looks"
	case v.price != nil:
		by = "by the price of the rule"
	}
	if *v.Credits > e.Price.Max() {
		by += fmt.Sprintf(", more than the highest price of the entry, %d: write the documented maximum under price", e.Price.Max())
	}
	return fmt.Sprintf("%d, %s", *v.Credits, by)
}

// rules are those that judged the answer about a key.
func (x Exchange) rules(v Verdict) []rule {
	e := x.Request.entry
	switch {
	case x.stored != nil:
		return x.stored
	case v.IsElement && x.Request.batch != nil:
		return x.Request.batch.rules
	case x.Response.Polled && e.later != nil && e.later.rules != nil:
		return e.later.rules
	}
	return e.rules
}

// Rule says by which rule an answer is what it is, and where that stands; "" if it is by none.
func (x Exchange) Rule(v Verdict) string {
	if v.Rule == 0 {
		return ""
	}
	r := x.rules(v)[v.Rule-1]
	return fmt.Sprintf("%s: %s (%s)", named(r.outcome), r.text, x.Request.entry.line(r.line))
}

// line names a line of the entry's file.
func (e *Entry) line(n int32) string {
	if e == Shipped()[e.Name] {
		return fmt.Sprintf("line %d of leadetl provider show %s", n, e.Name)
	}
	return fmt.Sprintf("%s:%d", e.file, n)
}

// Misfits says of an answer that fits no rule what those of its status lack, and what to do.
func (x Exchange) Misfits(v Verdict) (why []string) {
	rules := x.rules(v)
	reading(v.Body, func(body jsontree.Value) {
		if len(body) == 0 && v.Status/100 == 2 {
			why = append(why, "its body is not complete JSON, which fits no rule for 2xx")
			return
		}
		for _, r := range rules {
			for _, f := range r.fits {
				at := slices.IndexFunc(f.conditions, func(c condition) bool { return !c.holds(body) })
				if v.Status < f.from || v.Status > f.to || at < 0 {
					continue
				}
				c := f.conditions[at]
				why = append(why, fmt.Sprintf("%s: %s: %s: %s does not hold: %s", x.Request.entry.line(r.line), named(r.outcome), r.text, c, c.lack(body)))
			}
		}
	})
	if len(why) == 0 && len(rules) > 0 {
		why = append(why, fmt.Sprintf("no rule has status %d; they begin at %s", v.Status, x.Request.entry.line(rules[0].line)))
	}
	return append(why, "if the provider's pages describe this answer, write a rule for it under answers; if not, ask the provider whether it was billed")
}

// String is a condition as it is written.
func (c condition) String() string {
	at := c.at.String()
	switch c.is {
	case isNull:
		return "null"
	case isThere:
		return at
	case isntHere:
		return "!" + at
	}
	return at + map[comparison]string{equals: "=", differs: "!=", contains: "~", lacks: "!~"}[c.is] + strconv.Quote(c.value)
}

// lack says why a condition does not hold.
func (c condition) lack(body jsontree.Value) string {
	switch c.is {
	case isNull:
		return "the answer is not null"
	case isntHere:
		if len(c.at.one(body)) > 0 {
			return "there is a value"
		}
		if len(c.at) == 1 {
			return c.at.lack(body)
		}
		return c.at[:len(c.at)-1].lack(body)
	}
	if lack := c.at.lack(body); lack != "" {
		return lack
	}
	if text, is := spelled(c.at.one(body)); is && c.is != isThere && isMemberName(text) {
		return "it is " + text
	}
	return map[bool]string{true: "it is empty", false: "it has another value"}[c.is == isThere]
}

// memberName is the form of names that somebody chose for members. Others may be values, such as an address
// whose answer the member is.
var memberName = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]{0,39}$`)

func isMemberName(name string) bool { return memberName.MatchString(name) }

// maxNamed bounds the members that a message names.
const maxNamed = 12

// lack says where a path leads to nothing; "" if it leads to something.
func (p path) lack(body jsontree.Value) string {
	for i := range p {
		if len(p[:i+1].one(body)) > 0 {
			continue
		}
		at, name, s := p[:i].one(body), "the answer", p[i]
		if i > 0 {
			name = p[:i].String()
		}
		if list := s.list().one(at); s.where != "" && list.Kind() == '[' {
			if len(list) == 1 {
				return "it is empty"
			}
			return fmt.Sprintf("no element of %s has %s %s", slices.Concat(p[:i], s.list()), s.where, strconv.Quote(s.is))
		}
		switch at.Kind() {
		case '{':
			var known []string
			for m := range at.Inside().All() {
				if isMemberName(m.Name()) && len(known) < maxNamed {
					known = append(known, m.Name())
				}
			}
			if meant := names.Name(s.name, known); meant != "" || len(known) == 0 {
				return fmt.Sprintf("%s has no %s%s", name, s.name, meant)
			}
			return fmt.Sprintf("%s has no %s; it has %s", name, s.name, strings.Join(known, ", "))
		case '[':
			if s.index < 0 && !s.each && s.name != "" {
				return fmt.Sprintf("%s is a list: name an element, as in %s.0.%s", name, name, s.name)
			}
			return fmt.Sprintf("the list %s has no element %s", name, path{s})
		case 'n':
			return name + " is null"
		}
		return fmt.Sprintf("%s is a single value, without members", name)
	}
	return ""
}

// Filled is a column or a helper that an entry fills, with what an answer has for it.
type Filled struct {
	Column, Path string
	Values       []string
	Lack         string // why there are none
}

// Filled are the columns and helpers of a match, in the order of their names.
func (x Exchange) Filled(v Verdict) (all []Filled) {
	e, kind := x.Request.entry, x.Request.kind
	filled := outputOf(e, kind, v)
	reading(v.Body, func(body jsontree.Value) {
		of := e.fieldsOf(kind, v.Status, body)
		add := func(name string, at alternatives, value func(jsontree.Value) string) {
			f := Filled{Column: name, Path: at.String(), Values: filled[name], Lack: at[0].lack(body)}
			found := ""
			for _, p := range at {
				p.in(body, func(v jsontree.Value) bool {
					found = value(v)
					return found == ""
				})
				if found != "" {
					f.Path = p.String()
					break
				}
			}
			switch v := values.ByName[name]; {
			case f.Values != nil:
			case found != "" && v != nil && v.Group == resolution.GroupHashes:
				f.Values = []string{found}
			case found != "":
				f.Lack = "what is there has not the form of the column"
			case f.Lack == "":
				f.Lack = "it is empty"
			}
			all = append(all, f)
		}
		for _, name := range slices.Sorted(maps.Keys(of.one)) {
			add(name, of.one[name], func(v jsontree.Value) string { text, _ := spelled(v); return text })
		}
		for _, name := range slices.Sorted(maps.Keys(of.many)) {
			add(name, of.many[name].each, func(v jsontree.Value) string {
				for item := range jsontree.List(v).All() {
					if text := of.many[name].text(item); text != "" {
						return text
					}
				}
				return ""
			})
		}
	})
	return all
}
