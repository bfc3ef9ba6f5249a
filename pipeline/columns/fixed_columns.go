package columns

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/pipeline/outcome"
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
	unresolved   []arrow.Array // resolution_id and resolved_at of the last batch without any
}

func newFixedFiller() *fixedFiller {
	mem := memory.DefaultAllocator
	return &fixedFiller{
		source: newWordColumn(), outcome: newWordColumn(), reason: newWordColumn(), answeredBy: newWordColumn(),
		resolvedAt: array.NewTimestampBuilder(mem, instantType),
		credits:    array.NewInt32Builder(mem),
	}
}

func (f *fixedFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	n := b.Len()
	return f.answers(append(to,
		f.source.choose([]string{b.Source}, n, func(int) int { return 0 }),
		int64Array(b.Rows),
		stringArray(&b.Keys, func(i int) bool { return !b.keyless(i) }),
		f.outcome.choose(outcome.Words, n, func(i int) int { return int(b.Outcomes[i]) }),
		f.reason.build(b.Reasons[:n])), b)
}

// answers builds resolution_id, resolved_at, answered_by and credits.
func (f *fixedFiller) answers(to []arrow.Array, b *Batch) []arrow.Array {
	if b.Receipts != nil {
		return f.serviceAnswers(to, b)
	}
	return f.embeddedAnswers(to, b)
}

// serviceAnswers builds them from receipts.
func (f *fixedFiller) serviceAnswers(to []arrow.Array, b *Batch) []arrow.Array {
	receipts, n := b.Receipts, len(b.Receipts)
	f.resolutionID.start(n)
	for i, r := range receipts {
		f.resolutionID.append([]byte(r.ResolutionID))
		appendKnown(f.resolvedAt, arrow.Timestamp(r.ResolvedAt.UnixMicro()), r.Answered() && b.Outcomes[i] != outcome.Suppressed)
		appendKnown(f.credits, r.Credits, r.Answered() && r.Priced)
	}
	return append(to, f.resolutionID.finish(), f.resolvedAt.NewArray(),
		f.answeredBy.choose(byService, n, firstIf(func(i int) bool { return receipts[i].Answered() })),
		f.credits.NewArray())
}

// embeddedAnswers builds them for the embedded engine, which has no resolutions and no
// prices.
func (f *fixedFiller) embeddedAnswers(to []arrow.Array, b *Batch) []arrow.Array {
	n := b.Len()
	answered := func(i int) bool { return b.Outcomes[i] == outcome.Matched || b.Outcomes[i] == outcome.NoMatch }
	if f.unresolved == nil || f.unresolved[0].Len() != n { // most batches are of one size
		f.resolvedAt.AppendNulls(n)
		f.unresolved = []arrow.Array{nullTexts(n), f.resolvedAt.NewArray()}
	}
	for _, a := range f.unresolved {
		a.Retain()
	}
	to = append(to, f.unresolved...)
	f.credits.Reserve(n)
	for i := range n {
		if answered(i) {
			f.credits.UnsafeAppend(0)
		} else {
			f.credits.UnsafeAppendBoolToBitmap(false)
		}
	}
	return append(to, f.answeredBy.choose(byEngine, n, firstIf(answered)), f.credits.NewArray())
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
