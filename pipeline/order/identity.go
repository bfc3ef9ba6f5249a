package order

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// identity is what two orders share exactly if they make the same rows of the same answers.
type identity struct {
	Want      []string       `json:"want,omitempty"`
	AskAll    bool           `json:"ask_all,omitempty"`
	Resolvers []identityStep `json:"resolvers"`
	PerKey    int64          `json:"max_credits_per_key,omitempty"`
}

type identityStep struct {
	Name     string              `json:"name"`
	Entry    string              `json:"entry,omitempty"`
	Edition  string              `json:"edition,omitempty"` // of reference data
	For      []string            `json:"for,omitempty"`
	Accept   map[string][]string `json:"accept,omitempty"`
	MinMatch float64             `json:"min_match,omitempty"`
	ElseNext bool                `json:"else_next,omitempty"`
	Person   []string            `json:"person,omitempty"` // what it is asked by, if not by keys
}

// identityPrefix begins the identities of orders, and no other source of answers.
const identityPrefix = "resolvers "

// Identity is a text that two orders share exactly if they make the same rows of the same answers.
func (o *Order) Identity() string {
	if o.IsOne() {
		if text, plain := o.plainIdentity(); plain {
			return text
		}
	}
	id := identity{Want: o.Want, AskAll: o.AskAll, PerKey: o.PerKey}
	for _, s := range o.Steps {
		id.Resolvers = append(id.Resolvers, identityStep{s.Name, s.Entry, s.Fingerprint, s.For, s.Accept, s.MinMatch, s.ElseNext, s.Person})
	}
	text, _ := json.Marshal(id) // texts and finite numbers
	return identityPrefix + string(text)
}

// Named is an identity as text for people: the names of the resolvers. known says that it is one.
func Named(text string) (names string, known bool) {
	id, known := readIdentity(text)
	return identityPrefix + strings.Join(id.names(), ", "), known
}

// Differences says how an order differs from an earlier one by their identities, in words; known
// says that both are identities.
func Differences(before, now string) (words []string, known bool) {
	was, first := readIdentity(before)
	is, second := readIdentity(now)
	if !first || !second {
		return nil, false
	}
	differ := func(what, was, is string) {
		if was != is {
			words = append(words, fmt.Sprintf("%s was %s and is %s", what, orNone(was), orNone(is)))
		}
	}
	list := func(all []string) string { return strings.Join(all, ", ") }
	differ("--ask-all", word(was.AskAll, "set"), word(is.AskAll, "set"))
	differ("want", list(was.Want), list(is.Want))
	differ("max_credits_per_key", limited(was.PerKey), limited(is.PerKey))
	differ("the order of resolvers", list(was.names()), list(is.names()))
	for _, step := range is.Resolvers {
		i := slices.Index(was.names(), step.Name)
		if i < 0 {
			continue
		}
		old := was.Resolvers[i]
		if old.Entry != step.Entry {
			words = append(words, fmt.Sprintf("the entry of provider %s changed, by a provider file or a new version of the program", step.Name))
		}
		if old.Edition != step.Edition {
			words = append(words, "the reference data of resolver "+step.Name+" changed")
		}
		of := " of resolver " + step.Name
		differ("for"+of, list(old.For), list(step.For))
		differ("accept"+of, accepts(old.Accept), accepts(step.Accept))
		differ("min_match"+of, share(old.MinMatch), share(step.MinMatch))
		differ("what it is asked by, person,"+of, list(old.Person), list(step.Person))
		differ("else"+of, word(old.ElseNext, "next"), word(step.ElseNext, "next"))
	}
	return words, true
}

func readIdentity(text string) (id identity, is bool) {
	encoded, is := strings.CutPrefix(text, identityPrefix)
	return id, is && json.Unmarshal([]byte(encoded), &id) == nil
}

func (id identity) names() (all []string) {
	for _, s := range id.Resolvers {
		all = append(all, s.Name)
	}
	return all
}

func orNone(text string) string {
	if text == "" {
		return "not set"
	}
	return text
}

func accepts(of map[string][]string) string {
	var all []string
	for _, column := range slices.Sorted(maps.Keys(of)) {
		all = append(all, column+" "+strings.Join(of[column], " or "))
	}
	return strings.Join(all, ", ")
}

func limited(to int64) string {
	if to == 0 {
		return ""
	}
	return strconv.FormatInt(to, 10)
}

func share(of float64) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf("%g%%", 100*of)
}

func word(is bool, says string) string {
	if is {
		return says
	}
	return ""
}
