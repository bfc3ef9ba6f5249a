package columns

import (
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/pipeline/outcome"
)

// keyless reports whether the row has no key in the output: it has none, or its person
// is suppressed.
func (b *Batch) keyless(i int) bool {
	return b.Outcomes[i] == outcome.Rejected || b.Outcomes[i] == outcome.Suppressed
}

// Suppress empties a row, except for its place in the input, its outcome and what its
// answer cost. Its key and the columns kept from the input are left out when the record
// is built.
func (b *Batch) Suppress(i int, reason string) {
	b.Outcomes[i], b.Reasons[i] = outcome.Suppressed, reason
	if len(b.Leads) > 0 {
		b.Leads[i] = nil
	}
	if len(b.Companies.Codes) > 0 {
		b.Companies.Codes[i] = 0
	}
	if len(b.Receipts) > 0 {
		b.Receipts[i].ResolutionID = ""
	}
	if len(b.Finds) > 0 {
		b.Finds[i] = Find{SearchRow: b.Finds[i].SearchRow}
	}
	if len(b.IPClasses) > 0 {
		b.IPClasses[i] = ""
	}
	if len(b.OrgTypes) > 0 {
		b.OrgTypes[i] = ""
	}
}

// keep returns a kept column as it is written: without the cells of suppressed rows, and
// without identifiers that could not be compared with the lists.
func (l *Layout) keep(b *Batch, column int) arrow.Array {
	kept := b.Kept[column]
	unread := l.settings.Suppress && strings.EqualFold(l.settings.Kept[column], l.settings.Identifier)
	withheld := func(o outcome.Outcome) bool { return o == outcome.Suppressed || unread && o == outcome.Rejected }
	if !slices.ContainsFunc(b.Outcomes, withheld) {
		kept.Retain()
		return kept
	}
	builder := array.NewStringBuilder(memory.DefaultAllocator)
	defer builder.Release()
	builder.Reserve(b.Len())
	for i, o := range b.Outcomes {
		if withheld(o) || kept.IsNull(i) {
			builder.AppendNull()
		} else {
			builder.Append(kept.Value(i))
		}
	}
	return builder.NewArray()
}
