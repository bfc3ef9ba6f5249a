// Package keys makes the keys of input rows: identifiers in canonical form, or searches. It
// also knows which rows are never asked about: addresses that are not public, and people on
// suppression lists.
//
// A run and its plan use the same code, so that a plan counts what a run asks.
package keys

import (
	"slices"

	"github.com/apache/arrow/go/v17/arrow/array"

	"net/netip"

	"github.com/leadetl/leadetl/internal/jsonlist"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/ipaddr"
	"github.com/leadetl/leadetl/transforms/profile"
)

// Maker makes the keys of rows. It is used by one goroutine at a time.
type Maker struct {
	kept, identifier int // how many columns are kept, and which holds the identifier
	id               int // which holds what suppressed rows are told by; -1 without one
	keyer            keyer
	suppress         *Suppressor
}

// NewMaker makes a Maker for an operation. kept is the number of kept columns, which are read
// first, and identifier the index of the identifier column. The column at id is added to Kept, if it
// is not -1.
func NewMaker(op resolution.Operation, r Reading, kept, identifier, id int, suppress *Suppressor) *Maker {
	return &Maker{kept, identifier, id, keyer{op, r}, suppress}
}

// Begin sets b to the rows of a batch, without keys.
func (m *Maker) Begin(b *columns.Batch, in *sources.Batch) {
	b.Reset(in.Len())
	b.Source, b.Rows, b.Kept = in.Source, in.Rows, in.Columns[:m.kept]
}

// keptOf are the columns that go with the rows.
func (m *Maker) keptOf(in *sources.Batch) []*array.String {
	if m.id < 0 {
		return in.Columns[:m.kept]
	}
	return append(slices.Clone(in.Columns[:m.kept]), in.Columns[m.id])
}

// Fill sets b to the rows of a batch and their keys. A cell with several identifiers may become
// several rows. Rows of listed people are suppressed.
func (m *Maker) Fill(b *columns.Batch, in *sources.Batch) {
	rows := m.keyer.spread(in, m.keyer.identifiers(in, m.identifier))
	rows.begin(b, in, m.keptOf(in), m.identifier < m.kept, m.identifier)
	if m.keyer.operation.Identifier() == resolution.NetworkURL {
		b.Typed = rows.identifiers
	}
	b.Persons = m.keyer.persons(in, rows)
	m.keyer.keys(b, rows)
	m.suppress.Rows(b, rows.identifiers)
	m.suppress.Lines(in.Rejects)
}

// keyer brings the identifiers of a batch into canonical form. Invalid ones are rejected; the
// text of the error is the reason.
type keyer struct {
	operation resolution.Operation
	reading   Reading
}

// keys fills Keys, Outcomes and Reasons of b from the identifier column, and the other slices
// that follow from identifiers alone. A null is an empty cell.
func (k keyer) keys(b *columns.Batch, rows spread) {
	values, offsets := rows.identifiers.ValueBytes(), rows.identifiers.ValueOffsets()
	for i := range b.Len() {
		cell := values[offsets[i]-offsets[0] : offsets[i+1]-offsets[0]]
		more, err := k.append(b, cell)
		if err == profile.ErrEmpty && k.reading.From != nil {
			more, err = false, k.appendPerson(b, i)
		}
		if err != nil {
			if several, _ := jsonlist.Texts(text(cell)); len(several) > 1 {
				err = email.ErrMultiple // of whatever kind
			}
			b.Outcomes[i], b.Reasons[i] = outcome.Rejected, err.Error()
		} else if more || rows.isCut != nil && rows.isCut[i] {
			b.More++
		}
		b.Keys.End()
	}
}

// append appends the key of a cell. more says that the cell has more than the identifier.
func (k keyer) append(b *columns.Batch, cell []byte) (more bool, err error) {
	switch k.operation.Identifier() {
	case resolution.Email:
		var a email.Address
		if a, err = email.Parse(cell); err != nil && !k.reading.Strict {
			a, err = email.Read(cell)
			more = true
		}
		if err == nil {
			b.Keys.Data = a.AppendKey(b.Keys.Data)
		}
		b.Emails = append(b.Emails, a)
	case resolution.NetworkURL:
		b.Keys.Data, err = k.reading.Profiles.AppendPerson(b.Keys.Data, text(cell))
	case resolution.IP:
		addr, canonical := ipaddr.ParseCanonical4(cell)
		if !canonical {
			if addr, err = ipaddr.ParseBytes(cell); err != nil && !k.reading.Strict {
				addr, err = ipaddr.Read(text(cell))
				more = true
			}
		}
		if canonical {
			b.Keys.Data = append(b.Keys.Data, cell...)
		} else if err == nil {
			b.Keys.Data = addr.AppendTo(b.Keys.Data)
		}
		class := ""
		if err == nil {
			class = string(ipaddr.ClassOf(addr))
		}
		b.Addrs = append(b.Addrs, addr)
		b.IPClasses = append(b.IPClasses, class)
	}
	return more, err
}

// Distinct returns the distinct keys of a batch, and for each row the index of its key: -1 for
// rows without a key, for suppressed rows, and if asks returns false.
func Distinct(b *columns.Batch, asks func(i int) bool) (keys []string, question []int) {
	return distinct(b, asks, func(i int) []byte { return b.Keys.At(i) })
}

func distinct(b *columns.Batch, asks func(i int) bool, text func(i int) []byte) (keys []string, question []int) {
	first := make(map[string]int, b.Len())
	question = make([]int, b.Len())
	for i, o := range b.Outcomes {
		question[i] = -1
		if o != outcome.Matched || !asks(i) {
			continue
		}
		q, seen := first[string(text(i))]
		if !seen {
			q = len(keys)
			key := string(text(i))
			first[key] = q
			keys = append(keys, key)
		}
		question[i] = q
	}
	return keys, question
}

// Asked is Distinct for questions to a service: keys may have the address to send
// (resolution.WithAddress), which is that of their first row, and values of a person (resolution.WithPerson).
func Asked(b *columns.Batch) (asked []string, question []int) {
	asks := func(i int) bool { return Asks(b, i) }
	if b.Persons == nil {
		asked, question = Distinct(b, asks)
	} else {
		asked, question = distinct(b, asks, func(i int) []byte { return []byte(resolution.WithPerson(string(b.Keys.At(i)), b.Persons[i])) })
	}
	if b.Typed == nil {
		return asked, question
	}
	next := 0
	for i, q := range question {
		if q == next {
			key, values := resolution.CutPerson(asked[q])
			asked[q] = resolution.WithPerson(resolution.WithAddress(key, profile.AsTyped(b.Typed.Value(i), key)), values)
			next++
		}
	}
	return asked, question
}

// Asks reports whether a service is asked about the key of a row. It is not asked about
// addresses that are not public.
func Asks(b *columns.Batch, i int) bool {
	if len(b.Addrs) == 0 {
		return true
	}
	if reason := neverAsked(b.Addrs[i]); reason != "" {
		b.Outcomes[i], b.Reasons[i] = outcome.NoMatch, reason
		return false
	}
	return true
}

// neverAsked returns why an address is not asked about; "" if it is.
func neverAsked(addr netip.Addr) string {
	if _, ok := ipaddr.LookupAddr(addr); ok {
		return ""
	}
	return "ip_class:" + string(ipaddr.ClassOf(addr))
}
