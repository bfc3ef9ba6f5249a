package columns

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/leadetl/leadetl/internal/suggest"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/values"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/transforms/hashed"
)

// inAll are the columns of all datasets: without them, a row without data says nothing.
var inAll = []string{"outcome", "reason"}

// prefix begins the name of an input column whose own name is taken.
const prefix = "in_"

// SelectsInput reports whether a selection has all columns of the input.
func SelectsInput(selected []string) bool {
	return selected == nil || slices.Contains(selected, schema.All) || slices.Contains(selected, schema.Input)
}

// KeptOf are the columns of an input that are written. If the input is not known, nil, every name
// that is no column of the operation is one of them. So is a name that the input does not have, and
// that is no misspelled column of the operation: who reads the input refuses it.
func (s Settings) KeptOf(input []string) (kept []string) {
	if SelectsInput(s.Select) {
		return input
	}
	own, every := namesOf(s.ownColumns()), namesOf(Every(s.Operation, nil, nil))
	for _, name := range s.Select {
		if name == "" || slices.Contains(schema.Groups, name) || placeOf(own, name) >= 0 {
			continue
		}
		isInput := placeOf(input, name) >= 0
		if at := len(prefix); !isInput && len(name) > at && strings.EqualFold(name[:at], prefix) && placeOf(own, name[at:]) >= 0 {
			name, isInput = name[at:], true
		}
		isInput = isInput || placeOf(every, name) < 0 && (input == nil || closeTo(name, slices.Concat(own, schema.Groups)) == "")
		if isInput && !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	return kept
}

// placeOf is the place of a name: exactly, else in any case; -1 without one.
func placeOf(names []string, name string) int {
	if i := slices.Index(names, name); i >= 0 {
		return i
	}
	return slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

func namesOf(columns []schema.Column) (names []string) {
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return names
}

// selected returns the places of the columns that are written, in their order: first those of kept
// columns, by their names in the output, then those of all.
func (s Settings) selected(all []schema.Column, kept []string) (places []int, err error) {
	group := map[string][]int{schema.Input: nil, schema.Answers: nil, schema.Flat: nil}
	for i, name := range kept {
		if name != "" {
			group[schema.Input] = append(group[schema.Input], i)
		}
	}
	for i, c := range all {
		if s.drops(c.Name) || s.onlyNamed(c.Name) {
			continue
		}
		group[schema.Answers] = append(group[schema.Answers], len(kept)+i)
		if !arrow.IsNested(c.Arrow.ID()) {
			group[schema.Flat] = append(group[schema.Flat], len(kept)+i)
		}
	}
	group[schema.All] = slices.Concat(group[schema.Input], group[schema.Answers])
	if s.Select == nil {
		return group[schema.All], nil
	}
	own := namesOf(all)
	places, err = schema.Select(s.Select, group, func(name string) (int, error) { return s.find(name, own, kept) })
	if err != nil {
		return nil, err
	}
	for _, name := range inAll {
		if i := len(kept) + slices.Index(own, name); !slices.Contains(places, i) {
			places = append(places, i)
		}
	}
	return places, nil
}

// unread returns the columns of answers that no column is made from that is written.
func unread(writes func(column string) bool) (u resolution.Unread) {
	for _, v := range values.ByName {
		u.Texts[v.Text] = v.Text > 0
	}
	for _, v := range values.ByName {
		if writes(v.Name) || slices.ContainsFunc(v.Makes, writes) {
			u.Texts[v.Text] = false
		}
	}
	for _, p := range hashed.Of(hashed.Phone) {
		u.Texts[resolution.FieldPhone] = u.Texts[resolution.FieldPhone] && !writes(p.Column)
	}
	u.Emails, u.Phones, u.LastSeen = !writes("emails"), !writes("phones"), !writes("last_seen_at")
	u.Companies = true
	for i, v := range values.Company {
		u.Company[i] = !writes(v.Name)
		u.Companies = u.Companies && u.Company[i]
	}
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

// onlyNamed reports whether a column is in no group. Every hash of every address takes a third of a
// file of people, and is the answer only where hashes are what is asked for.
func (s Settings) onlyNamed(column string) bool {
	return column == "hashed_emails" && s.Operation.Gives() != resolution.GivesHashes
}

// find returns the place of a column that is selected, as in selected.
func (s Settings) find(name string, own, kept []string) (int, error) {
	dropped := fmt.Errorf("--select names %q, which --drop-identifier leaves out", name)
	if i := placeOf(own, name); i >= 0 {
		if s.drops(own[i]) {
			return 0, dropped
		}
		return len(kept) + i, nil
	}
	for _, names := range [][]string{s.Kept, kept} {
		if i := placeOf(names, name); i >= 0 && kept[i] != "" {
			return i, nil
		} else if i >= 0 {
			return 0, dropped
		}
	}
	return 0, s.notThere(name, own)
}

// notThere is the error of a name that is no column of the input, and none of the operation with
// these settings.
func (s Settings) notThere(name string, own []string) error {
	other := placeOf(namesOf(Every(s.Operation, nil, nil)), name) >= 0
	switch {
	case name == "":
		return errors.New("--select has an empty name between its commas")
	case other && strings.HasPrefix(strings.ToLower(name), "hem_"):
		return fmt.Errorf("--select names %q, which --hem-types and --hem-profiles leave out", name)
	case other && slices.ContainsFunc(hashed.Of(hashed.Phone), func(p hashed.Profile) bool { return strings.EqualFold(p.Column, name) }):
		return fmt.Errorf("--select names %q, which only phone_profiles gives", name)
	case strings.EqualFold(name, "source_part"):
		return fmt.Errorf("--select names %q, which only --multiple each gives", name)
	case other:
		return fmt.Errorf("--select names %q, which only a service gives %s", name, s.Operation)
	}
	return fmt.Errorf("--select names %q, which neither the input nor %s has%s; leadetl schema %s --dialect markdown lists those of %[2]s",
		name, s.Operation, closeTo(name, slices.Concat(own, s.Kept, schema.Groups)), s.Operation)
}

// closeTo ends a message with the known names that are close to an unknown one; "" without any.
func closeTo(name string, known []string) string {
	var close []string
	for _, k := range known {
		if suggest.IsClose(strings.ToLower(name), k) {
			close = append(close, strconv.Quote(k))
		}
	}
	if close == nil {
		return ""
	}
	return "; did you mean " + strings.Join(close, " or ") + "?"
}
