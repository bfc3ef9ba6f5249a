package pipeline

import (
	"context"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/search"
)

// searches takes the first pages of a batch's searches, and of those that were
// begun the later pages that something is left to do about.
func (w *rowWorker) searches(ctx context.Context, b *columns.Batch, in *sources.Batch) error {
	for i := range b.Outcomes {
		q, reason := w.reader.read(in, i)
		if reason != "" {
			b.Outcomes[i], b.Reasons[i] = outcome.Rejected, reason
			continue
		}
		if w.run.Job.Operation == resolution.KeywordToLead {
			if q.Page == 0 {
				w.morePages = true
				if err := w.laterPages(ctx, q); err != nil {
					return err
				}
			}
			q = q.On(max(q.Page, 1))
		}
		w.asked = append(w.asked, w.question([]byte(q.Key())))
	}
	return nil
}

// laterPages takes the pages after a search's first that were begun and have no
// answer that holds. Pages are got in order, so the first of which nothing is
// stored ends them.
func (w *rowWorker) laterPages(ctx context.Context, q search.Query) (err error) {
	remote := w.run.Remote
	if remote == nil || remote.Answers == nil {
		return nil
	}
	for n := 2; n <= q.Pages(search.DefaultLimits()); n++ {
		page := w.question([]byte(q.On(n).Key()))
		if w.found, err = remote.Answers.LookupHashes(ctx, []answers.Hash{page.Hash}, remote.Freshness(w.planner.began), w.found[:0]); err != nil {
			return err
		}
		f := w.found[0]
		if !f.Stored && f.Open == "" {
			return nil
		}
		if remote.Decide(w.run.Job.Operation, f, w.planner.began, w.planner.began) == purchase.UseStored {
			continue
		}
		if err := w.planner.later.Add([]distinct.Key{page}); err != nil {
			return err
		}
	}
	return nil
}
