package columns

import (
	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/resolution"
)

// findFiller builds search_row … searched_on.
type findFiller struct {
	searchRow  *array.Int64Builder
	page       *array.Int32Builder
	leadID     texts
	matched    *array.ListBuilder
	keyword    *array.StringBuilder
	searchedOn *array.Date32Builder
}

func newFindFiller() *findFiller {
	mem := memory.DefaultAllocator
	matched := array.NewBuilder(mem, wordsType).(*array.ListBuilder)
	return &findFiller{
		searchRow: array.NewInt64Builder(mem), page: array.NewInt32Builder(mem), leadID: newTexts(1),
		matched: matched, keyword: matched.ValueBuilder().(*array.StringBuilder), searchedOn: array.NewDate32Builder(mem),
	}
}

func (f *findFiller) fill(b *Batch, to []arrow.Array) []arrow.Array {
	f.leadID.start(b.Len())
	for i := range b.Len() {
		find := &b.Finds[i]
		appendKnown(f.searchRow, find.SearchRow, find.SearchRow > 0)
		appendKnown(f.page, find.Page, find.Page > 0)
		f.leadID.append(find.LeadID)
		appendKnown(f.matched, true, len(find.MatchedKeywords) > 0)
		f.keyword.AppendValues(find.MatchedKeywords, nil)
		appendKnown(f.searchedOn, arrow.Date32FromTime(find.SearchedOn.UTC()), !find.SearchedOn.IsZero())
	}
	to = f.leadID.finish(append(to, f.searchRow.NewArray(), f.page.NewArray()))
	return append(to, f.matched.NewArray(), f.searchedOn.NewArray())
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
