package provider

import (
	"net/netip"
	"strings"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/profile"
)

// checkEchoes makes a batch without ids unknown if its elements are not in the order of the request:
// one has the key of another, or of nobody, where echo says that it has its own; without echo, one
// names the key of another anywhere and not its own. A key that is "" is not known.
func (r *Request) checkEchoes(all []Verdict, keys []string) {
	b := r.batch
	if b.id != nil || b.echo == nil && len(keys) < 2 {
		return
	}
	of := make(map[string]int, len(keys))
	for i, key := range keys {
		if key != "" {
			of[r.question(key)] = i
		}
	}
	for i := range all {
		if own, other := r.names(&all[i], i, keys[i] != "", of); other && !own {
			fault := "the answer to a batch has the keys in another order"
			if b.echo != nil {
				fault = "an element of a batch has the key of another one where echo looks for its own"
			}
			for j := range all {
				all[j] = Verdict{Status: all[j].Status, Fault: fault, Swapped: true}
			}
			return
		}
	}
}

// names says whether the element at a place has the key of that place, and whether it has another;
// isKnown says whether it is known which key that place has.
func (r *Request) names(v *Verdict, place int, isKnown bool, of map[string]int) (own, other bool) {
	reading(v.Body, func(v jsontree.Value) {
		if echo := r.batch.echo; echo != nil {
			if text := jsontree.Text(echo.one(v)); text != "" {
				at, is := of[r.question(keyIn(r.kind, text))]
				own = is && at == place
				other = is || isKnown
			}
			return
		}
		texts(v, func(text string) {
			if at, is := of[r.question(keyIn(r.kind, text))]; is {
				own, other = own || at == place, other || at != place
			}
		})
	})
	return own, other
}

// isElsewhere reports whether an answer about a profile is of another address, which may be another
// one of the same person.
func isElsewhere(kind resolution.Identifier, key string, found resolution.AnswerRow) bool {
	if kind != resolution.NetworkURL || key == "" || !found.Matched() {
		return false
	}
	said := keyIn(kind, found.Lead().NetworkURL)
	return said != "" && said != key
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

// keyIn is the key that a text is, "" for any other text.
func keyIn(kind resolution.Identifier, text string) string {
	switch {
	case len(text) > 2048:
	case kind == resolution.Email && strings.Contains(text, "@"):
		if a, err := email.Read([]byte(text)); err == nil {
			return string(a.AppendKey(nil))
		}
	case kind == resolution.Email:
		return strings.ToLower(text)
	case kind == resolution.NetworkURL && strings.Contains(text, "/"):
		if key, err := profile.DefaultRules().ParsePerson(text); err == nil {
			return key
		}
	case kind == resolution.IP:
		if a, err := netip.ParseAddr(text); err == nil {
			return a.Unmap().String()
		}
	}
	return ""
}
