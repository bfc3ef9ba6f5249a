package provider

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/leadetl/leadetl/internal/jsontree"
	names "github.com/leadetl/leadetl/internal/suggest"
)

// Outcome is what an answer of a provider means.
type Outcome string

// The outcomes. An answer that fits no rule is Unknown: it may have been billed.
const (
	Unknown   Outcome = ""
	Match     Outcome = "match"
	NoMatch   Outcome = "no_match"
	Later     Outcome = "later"
	SlowDown  Outcome = "slow_down"
	NotBilled Outcome = "not_billed"
	NoCredits Outcome = "no_credits"
	Refused   Outcome = "refused"
	BadRow    Outcome = "bad_row"
)

// unknown is what a rule writes for Unknown.
const unknown = "unknown"

// The bounds of rules.
const (
	maxRules      = 64
	maxConditions = 16 // of an alternative
	maxFits       = 64 // alternatives of a rule
)

// rule gives an outcome to the answers that fit one of its alternatives.
type rule struct {
	line    int32
	text    string // as it is written
	outcome Outcome
	fits    []fit
	price   *int64 // of such an answer; nil is the entry's
}

// fit is a status and conditions of the body, all of which must hold.
type fit struct {
	from, to   int // the first and the last status
	conditions []condition
}

// condition is one of the body.
type condition struct {
	is    comparison
	at    path
	value string
}

type comparison byte

const (
	isThere  comparison = iota // path
	isntHere                   // !path
	equals                     // path=VALUE
	differs                    // path!=VALUE
	contains                   // path~VALUE
	lacks                      // path!~VALUE
	isNull                     // null
)

// parseRule reads the alternatives of a rule.
func parseRule(outcome, text string) (r rule, err error) {
	r.text = text
	if r.outcome = Outcome(outcome); outcome == unknown {
		r.outcome = Unknown
	}
	words, err := words(text)
	if err != nil {
		return r, err
	}
	r.fits = make([]fit, 0, min(strings.Count(text, "|")+1, maxFits+1))
	for len(words) > 0 && len(r.fits) <= maxFits {
		end := slices.Index(words, "|")
		if end < 0 {
			end = len(words)
		} else if end == len(words)-1 {
			return r, errors.New("nothing follows the last |")
		}
		f, err := parseFit(words[:end])
		if err != nil {
			return r, err
		}
		r.fits = append(r.fits, f)
		words = words[min(end+1, len(words)):]
	}
	if len(r.fits) == 0 || len(r.fits) > maxFits {
		return r, fmt.Errorf("a rule has 1 to %d alternatives, such as 404 or 200 !data", maxFits)
	}
	return r, nil
}

// words cuts a rule at spaces outside of double quotes.
func words(text string) (all []string, err error) {
	if !balanced(text) {
		return nil, errors.New("a double quote is missing")
	}
	all = make([]string, 0, strings.Count(text, " ")+1)
	for text != "" {
		word, rest, _ := cutOutside(text, ' ')
		if word != "" {
			all = append(all, word)
		}
		text = rest
	}
	return all, nil
}

// balanced reports whether all double quotes of a text end.
func balanced(text string) bool {
	quotes := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			quotes++
		}
	}
	return quotes%2 == 0
}

// parseFit reads a status and its conditions.
func parseFit(words []string) (f fit, err error) {
	if len(words) == 0 {
		return f, errors.New("nothing stands between two |")
	}
	status := words[0]
	n, err := strconv.Atoi(status)
	switch {
	case status == "*":
		f.from, f.to = 100, 599
	case len(status) == 3 && status[0] >= '2' && status[0] <= '5' && status[1:] == "xx":
		f.from = 100 * int(status[0]-'0')
		f.to = f.from + 99
	case err == nil && n >= 100 && n <= 599 && len(status) == 3:
		f.from, f.to = n, n
	default:
		return f, fmt.Errorf("%s is no status: write three digits, 5xx or *", quoted(status))
	}
	if len(words)-1 > maxConditions {
		return f, fmt.Errorf("there are more than %d conditions for a status", maxConditions)
	}
	f.conditions = make([]condition, 0, len(words)-1)
	for _, word := range words[1:] {
		c, err := parseCondition(word)
		if err != nil {
			return f, err
		}
		f.conditions = append(f.conditions, c)
	}
	return f, nil
}

// parseCondition reads path, !path, path=VALUE, path!=VALUE, path~VALUE, path!~VALUE or null.
func parseCondition(word string) (c condition, err error) {
	if word == "null" {
		return condition{is: isNull}, nil
	}
	where, by, value := cutComparison(word)
	switch at, negated := strings.CutSuffix(where, "!"); {
	case by == '=' && negated:
		c.is, where = differs, at
	case by == '=':
		c.is = equals
	case by == '~' && negated:
		c.is, where = lacks, at
	case by == '~':
		c.is = contains
	case strings.HasPrefix(where, "!"):
		c.is, where = isntHere, where[1:]
	}
	if c.at, err = parsePath(where); err != nil {
		return c, err
	}
	if by != 0 {
		c.value, err = parseWord(value)
	}
	if err == nil && by == '~' && c.value == "" {
		err = errors.New("every text contains an empty one; write a part that tells it")
	}
	return c, err
}

// cutComparison cuts a condition at its = or ~, which is no part of a filter or a name; by is 0
// without one.
func cutComparison(word string) (where string, by byte, value string) {
	depth := 0
	for i := 0; i < len(word); i++ {
		switch word[i] {
		case '\\':
			i++
		case '[':
			depth++
		case ']':
			depth--
		case '=', '~':
			if depth == 0 {
				return word[:i], word[i], word[i+1:]
			}
		}
	}
	return word, 0, ""
}

// holds reports whether a body fulfils a condition. A comparison needs a text, a number or a
// boolean to compare with.
func (c condition) holds(body jsontree.Value) bool {
	switch c.is {
	case isNull:
		return body.Kind() == 'n'
	case isThere:
		return !c.at.in(body, isEmpty)
	case isntHere:
		return c.isEmptyThere(body)
	}
	found, fits := false, false
	byPart, negated := c.is == contains || c.is == lacks, c.is == differs || c.is == lacks
	c.at.in(body, func(v jsontree.Value) bool {
		if text, is := spelled(v); is {
			found, fits = true, text == c.value || byPart && strings.Contains(text, c.value)
		}
		return !fits
	})
	return found && fits != negated
}

// isEmptyThere reports whether nothing is at a path in what has it: an object or list that is
// there, and for a single name an object that has the member.
func (c condition) isEmptyThere(body jsontree.Value) bool {
	if len(c.at) == 0 {
		return len(body) > 0 && isEmpty(body)
	}
	last := c.at[len(c.at)-1:]
	if len(c.at) == 1 && (body.Kind() != '{' || len(body.Get(last[0].name)) == 0) {
		return false
	}
	there, empty := false, true
	c.at[:len(c.at)-1].in(body, func(v jsontree.Value) bool {
		if k := v.Kind(); k == '{' || k == '[' {
			there, empty = true, last.in(v, isEmpty)
		}
		return empty
	})
	return there && empty
}

// received is an answer, as far as rules see it.
type received struct {
	status int
	body   jsontree.Value // empty if it is not one complete JSON value
	bare   bool           // the answer has no body at all
}

// fits reports whether an answer fits. One whose body cannot be read fits only what does not look
// into it, and with a 2xx nothing: it may be half of an answer. 204 and 205 have no body.
func (f fit) fits(a received) bool {
	if a.status < f.from || a.status > f.to {
		return false
	}
	if len(a.body) == 0 {
		hasNone := a.bare && (a.status == http.StatusNoContent || a.status == http.StatusResetContent)
		return len(f.conditions) == 0 && (a.status/100 != 2 || hasNone)
	}
	return !slices.ContainsFunc(f.conditions, func(c condition) bool { return !c.holds(a.body) })
}

// classify sets the outcome of the first rule that fits, its number from 1 and its price; Unknown
// and 0 if none does.
func (v *Verdict) classify(rules []rule, a received) {
	v.Outcome, v.Rule, v.price = Unknown, 0, nil
	for i, r := range rules {
		if slices.ContainsFunc(r.fits, func(f fit) bool { return f.fits(a) }) {
			v.Outcome, v.Rule, v.price = r.outcome, i+1, r.price
			return
		}
	}
}

// warning says what a rule may take for more than it is, "" if there is nothing: a 2xx of which
// it sees no member.
func (r rule) warning() string {
	if r.outcome != Match && r.outcome != NoMatch {
		return ""
	}
	for _, f := range r.fits {
		if len(f.conditions) == 0 && f.from <= http.StatusOK && f.to >= http.StatusOK {
			return fmt.Sprintf("%s for every 200: name a member that shows it, such as 200 data", r.outcome)
		}
	}
	return ""
}

// suggest ends a message about an unknown name.
func suggest(name string, known []string) string {
	if len(name) > 40 {
		return ""
	}
	if len(known) > 12 {
		return names.Name(name, known)
	}
	return names.OneOf(name, known)
}
