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

// boughtPage is what is known of a page: with the outcome Matched also what it
// holds.
type boughtPage struct {
	Answer
	reply resolution.SearchReply
}

// withPage is the Answer that carries what the page holds.
func (p boughtPage) withPage(err error) (Answer, error) {
	a := p.Answer
	if a.Outcome == outcome.Matched {
		a.page = &p.reply
	}
	return a, err
}

func failedPage(reason string) boughtPage { return boughtPage{Answer: failed(reason)} }

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
