package columns

import (
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/pipeline/outcome"
)

// keyless reports whether the row shows no key: it has none, or is of somebody
// who must not be in the dataset.
func (b *Batch) keyless(i int) bool {
	return b.Outcomes[i] == outcome.Rejected || b.Outcomes[i] == outcome.Suppressed
}

// Suppress empties a row of everything but its place in the input, what became
// of it and what its answer cost. Its key and the columns kept of the input are
// left out when the record is built.
func (b *Batch) Suppress(i int, reason string) {
	b.Outcomes[i], b.Reasons[i] = outcome.Suppressed, reason
	if len(b.Leads) > 0 {
		b.Leads[i] = nil
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

// keep is a kept column as it is written: that of the input, with the cells of
// suppressed rows left out, and identifiers that nobody could compare.
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
