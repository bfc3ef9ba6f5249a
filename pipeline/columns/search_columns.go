package columns

import (
	"slices"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/resolution"
)

// findFiller builds search_row … searched_on.
type findFiller struct {
	searchRow  *array.Int64Builder
	page       *array.Int32Builder
	tables     *textTables
	searchedOn *array.Date32Builder
}

func newFindFiller(l *Layout) *findFiller {
	mem := memory.DefaultAllocator
	return &findFiller{
		searchRow: array.NewInt64Builder(mem), page: array.NewInt32Builder(mem), tables: &l.texts, searchedOn: array.NewDate32Builder(mem),
	}
}

func (f *findFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	a, n := b.Answers, b.Len()
	a.SearchedAt = resolution.Pad(a.SearchedAt, n, resolution.NotSeen)
	for i, find := range b.Finds {
		appendKnown(f.searchRow, find.SearchRow, find.SearchRow > 0)
		appendKnown(f.page, find.Page, find.Page > 0)
		at := a.SearchedAt[i]
		appendKnown(f.searchedOn, arrow.Date32FromTime(time.UnixMicro(at).UTC()), at != resolution.NotSeen)
	}
	to = append(to, f.searchRow.NewArray(), f.page.NewArray(), f.tables.column(&a.Texts[resolution.FieldLeadID], n))
	return append(to, keywordLists(&a.Keywords, n), f.searchedOn.NewArray())
}

// keywordLists is n lists of words in memory of their own: the encoder keeps columns of lists
// of words until their row group ends.
func keywordLists(l *resolution.TextLists, n int) arrow.Array {
	l.Pad(n)
	own := resolution.TextLists{Ends: slices.Clone(l.Ends), Texts: resolution.Texts{Data: slices.Clone(l.Texts.Data), Offsets: slices.Clone(l.Texts.Offsets)}}
	words := stringArray(&own.Texts, nil)
	defer words.Release()
	return listArray(wordsType, &own, words.Data())
}

// countFiller builds count, hashed_email_count and is_approximate.
type countFiller struct {
	leads, hashes *array.Int64Builder
	approximate   *array.BooleanBuilder
}

func newCountFiller() *countFiller {
	mem := memory.DefaultAllocator
	return &countFiller{array.NewInt64Builder(mem), array.NewInt64Builder(mem), array.NewBooleanBuilder(mem)}
}

var noCount = &resolution.SearchCount{}

func (f *countFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	for _, c := range b.Counts {
		known := c != nil
		if !known {
			c = noCount
		}
		appendKnown(f.leads, c.Leads, known)
		appendKnown(f.hashes, c.HashedEmails, known && c.HashedEmails >= 0)
		appendKnown(f.approximate, c.Approximate, known)
	}
	return append(to, f.leads.NewArray(), f.hashes.NewArray(), f.approximate.NewArray())
}
