package provider

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/internal/yamltree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
	"github.com/leadetl/leadetl/resolution/values"
	"github.com/leadetl/leadetl/transforms/company"
	"github.com/leadetl/leadetl/transforms/person"
	"github.com/leadetl/leadetl/transforms/phone"
	"github.com/leadetl/leadetl/transforms/profile"
)

// Documented is an answer as the documentation of a provider shows it, with what it has to be read
// as. An entry is checked with some of them before it is used.
type Documented struct {
	Name string // what the answer is, in words

	at      string // FILE:LINE
	kind    resolution.Identifier
	keys    []string
	request string // METHOD and target, "" if it does not matter
	sent    string // the body of the request, "" if it does not matter
	next    string // METHOD and target of the first poll, "" if it does not matter
	answer  Response
	want    []wanted
}

// wanted is what an answer is for one key.
type wanted struct {
	outcome Outcome
	credits int64
	columns map[string][]string // some values, one or a list
}

// ParseDocumented reads a file of documented answers, by their names.
func ParseDocumented(file string, content []byte) (all []Documented, err error) {
	err = readFile(file, content, schemas().answers, func(r *reader, n *yamltree.Node) { all = append(all, documented(r, n)) })
	return all, err
}

func documented(r *reader, n *yamltree.Node) (d Documented) {
	m := members(n)
	d.Name, d.at = n.Name, fmt.Sprintf("%s:%d", r.file, n.Line)
	for _, kind := range []resolution.Identifier{resolution.Email, resolution.NetworkURL, resolution.IP, resolution.Phone} {
		for _, key := range listOf(m[string(kind)]) {
			d.kind, d.keys = kind, append(d.keys, key.Text)
		}
	}
	for _, values := range listOf(m[string(resolution.Person)]) {
		of := map[string]string{}
		for name, value := range members(values) {
			of[name] = person.Canonical(name, textOf(value))
		}
		d.kind, d.keys = resolution.Person, append(d.keys, person.Key(of))
	}
	d.request, d.sent, d.next = textOf(m["request"]), string(r.json(m["sent"])), textOf(m["next"])
	d.answer = Response{Status: int(count(m["status"], 0)), Header: http.Header{}, Body: r.json(m["body"]), Polled: textOf(m["poll"]) == "true"}
	for _, h := range r.headers(m["headers"]) {
		d.answer.Header.Set(h.name, h.value)
	}
	for i := range d.keys {
		forKey := func(name string) *yamltree.Node { return r.forKey(m[name], i, len(d.keys)) }
		w := wanted{credits: count(forKey("credits"), 0), columns: map[string][]string{}}
		if outcome := textOf(forKey("outcome")); outcome != unknown {
			w.outcome = Outcome(outcome)
		}
		for name, c := range members(forKey("columns")) {
			w.columns[name] = nil
			for _, value := range listOf(c) {
				if text := textOf(value); text != "" { // without one, the column has to be empty
					w.columns[name] = append(w.columns[name], text)
				}
			}
		}
		d.want = append(d.want, w)
	}
	return d
}

// forKey is the value for key i of n: that of a list with one for each, or the one for all.
func (r *reader) forKey(n *yamltree.Node, i, keys int) *yamltree.Node {
	switch {
	case n == nil || n.Kind != yamltree.List:
		return n
	case len(n.Items) != keys:
		r.fail(n, "%s has %d values for %d keys", titled(n), len(n.Items), keys)
		return nil
	}
	return n.Items[i]
}

// json is a value as JSON, and text as it is.
func (r *reader) json(n *yamltree.Node) []byte {
	switch {
	case n == nil:
		return nil
	case n.Kind == yamltree.Text:
		return []byte(n.Text)
	}
	t := r.tree(n)
	body, _ := t.render(nil, func(string) (string, bool) { return "", false })
	return body
}

// Differences says in sentences how an entry reads a documented answer otherwise than it should.
func (e *Entry) Differences(d Documented) (differences []string) {
	differ := func(format string, args ...any) {
		differences = append(differences, d.at+": "+d.Name+": "+fmt.Sprintf(format, args...))
	}
	r, is := e.Request(d.kind)
	if !is || len(d.keys) > e.BatchSize(d.kind) {
		differ("%s is not asked about %d of %s", e.Name, len(d.keys), d.kind)
		return differences
	}
	m, askable := r.Message(d.keys...)
	if line := m.Method + " " + m.Target; !askable || d.request != "" && line != d.request {
		differ("the request is %s, want %s", line, d.request)
	}
	if d.sent != "" && m.Body != d.sent {
		differ("the body of the request is %s, want %s", m.Body, d.sent)
	}
	for i, v := range d.judged(r) {
		d.compare(e, v, d.want[i], func(format string, args ...any) { differ("key %d "+format, append([]any{i + 1}, args...)...) })
	}
	slices.Sort(differences)
	return differences
}

// NoCost says that no documented match has what the entry names as cost; "" if one has. Some
// requests of a provider may not say it.
func (e *Entry) NoCost(all []Documented) (difference string) {
	if !e.cost.isSet() {
		return ""
	}
	for _, d := range all {
		r, is := e.Request(d.kind)
		if !is || len(d.keys) > e.BatchSize(d.kind) {
			continue
		}
		for _, v := range d.judged(r) {
			switch {
			case v.Outcome != Match:
			case saysCost(e, d.answer, v):
				return ""
			default:
				difference = cmp.Or(difference, d.at+": "+d.Name+": no cost is where the entry looks for it, neither here nor in another match")
			}
		}
	}
	return difference
}

// saysCost reports whether an answer, or its element, says what it cost.
func saysCost(e *Entry, a Response, v Verdict) (says bool) {
	for _, body := range [][]byte{a.Body, v.Body} {
		reading(body, func(body jsontree.Value) {
			_, said := e.spent(a.Header, body)
			says = says || said
		})
	}
	return says
}

// compare calls differ for what a verdict is otherwise than wanted.
func (d Documented) compare(e *Entry, v Verdict, want wanted, differ func(format string, args ...any)) {
	if v.Outcome != want.outcome {
		why := "by rule " + strconv.Itoa(v.Rule)
		if v.Rule == 0 {
			why = "because " + cmp.Or(v.Fault, "no rule fits")
		}
		differ("is %s %s, want %s", named(v.Outcome), why, named(want.outcome))
		return
	}
	cost := int64(0)
	if v.Credits != nil {
		cost = *v.Credits
	}
	if cost != want.credits {
		hint := ""
		if want.credits == 0 {
			hint = ": write it as credits"
		}
		differ("costs %d, want %d%s", cost, want.credits, hint)
	}
	if highest := e.Price.Max(); want.credits > highest {
		differ("costs %d, and the highest price of the entry is %d: write the documented maximum under price", want.credits, highest)
	}
	if next := cmp.Or(v.Next, &Message{}); d.next != "" && next.Method+" "+next.Target != d.next {
		differ("is asked for later by %s %s, want %s", next.Method, next.Target, d.next)
	}
	if v.Outcome != Match {
		return
	}
	values, known := outputOf(e, d.kind, v), slices.Concat(fillable(), e.helpers)
	for column, value := range want.columns {
		if !slices.Contains(known, column) {
			differ("%s is no column and no helper%s", column, suggest(column, known))
			continue
		}
		if !slices.Equal(values[column], value) {
			differ("has %s %s, want %s", column, strings.Join(values[column], ", "), strings.Join(value, ", "))
		}
	}
}

// judged says what the answer is for each key.
func (d Documented) judged(r *Request) []Verdict {
	return r.Judge(exchange.NewAsked(profile.DefaultRules().Hosts), d.answer, d.keys...)
}

func named(o Outcome) string {
	if o == Unknown {
		return unknown
	}
	return string(o)
}

// operationOf is the operation with most columns about a kind of identifier.
var operationOf = map[resolution.Identifier]resolution.Operation{
	resolution.Email: resolution.EmailToHEM, resolution.NetworkURL: resolution.Enrichment, resolution.IP: resolution.IPToCompany,
	resolution.Phone:  resolution.NetworkToPhone,
	resolution.Person: resolution.Enrichment,
}

// OperationOf is the operation whose answers have most columns that a provider may fill about a kind.
func OperationOf(kind resolution.Identifier) resolution.Operation { return operationOf[kind] }

// outputOf are the columns and helpers of a match, as they are in an output, without those that are
// empty. A list has an element as its value, a space and its type.
func outputOf(e *Entry, kind resolution.Identifier, v Verdict) map[string][]string {
	all := map[string][]string{}
	set := func(name, value string) {
		if value != "" {
			all[name] = append(all[name], value)
		}
	}
	var reply resolution.Reply
	reading(v.Body, func(body jsontree.Value) { reply = e.read(operationOf[kind], kind, v.Status, body, nil) })
	for name, v := range values.Wanted {
		if v.IsMade() || v.IsList() || strings.HasPrefix(name, "hem_") {
			continue
		}
		value := v.Of(reply.Found)
		switch v.Kind {
		case values.Phone:
			value = canonicalPhone(value)
		case values.Domain:
			value = company.Domain(value)
		case values.Profile:
			if v.Group == resolution.GroupCompany {
				value = company.NetworkURL(value)
			}
		}
		set(name, value)
	}
	lead := reply.Found.Lead()
	for _, one := range lead.Emails {
		set("emails", one.Email+" "+one.Type)
	}
	for _, one := range lead.Phones {
		set("phones", one.Phone+" "+one.Type)
	}
	for name, value := range e.Helpers(kind, v.Status, v.Body) {
		set(name, value)
	}
	return all
}

func canonicalPhone(number string) string {
	if n, err := phone.Parse(number, ""); err == nil {
		return n.E164
	}
	return number
}
