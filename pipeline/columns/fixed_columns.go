package columns

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/pipeline/outcome"
)

// Words in answered_by.
const (
	byService = "service"
	byEngine  = "embedded"
)

// fixedFiller builds the fixed block. Its word columns are codes, which Parquet uses without
// hashing a string for each row.
type fixedFiller struct {
	source, outcome, reason, answeredBy *wordColumn

	resolutionID texts
	resolvedAt   *array.TimestampBuilder
	credits      *array.Int32Builder
	unresolved   []arrow.Array // resolution_id and resolved_at of the last batch without any
}

func newFixedFiller() *fixedFiller {
	mem := memory.DefaultAllocator
	return &fixedFiller{
		source: newWordColumn(), outcome: newWordColumn(), reason: newWordColumn(), answeredBy: newWordColumn(),
		resolutionID: newTexts(1),
		resolvedAt:   array.NewTimestampBuilder(mem, instantType),
		credits:      array.NewInt32Builder(mem),
	}
}

func (f *fixedFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	n := b.Len()
	return f.answers(append(to,
		f.source.build(n, func(int) string { return b.Source }),
		int64Array(b.Rows),
		b.Keys.array(func(i int) bool { return !b.keyless(i) }),
		f.outcome.build(n, func(i int) string { return b.Outcomes[i].String() }),
		f.reason.build(n, func(i int) string { return b.Reasons[i] })), b)
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
		f.resolutionID.append(r.ResolutionID)
		appendKnown(f.resolvedAt, arrow.Timestamp(r.ResolvedAt.UnixMicro()), r.Answered() && b.Outcomes[i] != outcome.Suppressed)
		appendKnown(f.credits, r.Credits, r.Answered() && r.Priced)
	}
	return append(f.resolutionID.finish(to), f.resolvedAt.NewArray(),
		f.answeredBy.build(n, wordIf(byService, func(i int) bool { return receipts[i].Answered() })),
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
	return append(to, f.answeredBy.build(n, wordIf(byEngine, answered)), f.credits.NewArray())
}

// nullTexts is a column of text with n nulls.
func nullTexts(n int) arrow.Array {
	nulls := newTexts(1)
	nulls.start(n)
	for range n {
		nulls.append("")
	}
	return nulls[0].finish()
}

// wordIf gives the word to rows for which known is true.
func wordIf(word string, known func(i int) bool) func(i int) string {
	return func(i int) string {
		if known(i) {
			return word
		}
		return ""
	}
}
