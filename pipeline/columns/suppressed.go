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

// Suppress empties the rows for which there is a reason, except for their places in the input,
// their outcomes and what their answers cost. Their keys and the columns kept from the input
// are left out when the record is built.
func (b *Batch) Suppress(reason func(i int) string) {
	suppressed := false
	for i := range b.Len() {
		if r := reason(i); r != "" {
			b.suppress(i, r)
			suppressed = true
		}
	}
	if suppressed && b.Answers != nil {
		b.Answers = b.Answers.Keep(func(i int) bool { return b.Outcomes[i] != outcome.Suppressed })
	}
}

func (b *Batch) suppress(i int, reason string) {
	b.Outcomes[i], b.Reasons[i] = outcome.Suppressed, reason
	if len(b.Receipts) > 0 {
		b.Receipts[i].ResolutionID = ""
	}
	if len(b.Origins) > 0 {
		b.Origins[i] = Origin{}
	}
	if len(b.Finds) > 0 {
		b.Finds[i].Page = 0
	}
	if len(b.IPClasses) > 0 {
		b.IPClasses[i] = ""
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
