package provider

import (
	"slices"
	"strings"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
)

// This file compares answers with the questions of the run, so that nobody gets the answer of
// somebody else. What is found, such as an email or a domain, is not compared: colleagues share it.

const (
	ofAnotherKey = "the answer has the key of another question of the run"
	beside       = "an answer beside it has the key of another question of the run, so this one may be another's, too"
	otherOrder   = "the answer to a batch has the keys in another order"
	otherEcho    = "an element of a batch has the key of another one where echo looks for its own"
)

// asked are the keys of a request, as an answer may name them. A poll may know neither all keys nor
// all ids: they are "" then.
type asked struct {
	run       *exchange.Asked
	keys, ids []string // no ids if elements go by their positions
	questions []exchange.Question
}

// asked makes some keys known as those of the run.
func (r *Request) asked(run *exchange.Asked, keys []string) asked {
	q := asked{run: run, keys: keys, questions: make([]exchange.Question, len(keys))}
	for i, key := range keys {
		if q.questions[i] = run.Question(r.kind, key, ""); key != "" {
			q.questions[i].Register()
		}
	}
	if r.batch != nil {
		q.ids = r.batch.ids(run, keys)
	}
	return q
}

// whose is what an answer says about whose it is.
type whose struct {
	own, other bool
	place      int // in the batch, of the other one; -1 if it is in none, or not known
}

// checkNames makes unknown what is somebody else's: an answer that names another question of the run.
// What stands beside it and does not name its own is unknown too if it may have moved as well: no
// answer of the batch names its own, or the one whose key was named elsewhere does not. Where answers
// belong to keys by their order alone, one that is out of order makes all of them unknown.
func (r *Request) checkNames(all []Verdict, questions []exchange.Question) {
	byOrder := r.batch != nil && r.batch.id == nil
	if !byOrder && r.echoOf() == nil && !r.findsProfiles() {
		return
	}
	places := map[string]int{}
	for i := range questions {
		for _, name := range questions[i].Names() {
			places[name] = i
		}
	}
	said, isAny := make([]whose, len(all)), false
	for i := range all {
		if byOrder {
			if fault := r.outOfOrder(&all[i], &questions[i], i, places); fault != "" {
				for j := range all {
					all[j] = Verdict{Status: all[j].Status, Fault: fault, Swapped: true}
				}
				return
			}
		}
		said[i] = r.whose(&all[i], &questions[i], places)
		isAny = isAny || said[i].other
	}
	if !isAny {
		return
	}
	moved := !slices.ContainsFunc(said, func(w whose) bool { return w.own }) ||
		slices.ContainsFunc(said, func(w whose) bool { return w.other && w.place >= 0 && !said[w.place].own })
	for i := range all {
		switch {
		case said[i].other:
			all[i] = Verdict{Status: all[i].Status, Fault: ofAnotherKey, Swapped: true}
		case moved && !said[i].own:
			all[i] = Verdict{Status: all[i].Status, Fault: beside, Swapped: true}
		}
	}
}

// echoOf is where an answer says its key; nil if the entry does not say it.
func (r *Request) echoOf() *path {
	switch {
	case r.kind == resolution.Person: // an answer is of whoever has the name
		return nil
	case r.batch != nil:
		return r.batch.echo
	}
	return r.entry.echo
}

// findsProfiles reports whether answers may have the address of a profile, for which profiles are
// asked about.
func (r *Request) findsProfiles() bool {
	return r.kind == resolution.NetworkURL && slices.Contains(r.entry.Columns(), "network_url")
}

// whose looks where an answer says its key, and at the address of a profile that it found.
func (r *Request) whose(v *Verdict, q *exchange.Question, places map[string]int) (w whose) {
	w.place = -1
	another := func(text string) {
		w.other = true
		for _, name := range q.NamesOf(text) {
			if at, is := places[name]; is {
				w.place = at
			}
		}
	}
	reading(v.Body, func(body jsontree.Value) {
		if echo := r.echoOf(); echo != nil {
			text := r.echoed(echo.one(body), q.Key())
			said, asked := q.Says(text)
			if w.own = said == exchange.NamesThis; asked {
				another(text)
			}
		}
		if v.Outcome != Match || r.kind != resolution.NetworkURL {
			return
		}
		address := r.entry.fieldsOf(r.kind, v.Status, body).one["network_url"].text(body)
		if swapped, other := q.Profile(address, w.own); swapped {
			another(address)
		} else if said, _ := q.Says(address); !other && said == exchange.NamesThis {
			w.own = true
		}
	})
	w.own = w.own && !w.other
	return w
}

// echoed is the text with which an answer names its key. The handle of a profile, which is no address,
// stands for the page of the network that the key is of.
func (r *Request) echoed(v jsontree.Value, key string) string {
	text := jsontree.Text(v)
	if before, _, is := strings.Cut(key, "/in/"); is && r.kind == resolution.NetworkURL && text != "" && !strings.ContainsAny(text, "/.") {
		return before + "/in/" + text
	}
	return text
}

// outOfOrder says why an element is not that of its place, if its place alone says whose it is: it has
// another key, or that of nobody, where echo says that it has its own; without echo, it names the key
// of another element anywhere and not its own.
func (r *Request) outOfOrder(v *Verdict, q *exchange.Question, place int, places map[string]int) (fault string) {
	reading(v.Body, func(v jsontree.Value) {
		if echo := r.echoOf(); echo != nil {
			text := r.echoed(echo.one(v), q.Key())
			if said, _ := q.Says(text); text != "" && said != exchange.NamesThis && (q.Key() != "" || isElsewhere(q.NamesOf(text), place, places)) {
				fault = otherEcho
			}
			return
		}
		own, other := false, false
		texts(v, func(text string) {
			if said, _ := q.Says(text); said == exchange.NamesThis {
				own = true
			} else if len(places) > 1 && isElsewhere(q.NamesOf(text), place, places) {
				other = true
			}
		})
		if other && !own {
			fault = otherOrder
		}
	})
	return fault
}

// isElsewhere reports whether one of the names is that of another place.
func isElsewhere(names []string, place int, places map[string]int) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		at, is := places[name]
		return is && at != place
	})
}

// texts calls yield with each text in a value.
func texts(v jsontree.Value, yield func(string)) {
	switch v.Kind() {
	case '"':
		yield(v.Written())
	case '[', '{':
		for item := range v.Inside().All() {
			texts(item, yield)
		}
	}
}
