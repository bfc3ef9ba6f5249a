package columns

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/sinks/schema"
)

// What answered_by holds of a row with an answer, and of one without.
var (
	byService = []string{"service", ""}
	byEngine  = []string{"embedded", ""}
)

// fixedFiller builds the fixed block. Its word columns are codes, which Parquet uses without
// hashing a string for each row.
type fixedFiller struct {
	source, outcome, reason, answeredBy *wordColumn

	resolutionID textColumn
	resolvedAt   *array.TimestampBuilder
	credits      *array.Int32Builder
	resolver     []string      // who answers, and ""; nil where rows say which of several does
	hasParts     bool          // source_part is among the columns
	unresolved   []arrow.Array // resolution_id and resolved_at of the last batch without any
}

func newFixedFiller(s Settings) *fixedFiller {
	mem := memory.DefaultAllocator
	f := &fixedFiller{
		source: newWordColumn(), outcome: newWordColumn(), reason: newWordColumn(), answeredBy: newWordColumn(),
		resolvedAt: array.NewTimestampBuilder(mem, schema.Instant),
		credits:    array.NewInt32Builder(mem), hasParts: s.Parts, resolver: byService,
	}
	switch {
	case s.Named:
		f.resolver = nil
	case s.Resolver != "":
		f.resolver = []string{s.Resolver, ""}
	}
	return f
}

func (f *fixedFiller) fill(b *Batch, to *blocks) {
	n := b.Len()
	to.add(func() arrow.Array { return f.source.choose([]string{b.Source}, n, func(int) int { return 0 }) })
	to.add(func() arrow.Array { return int64Array(b.Rows) })
	to.add(func() arrow.Array { return stringArray(&b.Keys, func(i int) bool { return !b.keyless(i) }) })
	to.add(func() arrow.Array {
		return f.outcome.choose(outcome.Words, n, func(i int) int { return int(b.Outcomes[i]) })
	})
	to.add(func() arrow.Array { return f.reason.build(b.Reasons[:n]) })
	if b.Receipts != nil {
		f.serviceAnswers(b, to)
	} else {
		f.embeddedAnswers(b, to)
	}
	if f.hasParts {
		to.add(func() arrow.Array { return int32Array(b.Parts) })
	}
}

// serviceAnswers builds resolution_id, resolved_at, answered_by and credits from receipts.
func (f *fixedFiller) serviceAnswers(b *Batch, to *blocks) {
	receipts, n := b.Receipts, len(b.Receipts)
	to.add(func() arrow.Array {
		f.resolutionID.start(n)
		for _, r := range receipts {
			f.resolutionID.append([]byte(r.ResolutionID))
		}
		return f.resolutionID.finish()
	})
	to.add(func() arrow.Array {
		for i, r := range receipts {
			appendKnown(f.resolvedAt, arrow.Timestamp(r.ResolvedAt.UnixMicro()), r.Answered() && b.Outcomes[i] != outcome.Suppressed)
		}
		return f.resolvedAt.NewArray()
	})
	to.add(func() arrow.Array {
		if f.resolver == nil {
			return f.answeredBy.from(n, func(i int) string { return b.origin(i).AnsweredBy })
		}
		return f.answeredBy.choose(f.resolver, n, firstIf(func(i int) bool { return receipts[i].Answered() }))
	})
	to.add(func() arrow.Array {
		for _, r := range receipts {
			appendKnown(f.credits, r.Credits, r.Priced && (r.Answered() || f.resolver == nil)) // a directory among several is free
		}
		return f.credits.NewArray()
	})
}

// embeddedAnswers builds them for the embedded engine, which has no resolutions and no
// prices.
func (f *fixedFiller) embeddedAnswers(b *Batch, to *blocks) {
	n := b.Len()
	answered := func(i int) bool { return b.Outcomes[i] == outcome.Matched || b.Outcomes[i] == outcome.NoMatch }
	if f.unresolved == nil || f.unresolved[0].Len() != n { // most batches are of one size
		f.resolvedAt.AppendNulls(n)
		f.unresolved = []arrow.Array{nullTexts(n), f.resolvedAt.NewArray()}
	}
	for _, a := range f.unresolved {
		to.add(func() arrow.Array { a.Retain(); return a })
	}
	to.add(func() arrow.Array { return f.answeredBy.choose(byEngine, n, firstIf(answered)) })
	to.add(func() arrow.Array {
		f.credits.Reserve(n)
		for i := range n {
			if answered(i) {
				f.credits.UnsafeAppend(0)
			} else {
				f.credits.UnsafeAppendBoolToBitmap(false)
			}
		}
		return f.credits.NewArray()
	})
}

// nullTexts is a column of text with n nulls.
func nullTexts(n int) arrow.Array {
	var nulls textColumn
	nulls.start(n)
	for range n {
		nulls.append(nil)
	}
	return nulls.finish()
}

// firstIf chooses the first of two words for rows for which known is true, else the second.
func firstIf(known func(i int) bool) func(i int) int {
	return func(i int) int {
		if known(i) {
			return 0
		}
		return 1
	}
}
