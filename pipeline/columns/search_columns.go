package columns

import (
	"slices"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks/schema"
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

func (f *findFiller) fill(b *Batch, to *blocks) {
	a, n := b.Answers, b.Len()
	to.add(func() arrow.Array {
		for _, find := range b.Finds {
			appendKnown(f.searchRow, find.SearchRow, find.SearchRow > 0)
		}
		return f.searchRow.NewArray()
	})
	to.add(func() arrow.Array {
		for _, find := range b.Finds {
			appendKnown(f.page, find.Page, find.Page > 0)
		}
		return f.page.NewArray()
	})
	to.add(func() arrow.Array { return f.tables.column(&a.Texts[resolution.FieldLeadID], n) })
	to.add(func() arrow.Array { return keywordLists(&a.Keywords, n) })
	to.add(func() arrow.Array {
		a.SearchedAt = resolution.Pad(a.SearchedAt, n, resolution.NotSeen)
		for _, at := range a.SearchedAt {
			appendKnown(f.searchedOn, arrow.Date32FromTime(time.UnixMicro(at).UTC()), at != resolution.NotSeen)
		}
		return f.searchedOn.NewArray()
	})
}

// keywordLists is n lists of words in memory of their own: the encoder keeps columns of lists
// of words until their row group ends.
func keywordLists(l *resolution.TextLists, n int) arrow.Array {
	l.Pad(n)
	own := resolution.TextLists{Ends: slices.Clone(l.Ends), Texts: resolution.Texts{Data: slices.Clone(l.Texts.Data), Offsets: slices.Clone(l.Texts.Offsets)}}
	words := stringArray(&own.Texts, nil)
	defer words.Release()
	return listArray(schema.Words, &own, words.Data())
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

func (f *countFiller) fill(b *Batch, to *blocks) {
	each := func(add func(c *resolution.SearchCount, known bool)) {
		for _, c := range b.Counts {
			if c == nil {
				add(noCount, false)
			} else {
				add(c, true)
			}
		}
	}
	to.add(func() arrow.Array {
		each(func(c *resolution.SearchCount, known bool) { appendKnown(f.leads, c.Leads, known) })
		return f.leads.NewArray()
	})
	to.add(func() arrow.Array {
		each(func(c *resolution.SearchCount, known bool) {
			appendKnown(f.hashes, c.HashedEmails, known && c.HashedEmails >= 0)
		})
		return f.hashes.NewArray()
	})
	to.add(func() arrow.Array {
		each(func(c *resolution.SearchCount, known bool) { appendKnown(f.approximate, c.Approximate, known) })
		return f.approximate.NewArray()
	})
}
