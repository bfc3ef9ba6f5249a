package provider

import (
	"bytes"
	"math"
	"math/big"
	"net/http"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution/exchange"
)

// Answer is what a provider sent.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte // without its encodings
	// Polled says that it answers the request for an answer that comes later.
	Polled bool
}

// Verdict is what an answer means for one key.
type Verdict struct {
	Outcome Outcome
	// Rule is the number of the rule that said so, from 1; 0 if none did.
	Rule int
	// Status and Body are what Read reads of a match: those of the answer, or of an element.
	Status    int
	Body      []byte
	IsElement bool
	// Credits are what a match, a miss or a refused row cost; nil with other outcomes.
	Credits *int64
	// Fault says why an answer that has come is Unknown, "" if it fits no rule.
	Fault string
	// Swapped says that the answer is that to another request, or may be.
	Swapped bool
	// Next is the request that asks for an answer which comes later; nil if it stays the same.
	Next *Message
	// Alone says that the provider refused a row of the batch without naming it: each key is to
	// be asked alone. Nothing was billed.
	Alone bool

	price *int64 // of its rule
}

// Judge says what an answer to the request about some keys means for each. It looks at nothing
// else than what the run asks.
func (r *Request) Judge(run *exchange.Asked, a Answer, keys ...string) []Verdict {
	return r.judge(r.asked(run, keys), a)
}

func (r *Request) judge(q asked, a Answer) (all []Verdict) {
	body := bytes.TrimPrefix(a.Body, []byte("\ufeff"))
	reading(body, func(v jsontree.Value) {
		got := received{a.Status, v, len(body) == 0}
		if r.batch != nil {
			if list, is := r.batch.list(got); is {
				all = r.batch.judge(q, list, got)
				r.checkNames(all, q.questions)
				if a.Polled {
					waitOn(all)
				}
				r.share(all, a.Header, v)
				r.follow(all, a, q.keys)
				return
			}
		}
		whole := r.judgeWhole(got, a.Polled)
		whole.Body = a.Body
		for range q.keys {
			all = append(all, whole)
		}
		if r.batch == nil {
			r.checkNames(all, q.questions)
			r.share(all, a.Header, v)
		} else {
			wholeBatch(all, a.Polled)
		}
		r.follow(all, a, q.keys)
	})
	return all
}

// follow adds the requests that ask later. Without what such a request needs the call is unknown.
func (r *Request) follow(all []Verdict, a Answer, keys []string) {
	for i := range all {
		v := &all[i]
		if v.Outcome != Later || a.Polled { // a poll is sent again as it is
			continue
		}
		m, is := r.next(v.Body, keys, i)
		if v.Next = &m; !is {
			*v = Verdict{Status: v.Status, Body: v.Body, Fault: "the answer lacks what the request for a later one needs"}
		}
	}
}

// judgeWhole classes an answer that is about all keys. A poll that fits no rule leaves its calls as
// they are, except if the answer is gone.
func (r *Request) judgeWhole(a received, polled bool) Verdict {
	v := Verdict{Status: a.status}
	isGone := a.status == http.StatusNotFound || a.status == http.StatusGone
	if later := r.entry.later; polled && later != nil && later.rules != nil {
		v.classify(later.rules, a)
	} else if v.classify(r.entry.rules, a); polled && isGone && v.Outcome == NoMatch {
		v = Verdict{Status: a.status}
	}
	if polled && v.Outcome == Unknown {
		if isGone {
			v.Fault = "the provider no longer has the answer"
		} else {
			v.Outcome = Later
		}
	}
	return v
}

// waitOn leaves the keys of a poll without an element of their own as they are: it may still come.
func waitOn(all []Verdict) {
	for i := range all {
		if all[i].Outcome == Unknown && all[i].Fault != ofAnotherKey && all[i].Fault != beside {
			all[i].Outcome = Later
		}
	}
}

// wholeBatch keeps of the outcomes of a batch those that an answer without elements can have.
func wholeBatch(all []Verdict, polled bool) {
	for i := range all {
		switch v := &all[i]; v.Outcome {
		case Match, NoMatch:
			if *v = (Verdict{Status: v.Status, Body: v.Body, Fault: "the answer to a batch has no elements"}); polled {
				v.Outcome = Later
			}
		case BadRow:
			v.Alone = len(all) > 1
		}
	}
}

// list returns the elements of an answer to a batch; false if it has none and is classed as a
// whole. An object has elements in an answer with a 2xx alone: others say in one what is wrong.
func (b *batch) list(a received) (list jsontree.Value, is bool) {
	list = b.answers.one(a.body)
	switch list.Kind() {
	case '[':
		return list, true
	case '{':
		return list, b.id != nil && a.status/100 == 2
	}
	return nil, false
}

// judge finds the element of each key. Nothing but its own gives a key an answer.
func (b *batch) judge(q asked, list jsontree.Value, a received) []Verdict {
	all := make([]Verdict, len(q.keys))
	fail := func(fault string) []Verdict {
		for i := range all {
			all[i] = Verdict{Status: a.status, Fault: fault, Swapped: fault == ofAnother}
		}
		return all
	}
	if a.status == http.StatusMultiStatus && b.status == nil {
		return fail("the answer has a status for each key, and the entry does not say where")
	}
	var elements []jsontree.Value
	for v := range list.Inside().All() {
		elements = append(elements, v)
	}
	found, fault := b.places(q, list.Kind() == '{', elements)
	if fault != "" {
		return fail(fault)
	}
	for i, at := range found {
		switch at {
		case missing:
			all[i] = Verdict{Status: a.status, Fault: "the answer to a batch lacks the key"}
		case twice:
			all[i] = Verdict{Status: a.status, Fault: "the answer to a batch has the key twice"}
		default:
			all[i] = b.element(elements[at], a.status)
		}
	}
	return all
}

// Where the element of a key is, if it is not at one place.
const (
	missing = -1
	twice   = -2
)

const ofAnother = "the answer to a batch has an element of another one"

// places finds the element of each key. With a fault none of the elements can be trusted.
func (b *batch) places(q asked, isObject bool, elements []jsontree.Value) (found []int, fault string) {
	n := len(q.keys)
	found = make([]int, n)
	if b.id == nil {
		if len(elements) != n {
			return nil, "the answer to a batch has another number of elements"
		}
		for i := range found {
			found[i] = i
		}
		return found, ""
	}
	of, known := make(map[string]int, n), true
	for i, id := range q.ids {
		of[id], found[i], known = i, missing, known && id != ""
	}
	for at, v := range elements {
		id := b.idOf(q.run, isObject, v)
		i, is := of[id]
		switch {
		case id == "", !is && !known:
		case !is:
			return nil, ofAnother
		case found[i] == missing:
			found[i] = at
		default:
			found[i] = twice
		}
	}
	return found, ""
}

// idOf is the id that an element has, "" without one.
func (b *batch) idOf(known *exchange.Asked, isObject bool, v jsontree.Value) string {
	if b.id.back != nil {
		id, _ := spelled(b.id.back.one(v))
		return b.id.spelling(known, id)
	}
	if isObject {
		return b.id.spelling(known, v.Name())
	}
	return ""
}

// element classes the element of a key.
func (b *batch) element(v jsontree.Value, status int) Verdict {
	if b.status != nil {
		n, is := exchange.Whole(b.status.one(v))
		if !is || n < 100 || n > 599 {
			return Verdict{Status: status, Fault: "an element of a batch has no status"}
		}
		status = int(n)
	}
	body := rawJSON(v)
	if b.as != "" {
		wrapped := append(appendQuoted([]byte("{"), b.as), ':')
		body = append(append(wrapped, body...), '}')
	}
	verdict := Verdict{Status: status, Body: body, IsElement: true}
	reading(body, func(v jsontree.Value) {
		verdict.classify(b.rules, received{status: status, body: v})
	})
	return verdict
}

// rawJSON is a value as JSON.
func rawJSON(v jsontree.Value) []byte {
	if v.Kind() == '"' {
		return appendQuoted(nil, v.Written())
	}
	return []byte(v.Written())
}

// share says what each key cost. A figure of the answer is that of all keys: their matches share
// it in order, but those that their rule calls free; the first ones get one more each if it leaves a
// rest, and without such a match all share it. So no share is above the price unless the total is
// above that of all. An answer that does not say it has the figures of its elements, or the prices of
// the rules and of the entry.
func (r *Request) share(all []Verdict, h http.Header, body jsontree.Value) {
	total, said := r.entry.spent(h, body)
	var payers []int
	for i := range all {
		if v := &all[i]; v.Outcome == Match && (v.price == nil || *v.price > 0) {
			payers = append(payers, i)
		}
	}
	if len(payers) == 0 {
		for i := range all {
			payers = append(payers, i)
		}
	}
	shares := make([]int64, len(all))
	for n, i := range payers {
		if shares[i] = total / int64(len(payers)); int64(n) < total%int64(len(payers)) {
			shares[i]++
		}
	}
	for i := range all {
		switch all[i].Outcome {
		case Match, NoMatch, BadRow:
			cost := shares[i]
			if !said {
				cost = r.entry.costOf(&all[i], r.batch != nil)
			}
			all[i].Credits = &cost
		}
	}
}

// costOf is what an element says, or the price of its rule, or of its outcome.
func (e *Entry) costOf(v *Verdict, isElement bool) (cost int64) {
	if cost = e.Price.Of(v.Outcome); v.price != nil {
		cost = *v.price
	}
	if isElement && e.cost.isBody {
		reading(v.Body, func(body jsontree.Value) {
			if said, is := e.spent(nil, body); is {
				cost = said
			}
		})
	}
	return cost
}

// spent is the figure of an answer in whole units, rounded up; false if it does not say one, or one
// that no column holds.
func (e *Entry) spent(h http.Header, body jsontree.Value) (int64, bool) {
	if !e.cost.isSet() {
		return 0, false
	}
	text := h.Get(e.cost.header)
	if e.cost.isBody {
		text = jsontree.Text(e.cost.body.one(body))
	}
	n, is := decimal(text)
	if !is {
		return 0, false
	}
	n.Mul(n, e.unit)
	whole, rest := new(big.Int).QuoRem(n.Num(), n.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	return whole.Int64(), whole.IsInt64() && whole.Int64() <= math.MaxInt32
}
