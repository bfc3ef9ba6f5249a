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
	send func(ctx context.Context, q answers.Question, idempotencyKey string) (reply, error)
	// poll asks for a promised result; nil where a callback alone brings it.
	poll func(ctx context.Context, id string) (reply, error)
	// read reads a reply again from what is stored of it.
	read func(status int, body []byte) (reply, error)
	// price is what a reply costs where the service does not say.
	price func(key string, r reply) int64
	// late is the reason of a row whose promised answer does not come in time.
	late string
}

// reply is what the service said to one question.
type reply struct {
	about  resolution.About
	record resolution.Answer       // of a single record
	page   *resolution.SearchReply // of a page or a count; nil while it is not finished
}

func newCodec(op resolution.Operation, service Service, reader Reader, price Price) codec {
	if op.IsKeyword() {
		return pageCodec(op, service, reader, price)
	}
	return recordCodec(op, service, reader, price)
}

func recordCodec(op resolution.Operation, service Service, reader Reader, price Price) codec {
	replyOf := func(r resolution.Reply, err error) (reply, error) {
		return reply{about: r.About, record: r.Answer}, err
	}
	return codec{
		operation: op,
		send: func(ctx context.Context, q answers.Question, idempotencyKey string) (reply, error) {
			return replyOf(service.Do(ctx, resolution.Call{
				Request:        resolution.Request{Operation: op, Key: q.Key},
				IdempotencyKey: idempotencyKey, ClientRef: q.Hash().String(),
			}))
		},
		read:  func(status int, body []byte) (reply, error) { return replyOf(reader.Read(op, status, body)) },
		price: func(_ string, r reply) int64 { return price.ofRecord(op, r.record) },
		late:  outcome.ReasonNoCallback,
	}
}

func pageCodec(op resolution.Operation, service Service, reader Reader, price Price) codec {
	replyOf := func(r resolution.SearchReply, err error) (reply, error) {
		if err != nil || r.Pending {
			return reply{about: r.About}, err
		}
		return reply{about: r.About, page: &r}, nil
	}
	return codec{
		operation: op,
		send: func(ctx context.Context, q answers.Question, idempotencyKey string) (reply, error) {
			query, err := search.ParseKey(q.Key)
			if err != nil {
				return reply{}, err
			}
			which, page := SearchOf(query)
			return replyOf(service.Start(ctx, resolution.SearchCall{
				Operation: op, KeywordSearch: which, SearchPage: page,
				IdempotencyKey: idempotencyKey, ClientRef: q.Hash().String(),
			}))
		},
		poll: func(ctx context.Context, id string) (reply, error) { return replyOf(service.Poll(ctx, op, id)) },
		read: func(status int, body []byte) (reply, error) { return replyOf(reader.ReadSearch(op, status, body)) },
		price: func(key string, r reply) int64 {
			if op == resolution.KeywordToLeadCount {
				return price.Match
			}
			return price.ofPage(key, len(r.page.Result.Leads))
		},
		late: outcome.ReasonUnfinished,
	}
}

// stored is a finished reply as it is stored. A page without leads is a match:
// it is what was asked for.
func (c codec) stored(key string, r reply) answers.Answer {
	cost := costOf(r.about, c.price(key, r))
	a := answers.Answer{
		Outcome: answers.Matched, Status: r.about.Status, Body: r.about.Body, Resolution: r.about.ID, Request: r.about.RequestID,
		Credits: &cost, Received: time.Now().UTC().Truncate(time.Millisecond),
	}
	if r.page == nil && !r.record.Matched() {
		a.Outcome, a.Reason = answers.NoMatch, r.record.Reason
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
		return answerOf(stored, reply{}), nil
	}
	r, err := c.read(stored.Status, stored.Body)
	if err != nil || r.page == nil && !r.record.Matched() {
		return Answer{}, errors.Join(errUnreadable, err)
	}
	if r.page != nil {
		r.page.Body = stored.Body
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
