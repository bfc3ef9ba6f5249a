package provider

import (
	"bytes"
	"math"
	"math/big"
	"net/http"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution/exchange"
)

// Response is what a provider sent.
type Response struct {
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
	// Over says of an answer that comes later that it never does: it was not billed, or is Unknown.
	Over bool

	price *int64 // of its rule
}

// Judge says what an answer to the request about some keys means for each. It looks at nothing
// else than what the run asks.
func (r *Request) Judge(run *exchange.Asked, a Response, keys ...string) []Verdict {
	return r.judge(r.asked(run, keys), a)
}

func (r *Request) judge(q asked, a Response) (all []Verdict) {
	body := bytes.TrimPrefix(a.Body, []byte("\ufeff"))
	reading(body, func(v jsontree.Value) {
		got := received{a.Status, v, len(body) == 0}
		whole := r.judgeWhole(got, a.Polled)
		whole.Body = a.Body
		if r.batch != nil && !(a.Polled && whole.Outcome == Later && whole.Rule > 0) {
			if elements, is := r.batch.elements(got); is {
				all = r.batch.judge(q, elements, got, whole)
				r.checkNames(all, q.questions)
				if a.Polled {
					endTask(all, r.isOver(whole), true)
				}
				r.share(all, a.Header, v)
				r.follow(all, a, q.keys)
				return
			}
		}
		for range q.keys {
			all = append(all, whole)
		}
		if r.batch == nil {
			r.checkNames(all, q.questions)
			r.share(all, a.Header, v)
		} else {
			wholeBatch(all)
		}
		if a.Polled {
			endTask(all, r.isOver(whole), a.Status/100 == 2)
		}
		r.follow(all, a, q.keys)
	})
	return all
}

// follow adds the requests that ask later. Without what such a request needs the call is unknown.
func (r *Request) follow(all []Verdict, a Response, keys []string) {
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

// judgeWhole classes an answer that is about all keys, or about those that have no element of their
// own.
func (r *Request) judgeWhole(a received, polled bool) Verdict {
	v := Verdict{Status: a.status}
	if later := r.entry.later; polled && later != nil && later.rules != nil {
		v.classify(later.rules, a)
		return v
	}
	if v.classify(r.entry.rules, a); polled && v.Outcome == NoMatch && isGone(a.status) {
		return Verdict{Status: a.status} // of the task, not of the key
	}
	return v
}

func isGone(status int) bool { return status == http.StatusNotFound || status == http.StatusGone }

// endTask says of the keys of a poll which of them still wait. One that fits no rule waits on, because
// its answer may still come, unless the answer is gone, or the task is over. ofTask says that the
// poll tells of the task, and not of itself as a 402 does: what it says is not billed then never
// comes.
func endTask(all []Verdict, isOver, ofTask bool) {
	for i := range all {
		v := &all[i]
		switch v.Outcome {
		case NoCredits, NotBilled:
			v.Over = ofTask
		case BadRow:
			v.Over = v.Alone
		case Unknown:
			switch {
			case v.Swapped && (v.Fault == ofAnotherKey || v.Fault == beside):
			case v.Rule > 0 || isOver:
				v.Over = true
			case isGone(v.Status) && !v.IsElement:
				v.Fault = "the provider no longer has the answer"
			default:
				v.Outcome = Later
			}
		}
	}
}

// isOver reports whether a rule says of the answer to a poll that the task is over. The rules of the
// entry are also those of elements: a match or a miss by them says nothing about the task.
func (r *Request) isOver(whole Verdict) bool {
	switch whole.Outcome {
	case Later, SlowDown, Refused:
		return false
	case Match, NoMatch:
		later := r.entry.later
		return later != nil && later.rules != nil
	}
	return whole.Rule > 0
}

// wholeBatch keeps of the outcomes of a batch those that an answer without elements can have.
func wholeBatch(all []Verdict) {
	for i := range all {
		switch v := &all[i]; v.Outcome {
		case Match, NoMatch:
			*v = Verdict{Status: v.Status, Body: v.Body, Fault: "the answer to a batch has no elements"}
		case BadRow:
			v.Alone = len(all) > 1
		}
	}
}

// element is one of an answer to a batch, in the list of answers, or in one of misses or bad rows.
type element struct {
	jsontree.Value
	isMember bool    // of an object, whose names are ids
	outcome  Outcome // of its list; Unknown in that of answers
}

// elements are those of an answer to a batch; false if it has no list of them and is classed as a
// whole. An object has elements in an answer with a 2xx alone: others say in one what is wrong.
func (b *batch) elements(a received) (all []element, is bool) {
	for _, of := range [...]struct {
		at      *path
		outcome Outcome
	}{{&b.answers, Unknown}, {b.noMatch, NoMatch}, {b.badRow, BadRow}} {
		if of.at == nil {
			continue
		}
		list := of.at.one(a.body)
		isObject := list.Kind() == '{' && b.id != nil && a.status/100 == 2
		if list.Kind() != '[' && !isObject {
			continue
		}
		is = true
		for v := range list.Inside().All() {
			all = append(all, element{v, isObject, of.outcome})
		}
	}
	return all, is
}

// judge finds the element of each key. Nothing but its own gives a key an answer. Those without one
// are what a rule says of the whole, if that can be said of a part.
func (b *batch) judge(q asked, elements []element, a received, whole Verdict) []Verdict {
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
	found, fault := b.places(q, elements)
	if fault != "" {
		return fail(fault)
	}
	for i, at := range found {
		switch at {
		case missing:
			if all[i] = whole; whole.Outcome == Match || whole.Outcome == NoMatch || whole.Rule == 0 {
				all[i] = Verdict{Status: a.status, Fault: "the answer to a batch lacks the key"}
			}
			all[i].Alone = all[i].Outcome == BadRow && len(all) > 1
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
func (b *batch) places(q asked, elements []element) (found []int, fault string) {
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
		id := b.idOf(q.run, v)
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

// idOf is the id that an element has, "" without one. Misses and bad rows may be the ids themselves.
func (b *batch) idOf(known *exchange.Asked, e element) string {
	id := ""
	if e.outcome != Unknown && !e.isMember {
		id, _ = spelled(e.Value)
	}
	if id == "" && b.id.back != nil {
		id, _ = spelled(b.id.back.one(e.Value))
	}
	if id == "" && e.isMember && (b.id.back == nil || e.outcome != Unknown) {
		id = e.Name()
	}
	if id == "" {
		return ""
	}
	return b.id.spelling(known, id)
}

// element classes the element of a key.
func (b *batch) element(e element, status int) Verdict {
	v := e.Value
	if e.outcome != Unknown {
		return Verdict{Outcome: e.outcome, Status: status, IsElement: true}
	}
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
