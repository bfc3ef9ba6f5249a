package sources

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/leadetl/leadetl/internal/rows"
)

// pick returns the columns' places in the file's header. A name is matched
// exactly first, then without regard to case.
func (in *input) pick(columns []string) ([]int, error) {
	places := make([]int, len(columns))
	for i, name := range columns {
		found := in.matches(func(s string) bool { return s == name })
		if len(found) == 0 {
			found = in.matches(func(s string) bool { return strings.EqualFold(s, name) })
		}
		switch len(found) {
		case 1:
			places[i] = found[0]
		case 0:
			return nil, in.noColumn(name)
		default:
			return nil, &FormatError{File: in.URI, Problem: fmt.Sprintf("has %d columns %q", len(found), name),
				Advice: "Rename all but one in its header, or choose other columns"}
		}
	}
	return places, nil
}

func (in *input) matches(match func(string) bool) (places []int) {
	for i, name := range in.Columns {
		if match(name) {
			places = append(places, i)
		}
	}
	return places
}

// listed is how many columns an error names.
const listed = 40

func (in *input) noColumn(name string) error {
	e := &FormatError{File: in.URI, Problem: fmt.Sprintf("has no column %q", name)}
	if rows.AreData(in.Columns) { // they must not be shown
		e.Problem += ": its first line looks like data, not like the names of columns"
		e.Advice = "Add a header line"
		return e
	}
	names, more := in.Columns, ""
	if len(names) > listed {
		names, more = names[:listed], fmt.Sprintf(" and %d more", len(names)-listed)
	}
	e.Problem += "; it has: " + strings.Join(names, ", ") + more
	e.Advice = "Choose with --column and --keep"
	similar := in.matches(func(s string) bool { return bare(s) != "" && bare(s) == bare(name) })
	if len(similar) > 0 {
		var quoted []string
		for _, place := range similar {
			quoted = append(quoted, strconv.Quote(in.Columns[place]))
		}
		e.Advice = "Did you mean " + strings.Join(quoted, " or ") + "? " + e.Advice
	}
	return e
}

// bare is a name without case and punctuation: E-Mail and e_mail are email.
func bare(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}
