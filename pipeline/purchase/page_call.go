package purchase

import (
	"context"
	"errors"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/search"
)

const (
	// heldBytes is how large a page may be that waits for its turn in memory;
	// a larger one waits in the store. There, as it is received, a page takes
	// up to some 2 MB, and three times that when it is read.
	heldBytes = 16 << 10
	// readAtOnce is how many stored pages are read at a time.
	readAtOnce = 4
)

// Page is a page of a search, or its count.
type Page struct {
	// Answer is matched when the page is there, also when it has no leads.
	Answer Answer
	// Count is the result of a count; nil for a page of leads.
	Count *resolution.SearchCount
	// HasMore says that there are leads behind this page, and Total how many
	// the search has.
	HasMore bool
	Total   int64
	// Leads gets the leads of the page: from memory where they take little, or
	// from the store.
	Leads func() ([]resolution.FoundLead, error)
}

// Page gets one page of a search, or its count.
func (a *Buyer) Page(ctx context.Context, q search.Query) (Page, error) {
	got, err := a.get(ctx, q)
	p := Page{Answer: got.Answer}
	if err != nil || got.Outcome != outcome.Matched {
		return p, err
	}
	p.HasMore, p.Total = got.reply.HasMore && len(got.reply.Result.Leads) > 0, got.reply.Result.Total
	leads := got.reply.Result.Leads
	p.Leads = func() ([]resolution.FoundLead, error) { return leads, nil }
	switch {
	case a.codec.operation == resolution.KeywordToLeadCount:
		p.Count = &got.reply.Count
	case len(got.reply.Body) > heldBytes:
		p.Leads = func() ([]resolution.FoundLead, error) {
			again, err := a.readAgain(q.Key())
			return again.reply.Result.Leads, err
		}
	}
	return p, nil
}

// boughtPage is what is known of a page: with the outcome Matched also what it
// holds.
type boughtPage struct {
	Answer
	reply resolution.SearchReply
}

func failedPage(reason string) boughtPage { return boughtPage{Answer: failed(reason)} }

// get gets one page, from the store or the service. Of twins one asks, and the
// others read its answer.
func (a *Buyer) get(ctx context.Context, q search.Query) (page boughtPage, err error) {
	key := q.Key()
	claims, ours := a.inFlight.join([]string{key})
	if len(ours) == 0 {
		a.counters.Duplicates(1)
		return a.twin(ctx, claims[0])
	}
	a.counters.Asked(1)
	err = errPanicked
	defer func() { a.inFlight.finish(ours[0], page.Answer, err) }()
	page, err = a.settlePage(q, key)
	return page, err
}

// twin waits for who asks the same.
func (a *Buyer) twin(ctx context.Context, c *entry) (boughtPage, error) {
	select {
	case <-c.done:
	case <-ctx.Done():
		return boughtPage{}, context.Cause(ctx)
	}
	if c.err != nil || c.Outcome != outcome.Matched {
		return boughtPage{Answer: c.Answer}, c.err
	}
	return a.readAgain(c.key)
}

// readAgain reads a page that is known to be stored.
func (a *Buyer) readAgain(key string) (boughtPage, error) {
	a.reading <- struct{}{}
	defer func() { <-a.reading }()
	f, err := a.lookUp(key)
	if err != nil {
		return boughtPage{}, err
	}
	return a.readPage(f.Answer)
}

func (a *Buyer) lookUp(key string) (answers.Found, error) {
	found, err := a.remote.Answers.Lookup(context.WithoutCancel(a.ctx), a.scope, []string{key}, a.remote.Freshness(a.began), true, nil)
	if err != nil {
		return answers.Found{}, err
	}
	return found[0], nil
}

// settlePage goes by what is stored of a page, or has it bought.
func (a *Buyer) settlePage(q search.Query, key string) (boughtPage, error) {
	f, decision, page, err := a.storedPage(key)
	if err != nil {
		return boughtPage{}, err
	}
	question := answers.Question{Scope: a.scope, Key: key}
	switch decision {
	case UseStored:
		a.counters.Stored(1)
		return page, nil
	case Skip:
		return boughtPage{Answer: Answer{Outcome: outcome.Skipped, Reason: outcome.ReasonNotStored}}, nil
	case Await:
		return a.purchase(question, f).resumePage()
	case GiveUp:
		return failedPage(openReason(a.codec.operation, f)), nil
	}
	return a.purchase(question, f).buyPage(q)
}

// storedPage is what is to be done about a page, and the page where it is
// stored.
func (a *Buyer) storedPage(key string) (f answers.Found, s Decision, page boughtPage, err error) {
	a.reading <- struct{}{}
	defer func() { <-a.reading }()
	if f, err = a.lookUp(key); err != nil {
		return f, s, page, err
	}
	if s = a.remote.Decide(a.codec.operation, f, a.began, time.Now()); s == UseStored {
		page, err = a.readPage(f.Answer)
	}
	f.Answer.Body = nil
	return f, s, page, err
}

// readPage makes of a stored answer what was made of it when it came.
func (a *Buyer) readPage(stored answers.Answer) (boughtPage, error) {
	if stored.Outcome == answers.Refused {
		return failedPage(stored.Reason), nil
	}
	reply, err := a.remote.Reader.ReadSearch(a.codec.operation, stored.Status, stored.Body)
	if err != nil || reply.Pending {
		return boughtPage{}, errors.Join(errUnreadable, err)
	}
	reply.Body = stored.Body
	return boughtPage{pageAnswer(stored), reply}, nil
}

// pageAnswer is that of an answered page, also of one without leads: whether
// the search has any is known at its end.
func pageAnswer(a answers.Answer) Answer {
	return answerOf(a, reply{page: &resolution.SearchReply{}})
}

// resumePage gets a page that an earlier process had the service make.
func (p *purchase) resumePage() (boughtPage, error) {
	p.buyer.places.occupy()
	p.charge.reopen()
	page, cost, err := p.poll(0)
	p.buyer.places.leave(false)
	p.charge.settle(cost)
	return page, err
}

// buyPage has the service make a page, and gets it.
func (p *purchase) buyPage(q search.Query) (page boughtPage, err error) {
	which, of := SearchOf(q)
	var reply resolution.SearchReply
	placed := false
	defer func() {
		if placed {
			p.buyer.places.leave(err == nil && page.Outcome == outcome.Matched)
		}
	}()
	start := func() error {
		return p.send(func(call answers.Call) (resolution.About, error) {
			var err error
			reply, err = p.buyer.remote.Service.Start(context.WithoutCancel(p.buyer.ctx), resolution.SearchCall{
				Operation: p.buyer.codec.operation, KeywordSearch: which, SearchPage: of,
				IdempotencyKey: call.IdempotencyKey, ClientRef: p.question.Hash().String(),
			})
			return reply.About, err
		}, func() error {
			if reply.Pending {
				return p.parkPage(reply.About)
			}
			a := p.answerOf(reply, p.buyer.run)
			theirs, err := p.store(a)
			if theirs != nil {
				a = *theirs
			}
			p.paid(p.costOfStored(a))
			switch {
			case err != nil:
				return err
			case theirs != nil:
				page, err = p.buyer.readPage(a)
				return err
			}
			page = boughtPage{pageAnswer(a), reply}
			return nil
		})
	}
	without, err := p.retryUntilSettled(func() error {
		for {
			if !placed {
				if err := p.buyer.places.take(p.buyer.ctx); err != nil {
					return err
				}
				placed = true
			}
			var err error
			others := p.buyer.places.watch(func() { err = start() })
			refusal := noPlace(err, others)
			if refusal == nil {
				return p.setAside(err)
			}
			p.buyer.places.refuse()
			placed = false
			p.buyer.counters.Retried(string(refusal.Class))
		}
	})
	switch {
	case errors.Is(err, errArrived):
		stored, err := p.posted()
		if err != nil || stored == nil {
			return failedPage(outcome.ReasonUnavailable), err
		}
		return p.buyer.readPage(*stored)
	case err != nil:
		return boughtPage{}, err
	case without != nil:
		return boughtPage{Answer: *without}, nil
	case reply.Pending:
		cost := int64(0)
		page, cost, err = p.poll(max(initialWait, min(reply.Pace.RetryAfter, maxWait)))
		p.charge.settle(cost)
		return page, err
	}
	return page, nil
}

// parkPage stores that the service is making the page. What it can cost stays
// taken out of the budget until it is known.
func (p *purchase) parkPage(about resolution.About) error {
	err := p.buyer.remote.Answers.Park(context.WithoutCancel(p.buyer.ctx), p.question, answers.Parking{
		Resolution: about.ID, Request: about.RequestID, Deadline: time.Now().Add(p.buyer.remote.Patience),
	})
	p.clearUnknown()
	if errors.Is(err, answers.ErrNoCall) {
		return nil // the callback was faster
	}
	return err
}

// answerOf is a finished page or count as it is stored. One without leads is a
// match too: it is what was asked for.
func (p *purchase) answerOf(reply resolution.SearchReply, run string) answers.Answer {
	cost := costOf(reply.About, p.buyer.remote.Price.Match)
	if p.buyer.codec.operation == resolution.KeywordToLead {
		cost = costOf(reply.About, p.buyer.remote.Price.ofPage(p.question.Key, len(reply.Result.Leads)))
	}
	return answers.Answer{
		Run: run, Outcome: answers.Matched, Status: reply.Status, Body: reply.Body, Resolution: reply.ID, Request: reply.RequestID,
		Credits: &cost, Received: time.Now().UTC().Truncate(time.Millisecond),
	}
}
