package request

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/leadetl/leadetl/transforms/search"
)

// form reads the fields of a body and collects their problems. A method that
// returns false has added a problem, or an optional field is missing.
type form struct {
	object   Object
	limits   Limits
	problems problems
}

func (f *form) problem(pointer, code, format string, a ...any) {
	f.problems.add(Problem{Pointer: pointer, Code: code, Detail: fmt.Sprintf(format, a...)})
}

// optional returns the value of a field; empty when the field is missing or of
// another kind.
func (f *form) optional(name string, want jsontext.Kind) value {
	v := f.object.get(name)
	if v == "" {
		return ""
	}
	if v.kind() != want {
		f.problem("/"+name, "wrong_type", "%s", expected[want])
		return ""
	}
	return v
}

// require adds a problem when the field is missing.
func (f *form) require(name string) {
	if f.object.get(name) == "" {
		f.problem("/"+name, "required", "is required")
	}
}

func (f *form) text(name string) (text string, ok bool) {
	v := f.optional(name, stringKind)
	if v == "" {
		return "", false
	}
	return v.text(), true
}

func (f *form) requiredText(name string) (text string, ok bool) {
	f.require(name)
	return f.text(name)
}

// shortText checks only the length of a text: at most this many characters.
func (f *form) shortText(name string, most int) {
	if text, ok := f.text(name); ok {
		f.fits("/"+name, text, most)
	}
}

func (f *form) fits(pointer, text string, most int) bool {
	if len(text) > most && utf8.RuneCountInString(text) > most {
		f.problem(pointer, "too_long", "must have at most %d characters", most)
		return false
	}
	return true
}

func (f *form) boolean(name string) bool {
	v := f.optional(name, booleanKind)
	return v != "" && v[0] == 't'
}

// integer reads a whole number from least to most. A missing field is otherwise.
// ok is false when it added a problem.
func (f *form) integer(name string, least, most, otherwise int) (n int, ok bool) {
	v := f.object.get(name)
	if v == "" {
		return otherwise, true
	}
	if v.kind() != numberKind {
		f.problem("/"+name, "wrong_type", "must be an integer")
		return 0, false
	}
	whole, ok := parseDecimal(string(v)).integer()
	switch {
	case !ok:
		f.problem("/"+name, "wrong_type", "must be an integer")
		return 0, false
	case whole < int64(least) || whole > int64(most):
		f.problem("/"+name, "out_of_range", "must be from %d to %d", least, most)
		return 0, false
	}
	return int(whole), true
}

// moment adds a problem when the field is not a time. Source: RFC 3339.
func (f *form) moment(name string) {
	text, ok := f.text(name)
	if !ok {
		return
	}
	var t time.Time
	if t.UnmarshalText([]byte(text)) != nil {
		f.problem("/"+name, "invalid_time", "must be a time such as 2026-11-20T09:18:00Z (RFC 3339)")
	}
}

// fault adds the problem of a fault. It returns true when there is no fault.
func (f *form) fault(pointer string, wrong search.Fault) (fine bool) {
	if wrong == (search.Fault{}) {
		return true
	}
	f.problem(pointer, wrong.Code, "%s", wrong.Detail)
	return false
}

// list calls item for every string of a list. If the list does not have least to
// most items, that is its only problem.
func (f *form) list(name string, least, most int, item func(text string) search.Fault) {
	v := f.optional(name, arrayKind)
	if v == "" {
		return
	}
	switch n := v.count(); {
	case n > most:
		f.problem("/"+name, "too_many", "must have at most %d items", most)
		return
	case n < least:
		f.problem("/"+name, "too_few", "must have at least %d item", least)
		return
	}
	i := 0
	v.each(func(v value) {
		wrong := search.Fault{Code: "wrong_type", Detail: expected[stringKind]}
		if v.kind() == stringKind {
			wrong = item(v.text())
		}
		f.fault("/"+name+"/"+strconv.Itoa(i), wrong)
		i++
	})
}

// maxProblems is how many problems an answer lists.
const maxProblems = 100

// problems collects what is wrong with a body.
type problems struct {
	list []Problem
	n    int // includes those that are no longer listed
}

func (p *problems) add(found Problem) {
	if p.n++; p.n <= maxProblems {
		p.list = append(p.list, found)
	}
}

// all returns the problems, nil when there are none. When there are too many to
// list, the last one says how many are left out.
func (p *problems) all() []Problem {
	if p.n > maxProblems {
		p.list[maxProblems-1] = Problem{
			Code:   "more_problems",
			Detail: fmt.Sprintf("and %d more problems", p.n-maxProblems+1),
		}
	}
	return p.list
}
