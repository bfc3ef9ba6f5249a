package sources

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/leadetl/leadetl/internal/rows"
	"github.com/leadetl/leadetl/internal/suggest"
)

// pick returns the indexes of the columns in the file's header. A name matches
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
			advice := "Choose with --id-column, --select and --where"
			if in.folder != "" {
				advice = "Every file of the folder is read: move this one away, or name the files, as in --in '" + in.folder + "/*.csv'"
			}
			return nil, in.NoColumn(advice, name)
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

// NamesMayBeData reports whether the first line of the file may be a row, so that
// the names of its columns must not be shown. In Parquet they are names.
func (f File) NamesMayBeData() bool { return f.Format == formatCSV && rows.MayBeData(f.Columns) }

// delimiterMayBeAnother reports whether the names of the columns of a CSV file have other
// delimiters inside.
func (f File) delimiterMayBeAnother() bool {
	return f.Format == formatCSV && slices.ContainsFunc(f.Columns, func(name string) bool { return strings.ContainsAny(name, ",;|\t") })
}

// listed is how many columns an error names.
const listed = 40

// NoColumn returns the error for a file without any of these columns. advice
// says how to choose others.
func (f File) NoColumn(advice string, names ...string) error {
	if f.delimiterMayBeAnother() {
		advice = "If another character separates its columns, give it with --delimiter, or in a line sep=; before the header. " + advice
	}
	e := &FormatError{File: f.URI, Problem: "has no column " + quotedOr(names)}
	if f.NamesMayBeData() {
		e.Problem += ": its first line looks like data, not like the names of columns"
		e.Advice = "Add a header line"
		if !rows.AreData(f.Columns) {
			e.Advice += ", if it has none. " + advice
		}
		return e
	}
	shown, more := f.Columns, ""
	if len(shown) > listed {
		shown, more = shown[:listed], fmt.Sprintf(" and %d more", len(shown)-listed)
	}
	e.Problem += "; it has: " + strings.Join(shown, ", ") + more
	e.Advice = advice
	meant := slices.DeleteFunc(slices.Clone(f.Columns), func(s string) bool {
		return bare(s) == "" || !slices.ContainsFunc(names, func(name string) bool { return isMeant(name, s) })
	})
	if len(meant) > 0 {
		e.Advice = "Did you mean " + quotedOr(meant) + "? " + e.Advice
	}
	return e
}

// quotedOr formats a list for a sentence: "a" or "b".
func quotedOr(names []string) string {
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, strconv.Quote(name))
	}
	return strings.Join(quoted, " or ")
}

// otherNames are words of headers that people write for the columns that the program
// looks for.
var otherNames = map[string][]string{
	"email":       {"mail"},
	"network_url": {"linkedin", "profile", "url"},
	"keywords":    {"keyword", "search", "query", "term"},
	"domain":      {"website"},
	"ip":          {"ip", "ipv4", "ipv6", "ipaddr", "remoteaddr"},
}

// isMeant reports whether a column of a file is probably the one that is looked for by a
// name.
func isMeant(name, column string) bool {
	if a, b := bare(name), bare(column); similar(a, b) || suggest.IsClose(a, b) {
		return true
	}
	return slices.ContainsFunc(otherNames[name], func(word string) bool {
		return len(word) > 3 && strings.Contains(bare(column), word) || slices.Contains(wordsOf(column), word)
	})
}

// wordsOf divides the name of a column where a word ends: at punctuation, or before a
// capital after a small letter.
func wordsOf(name string) []string {
	var parted strings.Builder
	last := ' '
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) || unicode.IsUpper(r) && unicode.IsLower(last) {
			parted.WriteByte(' ')
		}
		parted.WriteRune(unicode.ToLower(r))
		last = r
	}
	return strings.FieldsFunc(parted.String(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// minBegun is how many letters a name must have to be the beginning of another.
const minBegun = 4

// similar reports whether two bare names are the same, or one begins with the other.
func similar(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return a == b || len(a) >= minBegun && strings.HasPrefix(b, a)
}

// bare returns a name without case and punctuation: E-Mail and e_mail become
// email.
func bare(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, name)
}
