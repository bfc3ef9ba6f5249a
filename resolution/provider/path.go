package provider

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/leadetl/leadetl/internal/jsontree"
)

// maxSteps bounds a path.
const maxSteps = 16

// path says where in an answer a value is: a.b.0.c, with a filter as in emails[type=work] and *
// for each element of a list. Without steps it is the whole answer, written as a dot.
type path []step

// step goes from a value to one in it.
type step struct {
	name  string // of a member, "" if there is only a filter
	index int    // the same as a place in a list, -1 if the name is no number
	each  bool   // all elements of a list
	// where is the member that a filter compares, "" without a filter: of a list, the first
	// element whose member is the value.
	where, is string
}

// parsePath reads a path.
func parsePath(text string) (path, error) {
	if text == "." {
		return path{}, nil
	}
	p := make(path, 0, min(strings.Count(text, ".")+1, maxSteps+1))
	for rest := text; ; {
		s, after, err := parseStep(rest)
		if err != nil {
			return nil, fmt.Errorf("%s is no path: %w", quoted(text), err)
		}
		if p = append(p, s); len(p) > maxSteps {
			return nil, fmt.Errorf("the path %s has more than %d steps", quoted(text), maxSteps)
		}
		if after == "" {
			return p, nil
		}
		rest = after[1:] // behind the dot
	}
}

// parseStep reads a step up to the next dot, which it leaves.
func parseStep(text string) (s step, after string, err error) {
	s.index = -1
	name, escaped, rest, err := cutName(text)
	if err != nil {
		return s, "", err
	}
	s.name = name
	if !escaped && isDigits(name) { // the error for another name takes time
		if n, err := strconv.ParseUint(name, 10, 31); err == nil && strconv.FormatUint(n, 10) == name {
			s.index = int(n)
		}
	}
	s.each = name == "*" && !escaped
	if strings.HasPrefix(rest, "[") {
		if s.each {
			return s, "", errors.New("a filter follows the name of a list, not a *")
		}
		if rest, err = s.filter(rest[1:]); err != nil {
			return s, "", err
		}
	} else if name == "" {
		return s, "", errors.New("a name is missing; write \\. for a dot in a name")
	}
	if rest != "" && rest[0] != '.' {
		return s, "", errors.New("a dot is missing behind a filter")
	}
	return s, rest, nil
}

// cutName reads a name up to a dot or a filter. Behind a \ each character is a part of it.
func cutName(text string) (name string, escaped bool, rest string, err error) {
	end := 0
	for ; end < len(text) && text[end] != '.' && text[end] != '['; end++ {
		switch c := text[end]; c {
		case '\\':
			if end++; end == len(text) {
				return "", false, "", errors.New("nothing stands behind a \\")
			}
			escaped = true
		case ']', ' ', '"', '|':
			return "", false, "", fmt.Errorf("%c stands in a name; write \\%c for it", c, c)
		}
	}
	if name = text[:end]; escaped {
		name = unescaped(name)
	}
	return name, escaped, text[end:], nil
}

// unescaped drops each \ and keeps what follows it.
func unescaped(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// filter reads what stands in the brackets of a filter, and returns what follows them.
func (s *step) filter(text string) (rest string, err error) {
	inside, rest, closed := cutOutside(text, ']')
	member, value, compared := cutOutside(inside, '=')
	where, _, after, err := cutName(member)
	if !closed || !compared || where == "" || after != "" || err != nil {
		return "", errors.New("a filter has the form [name=value]")
	}
	s.where = where
	s.is, err = parseWord(value)
	return rest, err
}

// cutOutside is strings.Cut at a character that stands outside of double quotes.
func cutOutside(text string, at byte) (before, after string, found bool) {
	inQuotes := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '"':
			inQuotes = !inQuotes
		case c == at && !inQuotes:
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}

// parseWord reads a value that a path is compared with: a word, or text in double quotes, in
// which \ stands before " and \.
func parseWord(text string) (string, error) {
	if text == "" {
		return "", errors.New(`the value to compare with is missing; write "" for an empty text`)
	}
	if text[0] != '"' {
		if strings.ContainsAny(text, `" `) {
			return "", fmt.Errorf("%s is no word; write it in double quotes", quoted(text))
		}
		return text, nil
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case c == '"' && i == len(text)-1:
			return b.String(), nil
		case c == '"':
			i = len(text)
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("the double quotes around a value do not end it: %s", quoted(text))
}

// String writes a path in its one spelling.
func (p path) String() string {
	if len(p) == 0 {
		return "."
	}
	var all []string
	for _, s := range p {
		text := s.name
		if !s.each {
			text = escapedName.Replace(text)
			if s.name == "*" || s.index < 0 && isDigits(s.name) {
				text = `\` + text
			}
		}
		if s.where != "" {
			text += "[" + escapedName.Replace(s.where) + `="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s.is) + `"]`
		}
		all = append(all, text)
	}
	return strings.Join(all, ".")
}

var escapedName = strings.NewReplacer(`\`, `\\`, ".", `\.`, "[", `\[`, "]", `\]`, " ", `\ `, `"`, `\"`, "|", `\|`, "=", `\=`, "~", `\~`)

func isDigits(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// in calls yield with each value that the path leads to, until yield returns false.
func (p path) in(v jsontree.Value, yield func(jsontree.Value) bool) bool {
	if len(v) == 0 {
		return true
	}
	if len(p) == 0 {
		return yield(v)
	}
	s, rest := p[0], p[1:]
	if s.each {
		if v.Kind() != '[' {
			return true
		}
		for item := range v.Inside().All() {
			if !rest.in(item, yield) {
				return false
			}
		}
		return true
	}
	if s.name != "" {
		v = s.of(v)
	}
	if s.where != "" {
		v = s.first(v)
	}
	return rest.in(v, yield)
}

// of is the member, or the element, of a value that a step names.
func (s step) of(v jsontree.Value) jsontree.Value {
	switch v.Kind() {
	case '{':
		return v.Get(s.name)
	case '[':
		n := 0
		for item := range v.Inside().All() {
			if n == s.index {
				return item
			}
			n++
		}
	}
	return nil
}

// list leads to what a filter picks from.
func (s step) list() path {
	if s.name == "" {
		return nil
	}
	return path{{name: s.name, index: s.index}}
}

// first is the first element of a list that fits the filter.
func (s step) first(v jsontree.Value) jsontree.Value {
	if v.Kind() != '[' {
		return nil
	}
	for item := range v.Inside().All() {
		if text, is := spelled(item.Get(s.where)); item.Kind() == '{' && is && text == s.is {
			return item
		}
	}
	return nil
}

// one is the first value that the path leads to; empty without any.
func (p path) one(v jsontree.Value) (found jsontree.Value) {
	p.in(v, func(v jsontree.Value) bool {
		found = v
		return false
	})
	return found
}

// spelled is a text as it is, and a number or a boolean as JSON writes it. It is false for
// anything else.
func spelled(v jsontree.Value) (string, bool) {
	switch v.Kind() {
	case '"', '0', 't', 'f':
		return v.Written(), true
	}
	return "", false
}

// isEmpty reports whether a value is absent, null, "", [] or {}.
func isEmpty(v jsontree.Value) bool {
	switch v.Kind() {
	case 0, 'n':
		return true
	case '"':
		return v.Written() == ""
	case '[', '{':
		return len(v) == 1
	}
	return false
}

// alternatives are paths of which the first that leads to a value counts.
type alternatives []path

// parseAlternatives reads paths between bars.
func parseAlternatives(text string) (all alternatives, err error) {
	for one := range strings.SplitSeq(text, " | ") {
		p, err := parsePath(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if len(all) > maxSteps {
		return nil, fmt.Errorf("there are more than %d paths between bars", maxSteps)
	}
	return all, nil
}

func (a alternatives) String() string {
	var all []string
	for _, p := range a {
		all = append(all, p.String())
	}
	return strings.Join(all, " | ")
}

// text is the first text or number that the paths lead to, "" without one.
func (a alternatives) text(v jsontree.Value) string { return jsontree.Text(a.value(v)) }

// value is the first value that is a text or a number.
func (a alternatives) value(v jsontree.Value) jsontree.Value {
	return a.first(v, func(v jsontree.Value) bool { return jsontree.Text(v) != "" })
}

// spelled is the first text, number or boolean as conditions compare it, "" without one.
func (a alternatives) spelled(v jsontree.Value) string {
	text, _ := spelled(a.first(v, func(v jsontree.Value) bool {
		text, is := spelled(v)
		return is && text != ""
	}))
	return text
}

// first is the first value that fits.
func (a alternatives) first(v jsontree.Value, fits func(jsontree.Value) bool) (found jsontree.Value) {
	for _, p := range a {
		p.in(v, func(v jsontree.Value) bool {
			if fits(v) {
				found = v
			}
			return found == nil
		})
		if found != nil {
			break
		}
	}
	return found
}

// quoted shortens a text of a file for a message.
func quoted(text string) string {
	if len(text) > 60 {
		text = text[:60] + "…"
	}
	return strconv.Quote(text)
}
