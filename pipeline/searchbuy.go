package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/search"
)

// askerSearching gets the pages of searches from the store and the service.
type askerSearching struct{ *asker }

const (
	// searchesAhead is how many searches of a part are in work at a time: each
	// waits for the service most of the time.
	searchesAhead = 64
	// pagesAhead is how many pages of each wait for their turn.
	pagesAhead = 4
	// heldBytes is how large a page may be that waits for its turn in memory;
	// a larger one waits in the store. There, as it is received, a page takes
	// up to some 2 MB, and three times that when it is read.
	heldBytes = 16 << 10
	// readAtOnce is how many stored pages are read at a time, and madeAtOnce
	// how many the service makes at a time, whatever it would do.
	readAtOnce, madeAtOnce = 4, 16
)

func (a *askerSearching) ahead() (searches, pages int) { return searchesAhead, pagesAhead }

func (a *askerSearching) find(ctx context.Context, q search.Query, emit func(foundPage) error) error {
	first, last := 1, q.Pages(search.DefaultLimits())
	if q.Page > 0 {
		first, last = q.Page, q.Page
	}
	for n := first; ; n++ {
		of := q
		if a.operation == resolution.KeywordToLead {
			of = q.On(n)
		}
		got, err := a.get(ctx, of)
		if err != nil {
			return err
		}
		p := foundPage{number: n, verdict: got.verdict}
		more := false
		if got.outcome == outcome.Matched {
			p, more = a.found(of, n, got), got.reply.HasMore && len(got.reply.Result.Leads) > 0
		}
		if more && n == last && q.Page == 0 {
			p.beyond = got.reply.Result.Total
		}
		if err := emit(p); err != nil || !more || n == last {
			return err
		}
	}
}

// found is a page with what it holds, in memory where that is little.
func (a *askerSearching) found(q search.Query, n int, got boughtPage) foundPage {
	p := foundPage{number: n, verdict: got.verdict}
	switch {
	case a.operation == resolution.KeywordToLeadCount:
		p.count = &got.reply.Count
	case len(got.reply.Body) <= heldBytes:
		p.leads = got.reply.Result.Leads
	default:
		p.load = func() ([]resolution.FoundLead, error) {
			again, err := a.readAgain(q.Key())
			return again.reply.Result.Leads, err
		}
	}
	return p
}

// boughtPage is what is known of a page: with the outcome Matched also what it
// holds.
type boughtPage struct {
	verdict
	reply resolution.SearchReply
}

func failedPage(reason string) boughtPage { return boughtPage{verdict: failed(reason)} }

// get gets one page, from the store or the service. Of twins one asks, and the
// others read its answer.
func (a *asker) get(ctx context.Context, q search.Query) (page boughtPage, err error) {
	key := q.Key()
	claims, ours := a.claims.claim([]string{key})
	if len(ours) == 0 {
		a.Meter.Duplicates(1)
		return a.twin(ctx, claims[0])
	}
	a.Meter.Asked(1)
	err = errPanicked
	defer func() { a.claims.finish(ours[0], page.verdict, err) }()
	page, err = a.settlePage(q, key)
	return page, err
}

// twin waits for who asks the same.
func (a *asker) twin(ctx context.Context, c *claim) (boughtPage, error) {
	select {
	case <-c.done:
	case <-ctx.Done():
		return boughtPage{}, context.Cause(ctx)
	}
	if c.err != nil || c.outcome != outcome.Matched {
		return boughtPage{verdict: c.verdict}, c.err
	}
	return a.readAgain(c.key)
}

// readAgain reads a page that is known to be stored.
func (a *asker) readAgain(key string) (boughtPage, error) {
	a.reading <- struct{}{}
	defer func() { <-a.reading }()
	f, err := a.lookUp(key)
	if err != nil {
		return boughtPage{}, err
	}
	return a.readPage(f.Answer)
}

func (a *asker) lookUp(key string) (answers.Found, error) {
	found, err := a.Answers.Lookup(context.WithoutCancel(a.ctx), a.scope, []string{key}, a.freshness(a.began), true, nil)
	if err != nil {
		return answers.Found{}, err
	}
	return found[0], nil
}

// settlePage goes by what is stored of a page, or has it bought.
func (a *asker) settlePage(q search.Query, key string) (boughtPage, error) {
	f, standing, page, err := a.storedPage(key)
	if err != nil {
		return boughtPage{}, err
	}
	question := answers.Question{Scope: a.scope, Key: key}
	switch standing.ofPage(f, a.Offline) {
	case toAnswer:
		a.Meter.Stored(1)
		return page, nil
	case toSkip:
		return boughtPage{verdict: verdict{outcome: outcome.Skipped, reason: outcome.ReasonNotStored}}, nil
	case toAwait:
		return a.purchase(question, f).resumePage()
	case toFail:
		if f.Open == answers.Parked {
			return failedPage(outcome.ReasonUnfinished), nil
		}
		return failedPage(outcome.ReasonUnknownCall), nil
	}
	return a.purchase(question, f).buyPage(q)
}

// storedPage is what is to be done about a page, and the page where it is
// stored.
func (a *asker) storedPage(key string) (f answers.Found, s standing, page boughtPage, err error) {
	a.reading <- struct{}{}
	defer func() { <-a.reading }()
	if f, err = a.lookUp(key); err != nil {
		return f, s, page, err
	}
	if s = a.standing(f, a.began, time.Now()); s == toAnswer {
		page, err = a.readPage(f.Answer)
	}
	f.Answer.Body = nil
	return f, s, page, err
}

// readPage makes of a stored answer what was made of it when it came.
func (a *asker) readPage(stored answers.Answer) (boughtPage, error) {
	if stored.Outcome == answers.Refused {
		return failedPage(stored.Reason), nil
	}
	reply, err := a.Reader.ReadSearch(a.operation, stored.Status, stored.Body)
	if err != nil || reply.Pending {
		return boughtPage{}, errors.Join(errUnreadable, err)
	}
	reply.Body = stored.Body
	return boughtPage{pageVerdict(stored), reply}, nil
}

// pageVerdict is that of an answered page, also of one without leads: whether
// the search has any is known at its end.
func pageVerdict(a answers.Answer) verdict {
	v := verdictOf(a)
	v.outcome, v.reason = outcome.Matched, ""
	return v
}

// resumePage gets a page that an earlier process had the service make.
func (p *purchase) resumePage() (boughtPage, error) {
	p.places.occupy()
	if p.counted {
		p.purse.retake(p.price)
	}
	page, cost, err := p.poll(0)
	p.places.leave(false)
	if p.counted {
		p.purse.settle(p.price, cost)
	}
	return page, err
}

// buyPage has the service make a page, and gets it.
func (p *purchase) buyPage(q search.Query) (page boughtPage, err error) {
	which, of := searchOf(q)
	var reply resolution.SearchReply
	placed := false
	defer func() {
		if placed {
			p.places.leave(err == nil && page.outcome == outcome.Matched)
		}
	}()
	start := func() error {
		return p.send(func(call answers.Call) (resolution.About, error) {
			var err error
			reply, err = p.Service.Start(context.WithoutCancel(p.ctx), resolution.SearchCall{
				Operation: p.operation, KeywordSearch: which, SearchPage: of,
				IdempotencyKey: call.IdempotencyKey, ClientRef: p.question.Hash().String(),
			})
			return reply.About, err
		}, func() error {
			if reply.Pending {
				return p.parkPage(reply.About)
			}
			a := p.answerOf(reply, p.run)
			theirs, err := p.store(a)
			if theirs != nil {
				a = *theirs
			}
			p.paid(p.costOfStored(a))
			switch {
			case err != nil:
				return err
			case theirs != nil:
				page, err = p.readPage(a)
				return err
			}
			page = boughtPage{pageVerdict(a), reply}
			return nil
		})
	}
	without, err := p.persist(func() error {
		for {
			if !placed {
				if err := p.places.take(p.ctx); err != nil {
					return err
				}
				placed = true
			}
			takes, before := p.places.look()
			err := start()
			now, after := p.places.look()
			refusal := noPlace(err, before || after || now != takes)
			if refusal == nil {
				return p.setAside(err)
			}
			p.places.refuse()
			placed = false
			p.Meter.Retried(string(refusal.Class))
		}
	})
	switch {
	case errors.Is(err, errArrived):
		stored, err := p.posted()
		if err != nil || stored == nil {
			return failedPage(outcome.ReasonUnavailable), err
		}
		return p.readPage(*stored)
	case err != nil:
		return boughtPage{}, err
	case without != nil:
		return boughtPage{verdict: *without}, nil
	case reply.Pending:
		cost := int64(0)
		page, cost, err = p.poll(max(firstWait, min(reply.Pace.RetryAfter, longestWait)))
		p.purse.settle(p.price, cost)
		return page, err
	}
	return page, nil
}

// parkPage stores that the service is making the page. What it can cost stays
// taken out of the budget until it is known.
func (p *purchase) parkPage(about resolution.About) error {
	err := p.Answers.Park(context.WithoutCancel(p.ctx), p.question, answers.Parking{
		Resolution: about.ID, Request: about.RequestID, Deadline: time.Now().Add(p.Patience),
	})
	p.isKnown()
	if errors.Is(err, answers.ErrNoCall) {
		return nil // the callback was faster
	}
	return err
}

// answerOf is a finished page or count as it is stored. One without leads is a
// match too: it is what was asked for.
func (p *purchase) answerOf(reply resolution.SearchReply, run string) answers.Answer {
	cost := p.Price.costOfSearch(p.question, reply)
	return answers.Answer{
		Run: run, Outcome: answers.Matched, Status: reply.Status, Body: reply.Body, Resolution: reply.ID, Request: reply.RequestID,
		Credits: &cost, Received: time.Now().UTC().Truncate(time.Millisecond),
	}
}
