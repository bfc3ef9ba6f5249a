package purchase

import (
	"cmp"
	"context"
	"encoding/json"
	"hash/maphash"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/search"
)

const (
	// maxHeldBytes bounds a page that waits for its turn in memory; a larger one waits
	// in the store. A page takes up to about 2 MB there, and three times that when it
	// is read.
	maxHeldBytes = 16 << 10
	// maxReading bounds the stored pages that are read at a time.
	maxReading = 4
)

// Page is a page of a search, or its count.
type Page struct {
	// Answer is matched when the page is there, also when it has no leads.
	Answer Result
	// Count is the result of a count; nil for a page of leads.
	Count *resolution.SearchCount
	// HasMore says that more pages follow. Total is the number of leads of the search; 0
	// if the service does not say.
	HasMore bool
	Total   int64
	// Marks tell the leads of the page from those of others.
	Marks []uint64
	// Leads returns the leads of the page, from memory if they are small, or from the
	// store, which must not be changed. It is nil for a count.
	Leads func() (*resolution.Answers, error)
}

// Page gets a page of a search, or its count. q is the query on that page. Page is called from
// many goroutines, and returns early when ctx ends.
func (b *Buyer) Page(ctx context.Context, q search.Query) (Page, error) {
	key := q.Key()
	entries, added := b.join([]string{key}, 1)
	if len(added) > 0 {
		if err := b.occupy(ctx, b.reading); err != nil {
			b.finish(added[0], Result{}, err)
			return Page{}, err
		}
		calls := b.begin(added, nil)
		<-b.reading
		b.workers.start(ctx, calls)
	}
	a, err := entries[0].wait(ctx)
	page, size := a.page, a.pageBytes
	a.page = nil // it may be large
	p := Page{Answer: a}
	if err = cmp.Or(err, a.withheld); err != nil || a.Outcome != outcome.Matched {
		return p, err
	}
	if b.codec.operation.Gives() == resolution.GivesCount {
		p.Count = &page.Count
		return p, nil
	}
	leads := page.Result.Leads
	p.HasMore, p.Total, p.Marks = page.HasMore && leads.Len() > 0, page.Result.Total, marksOf(leads)
	if size > maxHeldBytes {
		p.Leads = func() (*resolution.Answers, error) { return b.readLeads(ctx, key) }
	} else {
		p.Leads = func() (*resolution.Answers, error) { return leads, nil }
	}
	return p, nil
}

var markSeed = maphash.MakeSeed()

// marksOf returns the marks of leads: of their ids or, if the service sends none, of
// their contents.
func marksOf(leads *resolution.Answers) []uint64 {
	marks := make([]uint64, leads.Len())
	for i := range marks {
		mark := leads.Texts[resolution.FieldLeadID].At(i)
		if len(mark) == 0 {
			mark, _ = json.Marshal(leads.Found(i)) // texts, numbers and times that were read from JSON
		}
		marks[i] = maphash.Bytes(markSeed, mark)
	}
	return marks
}

// readLeads reads the leads of a stored page.
func (b *Buyer) readLeads(ctx context.Context, key string) (*resolution.Answers, error) {
	if err := b.occupy(ctx, b.reading); err != nil {
		return nil, err
	}
	defer func() { <-b.reading }()
	f, err := b.lookUp(key)
	if err != nil {
		return nil, err
	}
	a, err := b.codec.answer(f.Answer, nil)
	if err != nil {
		return nil, err
	}
	return a.page.Result.Leads, nil
}
