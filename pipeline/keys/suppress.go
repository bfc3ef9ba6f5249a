package keys

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow/array"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/values"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/hashed"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// Suppressor suppresses people who must not be in the dataset. A nil one suppresses no rows.
type Suppressor struct {
	finder *suppression.Finder
	kind   suppression.Kind // of the identifiers
	others []identifierColumn
}

// identifierColumn is another kept column with identifiers than the resolved one.
type identifierColumn struct {
	place int
	kind  suppression.Kind
}

// NewSuppressor makes a Suppressor for rows of an operation. kept are the kept columns, and
// identifier is the index of the resolved one. If remember is true, the Suppressor remembers
// the entries that it found. Without lists it is nil. A kept cell of which only one of several
// identifiers is resolved must not have a listed one either.
func NewSuppressor(lists *suppression.Set, op resolution.Operation, m Multiple, remember bool, kept []string, identifier int) *Suppressor {
	if lists == nil {
		return nil
	}
	s := &Suppressor{finder: lists.Finder(), kind: suppression.Kind(op.Identifier())}
	if remember {
		s.finder = lists.RememberingFinder()
	}
	if op.IsKeyword() {
		return s // a row is a search, not a person
	}
	for i, name := range kept {
		kind, known := KindOfColumn(name)
		if i == identifier {
			kind, known = s.kind, m != "" && m != Each
		}
		if known {
			s.others = append(s.others, identifierColumn{i, kind})
		}
	}
	return s
}

// KindOfColumn returns the kind of identifiers in an input column, by its name.
func KindOfColumn(name string) (kind suppression.Kind, known bool) {
	kind, known = identifierColumns[strings.ToLower(name)]
	return kind, known
}

// identifierColumns are the names, in lower case, of input columns with identifiers.
var identifierColumns = func() map[string]suppression.Kind {
	all := map[string]suppression.Kind{
		"email": suppression.Email, "phone": suppression.Phone, "network_url": suppression.NetworkURL, "ip": suppression.IP,
		"hem": suppression.Email, "hem_md5": suppression.Email, "hem_sha1": suppression.Email,
	}
	for _, p := range slices.Concat(hashed.Of(hashed.Email), hashed.Of(hashed.Phone)) {
		all[p.Column] = suppression.Kind(p.Kind)
	}
	return all
}()

// KindOfAnswer is the kind of identifiers of a person, or of their digests, in a column of answers; empty if it
// has none.
func KindOfAnswer(column string) suppression.Kind {
	switch v := values.ByName[column]; {
	case strings.HasPrefix(column, "hem_"), column == "emails", column == "hashed_emails":
		return suppression.Email
	case column == "phones", column == "phone_raw", strings.HasPrefix(column, "phone_") && strings.HasSuffix(column, "_sha256"):
		return suppression.Phone
	case v == nil:
	case v.Kind == values.Email:
		return suppression.Email
	case v.Kind == values.Phone:
		return suppression.Phone
	case column == string(resolution.NetworkURL):
		return suppression.NetworkURL
	}
	return ""
}

// IdentifierColumns are these names, in order.
func IdentifierColumns() []string { return slices.Sorted(maps.Keys(identifierColumns)) }

// Rows suppresses the rows of a batch by their own identifiers, also by those that are rejected as
// they are written: whoever is listed may be meant.
func (s *Suppressor) Rows(b *columns.Batch, written *array.String) {
	if s == nil {
		return
	}
	var emails []bool
	if s.kind == suppression.Email {
		emails = s.finder.Emails(b.Emails, b.Keys.Data, b.Keys.Offsets)
	}
	b.Suppress(func(i int) (reason string) {
		var listed bool
		switch rejected := b.Outcomes[i] == outcome.Rejected; {
		case rejected:
			listed = !written.IsNull(i) && s.finder.Lists(s.kind, written.Value(i))
		case s.kind == suppression.Email:
			listed = emails[i]
		case s.kind == suppression.NetworkURL:
			listed = s.finder.ProfileKey(b.Keys.At(i))
		case s.kind == suppression.IP:
			listed = s.finder.Address(b.Addrs[i])
		}
		if listed {
			reason = outcome.PrefixListed + string(s.kind)
		}
		if b.Persons != nil && s.finder.Person(cmp.Or(b.Persons[i], string(b.Keys.At(i)))) && reason == "" {
			reason = outcome.PrefixListed + string(suppression.Person)
		}
		for _, other := range s.others {
			cells := b.Kept[other.place]
			listed := !cells.IsNull(i) && cells.Value(i) != "" && s.finder.Lists(other.kind, cells.Value(i))
			if listed && reason == "" { // the first one is the reason
				reason = outcome.PrefixListed + string(other.kind)
			}
		}
		return reason
	})
}

// Lines looks up who is named in lines that are no rows, so that all are remembered. Nothing of
// such a line is written.
func (s *Suppressor) Lines(rejects []sources.Reject) {
	if s == nil || s.finder.Found() == nil {
		return
	}
	for _, r := range rejects {
		s.finder.NamesInLine(string(r.Raw))
	}
}

// Answers suppresses the rows of a batch by the identifiers in their answers. It looks up all
// identifiers, so that all are remembered.
func (s *Suppressor) Answers(b *columns.Batch) {
	if s == nil || b.Answers == nil {
		return
	}
	b.Suppress(func(i int) (reason string) {
		if b.Outcomes[i] != outcome.Matched {
			return ""
		}
		return s.Answer(resolution.AnswerRow{Of: b.Answers, I: i})
	})
}

// Answer says why a row with an answer is suppressed; "" if it is not. It looks up all identifiers,
// so that all are remembered.
func (s *Suppressor) Answer(a resolution.AnswerRow) (reason string) {
	if s == nil {
		return ""
	}
	for kind, value := range a.Of.Identifiers(a.I) {
		if s.finder.Lists(suppression.Kind(kind), value) && reason == "" {
			reason = outcome.PrefixListedInAnswer + string(kind)
		}
	}
	return reason
}

// Found returns the entries that were found; nil unless they are remembered.
func (s *Suppressor) Found() suppression.Found {
	if s == nil {
		return nil
	}
	return s.finder.Found()
}
