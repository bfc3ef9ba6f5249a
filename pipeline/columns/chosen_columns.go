package columns

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/values"
	"github.com/leadetl/leadetl/sinks/schema"
)

// Flat stands for all columns but lists, in Settings.Columns.
const Flat = "flat"

// inAll are the columns of all datasets: without them, a row without data says nothing.
var inAll = []string{"outcome", "reason"}

// usual returns the places of the columns that are written without Columns.
func (s Settings) usual(all []schema.Column) (places []int) {
	for i, c := range all {
		if !s.drops(c.Name) {
			places = append(places, i)
		}
	}
	return places
}

// chosen returns the places of the columns that are written, in the order in which they are.
func (s Settings) chosen(all []schema.Column) (places []int, err error) {
	switch {
	case s.Columns == nil:
		return s.usual(all), nil
	case slices.Equal(s.Columns, []string{Flat}):
		return slices.DeleteFunc(s.usual(all), func(i int) bool { return arrow.IsNested(all[i].Arrow.ID()) }), nil
	}
	names := slices.Clone(s.Columns)
	for _, name := range inAll {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(c schema.Column) bool { return strings.EqualFold(c.Name, name) })
		switch {
		case i < 0:
			return nil, s.notThere(name, all)
		case slices.Contains(places, i):
			return nil, fmt.Errorf("--columns names %q twice", name)
		case s.drops(all[i].Name):
			return nil, fmt.Errorf("--columns names %q, which --drop-identifier leaves out", name)
		}
		places = append(places, i)
	}
	return places, nil
}

// unread returns the columns of answers that no column is made from that is written.
func unread(writes func(column string) bool) (u resolution.Unread) {
	for _, v := range values.ByName {
		u.Texts[v.Text] = v.Text > 0 && !writes(v.Name) && !slices.ContainsFunc(v.Makes, writes)
	}
	u.Emails, u.Phones, u.LastSeen = !writes("emails"), !writes("phones"), !writes("last_seen_at")
	u.Companies = !slices.ContainsFunc(values.Company[:], func(v values.Value) bool { return writes(v.Name) })
	u.Hashes = !writes("hashed_emails")
	for i, d := range digests {
		u.HashTypes[i] = u.Hashes && !writes("hem_"+d.name)
	}
	return u
}

// identifying are the columns with the identifiers of answers that suppression lists may have
// (resolution.Answers.Identifiers).
var identifying = []string{"network_url", "phone", "phones", "email", "emails", "hashed_emails"}

// drops reports whether a column is left out because it has the identifier.
func (s Settings) drops(column string) bool {
	if !s.DropIdentifier {
		return false
	}
	return column == "key" || column == "matched_keywords" ||
		column == string(resolution.NetworkURL) && s.Operation.Identifier() == resolution.NetworkURL
}

// notThere is the error of a name that is no column of the operation with these settings.
func (s Settings) notThere(name string, all []schema.Column) error {
	named := func(known ...string) bool {
		return slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
	}
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	other := slices.ContainsFunc(Every(s.Operation, nil, nil), func(c schema.Column) bool { return strings.EqualFold(c.Name, name) })
	switch {
	case name == "":
		return errors.New("--columns has an empty name between its commas")
	case other && strings.HasPrefix(strings.ToLower(name), "hem_"):
		return fmt.Errorf("--columns names %q, which --hem-types and --hem-profiles leave out", name)
	case strings.EqualFold(name, "source_part"):
		return fmt.Errorf("--columns names %q, which only --multiple each gives", name)
	case other:
		return fmt.Errorf("--columns names %q, which only a service gives %s", name, s.Operation)
	case named(s.Kept...), named(s.Identifier), len(name) > len("in_") && strings.EqualFold(name[:len("in_")], "in_"),
		slices.ContainsFunc(s.Renames, func(r Rename) bool { return named(r.New) }):
		return fmt.Errorf("--columns names %q, which is a column of the input; --keep names those, and they come first", name)
	}
	return fmt.Errorf("--columns names %q, which %s does not have%s; leadetl schema %s --dialect markdown lists its columns",
		name, s.Operation, suggest.Name(name, names), s.Operation)
}
