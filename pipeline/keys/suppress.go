package keys

import (
	"strings"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// Suppressor leaves people out who must not be in the dataset. A nil one
// leaves nobody out.
type Suppressor struct {
	finder *suppression.Finder
	kind   suppression.Kind // of the identifiers
	others []identifierColumn
}

// identifierColumn is a kept column that holds identifiers beside the one that
// is resolved.
type identifierColumn struct {
	place int
	kind  suppression.Kind
}

// NewSuppressor makes a Suppressor for rows of an operation. kept are the kept
// columns, of which the one at identifier is resolved. With remember set the
// Suppressor remembers which entries it found. Without lists it is nil.
func NewSuppressor(lists *suppression.Set, op resolution.Operation, remember bool, kept []string, identifier int) *Suppressor {
	if lists == nil {
		return nil
	}
	s := &Suppressor{finder: lists.Finder(), kind: suppression.Kind(op.Identifier())}
	if remember {
		s.finder = lists.RememberingFinder()
	}
	if op.IsKeyword() {
		return s // a row is a search, and of nobody
	}
	for i, name := range kept {
		if kind, known := KindOfColumn(name); known && i != identifier {
			s.others = append(s.others, identifierColumn{i, kind})
		}
	}
	return s
}

// KindOfColumn is the kind of identifiers that an input column holds, going by
// its name.
func KindOfColumn(name string) (kind suppression.Kind, known bool) {
	kind, known = identifierColumns[strings.ToLower(name)]
	return kind, known
}

// identifierColumns are the names, in lower case, by which input columns are
// known to hold identifiers.
var identifierColumns = map[string]suppression.Kind{
	"email": suppression.Email, "phone": suppression.Phone, "network_url": suppression.NetworkURL, "ip": suppression.IP,
	"hem": suppression.Email, "hem_md5": suppression.Email, "hem_sha1": suppression.Email, "hem_sha256": suppression.Email,
}

// Rows suppresses the rows of a batch by what they hold themselves.
func (s *Suppressor) Rows(b *columns.Batch) {
	if s == nil {
		return
	}
	var listed []bool
	if s.kind == suppression.Email {
		listed = s.finder.Emails(b.Emails, b.Keys.Data, b.Keys.Offsets)
	}
	for i, o := range b.Outcomes {
		switch {
		case o == outcome.Rejected:
			continue
		case s.kind == suppression.Email && !listed[i],
			s.kind == suppression.NetworkURL && !s.finder.ProfileKey(b.Keys.At(i)),
			s.kind == suppression.IP && !s.finder.Address(b.Addrs[i]):
			continue
		}
		b.Suppress(i, outcome.PrefixListed+string(s.kind))
	}
	for _, other := range s.others {
		cells := b.Kept[other.place]
		for i := range b.Len() {
			listed := !cells.IsNull(i) && cells.Value(i) != "" && s.finder.Lists(other.kind, cells.Value(i))
			if listed && b.Outcomes[i] != outcome.Suppressed { // the first is the reason
				b.Suppress(i, outcome.PrefixListed+string(other.kind))
			}
		}
	}
}

// Answers suppresses the rows of a batch by what was found about them.
func (s *Suppressor) Answers(b *columns.Batch) {
	if s == nil {
		return
	}
	for i, lead := range b.Leads {
		if lead == nil || b.Outcomes[i] != outcome.Matched {
			continue
		}
		if by, listed := s.lead(lead); listed {
			b.Suppress(i, outcome.PrefixListedInAnswer+string(by))
		}
	}
}

// lead says by what somebody is listed whom a lead is about. It looks at
// everything, so that all of it is remembered.
func (s *Suppressor) lead(l *resolution.Lead) (by resolution.Identifier, listed bool) {
	for kind, value := range l.Identifiers() {
		if s.finder.Lists(suppression.Kind(kind), value) && !listed {
			by, listed = kind, true
		}
	}
	return by, listed
}

// Found are the entries of the lists that were found, nil unless they are
// remembered.
func (s *Suppressor) Found() suppression.Found {
	if s == nil {
		return nil
	}
	return s.finder.Found()
}
