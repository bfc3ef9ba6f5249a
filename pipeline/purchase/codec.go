package purchase

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/search"
)

// codec is what single records and pages of searches do not have in common:
// how a question is sent, how a reply is read, and what it costs.
type codec struct {
	operation resolution.Operation
	// send makes one request. The context must not end it: what may be billed
	// is waited for.
	send func(ctx context.Context, q answers.Question, idempotencyKey string) (resolution.Reply, error)
	// poll asks for a promised result; nil where a callback alone brings it.
	poll func(ctx context.Context, id string) (resolution.Reply, error)
	// read reads a reply again from what is stored of it.
	read Reader
	// price is what a reply costs where the service does not say.
	price func(key string, r resolution.Reply) int64
	// late is the reason of a row whose promised answer does not come in time.
	late string
}

func newCodec(op resolution.Operation, service Service, read Reader, price Price) codec {
	c := codec{operation: op, read: read}
	if op.IsKeyword() {
		c.forPages(service, price)
	} else {
		c.forRecords(service, price)
	}
	return c
}

func (c *codec) forRecords(service Service, price Price) {
	c.late = outcome.ReasonNoCallback
	c.send = func(ctx context.Context, q answers.Question, idempotencyKey string) (resolution.Reply, error) {
		return service.Do(ctx, resolution.Call{
			Request:        resolution.Request{Operation: c.operation, Key: q.Key},
			IdempotencyKey: idempotencyKey, ClientRef: q.Hash().String(),
		})
	}
	c.price = func(_ string, r resolution.Reply) int64 { return price.ofRecord(c.operation, r.Answer) }
}

func (c *codec) forPages(service Service, price Price) {
	c.late = outcome.ReasonUnfinished
	c.send = func(ctx context.Context, q answers.Question, idempotencyKey string) (resolution.Reply, error) {
		query, err := search.ParseKey(q.Key)
		if err != nil {
			return resolution.Reply{}, err
		}
		which, page := SearchOf(query)
		return service.Start(ctx, resolution.SearchCall{
			Operation: c.operation, KeywordSearch: which, SearchPage: page,
			IdempotencyKey: idempotencyKey, ClientRef: q.Hash().String(),
		})
	}
	c.poll = func(ctx context.Context, id string) (resolution.Reply, error) {
		return service.Poll(ctx, c.operation, id)
	}
	c.price = func(key string, r resolution.Reply) int64 {
		if c.operation == resolution.KeywordToLeadCount {
			return price.Match
		}
		return price.ofPage(key, len(r.Page.Result.Leads))
	}
}

// stored is a finished reply as it is stored. A page without leads, and a count
// of none, is no match: it may be old sooner.
func (c codec) stored(key string, r resolution.Reply) answers.Answer {
	cost := costOf(r.About, c.price(key, r))
	a := answers.Answer{
		Outcome: answers.Matched, Status: r.Status, Body: r.Body, Resolution: r.ID, Request: r.RequestID,
		Credits: &cost, Received: time.Now().UTC().Truncate(time.Millisecond),
	}
	switch {
	case r.Page == nil && !r.Answer.Matched():
		a.Outcome, a.Reason = answers.NoMatch, r.Answer.Reason
	case r.Page != nil && len(r.Page.Result.Leads) == 0 && r.Page.Count.Leads == 0:
		a.Outcome, a.Reason = answers.NoMatch, outcome.ReasonNotFound
	}
	return a
}

// errUnreadable says that a stored answer is not what it was when it came.
var errUnreadable = errors.New("a stored answer that was a match does not read as one")

// answer makes of a stored answer what was made of it when it came.
func (c codec) answer(stored answers.Answer) (Answer, error) {
	switch {
	case stored.Outcome == answers.Refused:
		return failed(stored.Reason), nil
	case stored.Outcome == answers.NoMatch && c.poll == nil:
		return answerOf(stored, resolution.Reply{}), nil
	}
	r, err := c.read(c.operation, stored.Status, stored.Body)
	if err != nil || r.Page == nil && !r.Answer.Matched() {
		return Answer{}, errors.Join(errUnreadable, err)
	}
	return answerOf(stored, r), nil
}

// explain adds to an error for want of credits what a page needs: a service
// sets the price of a full page aside, and refuses while there are credits left.
func (c codec) explain(err error, key string, price int64) error {
	var failure *resolution.CallError
	page, notPage := search.ParseKey(key)
	if c.operation != resolution.KeywordToLead || notPage != nil || !errors.As(err, &failure) || failure.Class != resolution.NoCredits {
		return err
	}
	return fmt.Errorf("%w; for a page of limit %d up to %d credits are set aside at the service: give a smaller limit or more credits", err, page.Limit, price)
}

// SearchOf is a query as the interface has it. Of a count the page says how
// many hashed emails of a lead are counted, and nothing else.
func SearchOf(q search.Query) (resolution.KeywordSearch, resolution.SearchPage) {
	return resolution.KeywordSearch{
			Keywords: q.Keywords, Cities: q.Cities, States: q.States, Zips: q.Zips, LeadType: q.LeadType,
			Start: q.Start, End: q.End, JobTitleInclusions: q.JobTitleInclusions, JobTitleExclusions: q.JobTitleExclusions,
		}, resolution.SearchPage{
			Number: q.Page, Limit: q.Limit, HEMs: q.HEMs, Deanonymize: q.Deanonymize, SuperEnrichment: q.SuperEnrichment,
		}
}
