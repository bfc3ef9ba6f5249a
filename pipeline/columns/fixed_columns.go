package columns

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/pipeline/outcome"
)

var (
	outcomeDictionary  = dictionary(outcome.Words...)
	answeredDictionary = dictionary("service", "embedded")
)

// Positions in answeredDictionary.
const (
	serviceIndex  = 0
	embeddedIndex = 1
)

func dictionary(words ...string) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(words, nil)
	return b.NewArray()
}

// fixedFiller builds the fixed block. Its word columns are Arrow dictionary arrays,
// whose indices Parquet uses without hashing a string for each row.
type fixedFiller struct {
	source       string
	sourceWord   arrow.Array
	words        *array.Int32Builder
	numbers      *array.Int64Builder
	reason       *wordColumn
	resolutionID texts
	resolvedAt   *array.TimestampBuilder
	credits      *array.Int32Builder
	unresolved   []arrow.Array // resolution_id and resolved_at of the last batch without any
}

func newFixedFiller() *fixedFiller {
	mem := memory.DefaultAllocator
	return &fixedFiller{
		words:        array.NewInt32Builder(mem),
		numbers:      array.NewInt64Builder(mem),
		reason:       newWordColumn(),
		resolutionID: newTexts(1),
		resolvedAt:   array.NewTimestampBuilder(mem, instantType),
		credits:      array.NewInt32Builder(mem),
	}
}

func (f *fixedFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	n := b.Len()
	f.numbers.AppendValues(b.Rows, nil)
	to = append(to, f.sourceColumn(b.Source, n), f.numbers.NewArray())
	to = append(to, b.Keys.array(func(i int) bool { return !b.keyless(i) }))
	to = append(to, f.wordColumn(outcomeDictionary, n, func(i int) int32 { return int32(b.Outcomes[i]) }, nil))
	return f.answers(append(to, f.reason.build(b.Reasons)), b)
}

func (f *fixedFiller) sourceColumn(source string, n int) arrow.Array {
	if f.sourceWord == nil || f.source != source {
		f.source, f.sourceWord = source, dictionary(source)
	}
	return f.wordColumn(f.sourceWord, n, func(int) int32 { return 0 }, nil)
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
	answered := func(i int) bool { return receipts[i].Answered() }
	return append(f.resolutionID.finish(to), f.resolvedAt.NewArray(),
		f.wordColumn(answeredDictionary, n, func(int) int32 { return serviceIndex }, answered),
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
	return append(to, f.wordColumn(answeredDictionary, n, func(int) int32 { return embeddedIndex }, answered),
		f.credits.NewArray())
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

// wordColumn builds a column of n words, given by their index in a dictionary; null if
// valid is false.
func (f *fixedFiller) wordColumn(words arrow.Array, n int, index func(int) int32, valid func(int) bool) arrow.Array {
	f.words.Reserve(n)
	for i := range n {
		if valid != nil && !valid(i) {
			f.words.UnsafeAppendBoolToBitmap(false)
		} else {
			f.words.UnsafeAppend(index(i))
		}
	}
	indices := f.words.NewArray()
	defer indices.Release()
	return array.NewDictionaryArray(wordType, indices, words)
}
