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

// Result is what is known about a question, for every row that asks it.
type Result struct {
	Outcome outcome.Outcome
	Reason  string               // empty on a match
	Found   resolution.AnswerRow // shared by the rows, which must not change it
	Receipt outcome.Receipt
	Helpers map[string]string // resolution.Reply.Helpers
	// Refusal is the receipt of a refusal, whose rows have none.
	Refusal outcome.Receipt
	Request string // the service's id of the call, empty if it sent none
	// Run pays for the answer, or for the open call.
	Run string
	// Open says that the question has an open call, whose answer costs MaxCredits at most.
	Open       bool
	MaxCredits int64

	withheld  error                 // a *WithheldError; nil for others
	page      *resolution.FoundPage // of a page of a search, or a count
	pageBytes int                   // of the page as it was received
}

func failed(reason string) Result { return Result{Outcome: outcome.Failed, Reason: reason} }

// leaveOpen notes that the call is open.
func (a *Result) leaveOpen(run string, maxCredits int64) {
	a.Open, a.Run, a.MaxCredits = true, run, maxCredits
}

// refusedAs is what a stored refusal says.
func refusedAs(stored answers.Answer) Result {
	a := failed(stored.Reason)
	a.Run, a.Request, a.Refusal = stored.Run, stored.Request, receiptOf(stored)
	return a
}

func receiptOf(stored answers.Answer) outcome.Receipt {
	r := outcome.Receipt{ResolutionID: stored.Resolution, ResolvedAt: stored.Received}
	if stored.Credits != nil {
		r.Credits, r.Priced = int32(*stored.Credits), true
	}
	return r
}

// answerOf is what a stored answer and the reply that was stored say together.
func answerOf(stored answers.Answer, r resolution.Reply) Result {
	a := Result{
		Outcome: outcome.NoMatch, Reason: stored.Reason, Found: r.Found, Helpers: r.Helpers, page: r.Page, pageBytes: len(stored.Body),
		Receipt: receiptOf(stored), Run: stored.Run, Request: stored.Request,
	}
	if stored.Outcome == answers.Matched || r.Page != nil { // whether a search has leads is known after its last page
		a.Outcome, a.Reason = outcome.Matched, ""
	}
	return a
}

// codec has the differences between single records and pages of searches: how a question is
// sent, how a reply is read, and what it costs.
type codec struct {
	operation resolution.Operation
	judged    bool // Remote.Judged
	offline   bool // Remote.Offline
	// send makes one request. The context must not end it, because a request that may
	// be billed is waited for.
	send func(ctx context.Context, q answers.Question, address, idempotencyKey string) (resolution.Reply, error)
	// poll asks for a promised result; nil if only a callback brings it.
	poll func(ctx context.Context, of answers.Hash, id string) (resolution.Reply, error)
	// read reads a stored reply again, and readMiss one that was a miss.
	read, readMiss Reader
	// price is the cost of a reply if the service does not say it.
	price func(key string, r resolution.Reply) int64
	// late is the reason of a row whose promised answer does not come in time.
	late string
}

func newCodec(op resolution.Operation, r *Remote) codec {
	c := codec{operation: op, judged: r.Judged, offline: r.Offline, read: r.Read, readMiss: r.ReadMiss}
	if c.readMiss == nil {
		c.readMiss = r.Read
	}
	if op.IsKeyword() {
		c.forPages(r.Service, r.Price)
	} else {
		c.forRecords(r)
	}
	return c
}

func (c *codec) forRecords(r *Remote) {
	c.late = outcome.ReasonNoCallback
	c.send = func(ctx context.Context, q answers.Question, address, idempotencyKey string) (resolution.Reply, error) {
		return r.Service.Do(ctx, c.call(q, address, idempotencyKey))
	}
	if r.Later.Wait > 0 {
		c.poll = pollOf(r.Service, c.operation)
	}
	price := r.Price
	c.price = func(_ string, r resolution.Reply) int64 {
		if !c.judged && !r.Found.Matched() && r.Quarantined > 0 {
			return price.Max() // for the service it is a match
		}
		return price.ofRecord(c.operation, r.Found)
	}
}

// pollOf asks for promised results about an operation.
func pollOf(s Service, op resolution.Operation) func(context.Context, answers.Hash, string) (resolution.Reply, error) {
	return func(ctx context.Context, of answers.Hash, id string) (resolution.Reply, error) {
		return s.Poll(ctx, op, id, of.String())
	}
}

// call is the call about a record.
func (c *codec) call(q answers.Question, address, idempotencyKey string) resolution.Call {
	return resolution.Call{
		Request: resolution.Request{Operation: c.operation, Key: q.Key}, Address: address,
		IdempotencyKey: idempotencyKey, ClientRef: q.Hash().String(),
	}
}

func (c *codec) forPages(service Service, price Price) {
	c.late = outcome.ReasonUnfinished
	c.send = func(ctx context.Context, q answers.Question, _, idempotencyKey string) (resolution.Reply, error) {
		query, err := search.ParseKey(q.Key)
		if err != nil {
			return resolution.Reply{}, err
		}
		which, page := SearchOf(query)
		return service.(Searcher).Start(ctx, resolution.SearchCall{
			Operation: c.operation, KeywordSearch: which, SearchPage: page,
			IdempotencyKey: idempotencyKey, ClientRef: q.Hash().String(),
		})
	}
	c.poll = pollOf(service, c.operation)
	c.price = func(key string, r resolution.Reply) int64 {
		if c.operation.Gives() == resolution.GivesCount {
			return price.Match
		}
		return price.ofPage(key, r.Page.Result.Leads.Len()+r.Page.LeftOut)
	}
}

// stored makes the stored form of a finished reply. A page without leads, and a count
// of none, is no match: it may be old sooner.
func (c codec) stored(key string, r resolution.Reply) answers.Answer {
	cost := costOf(r.About, c.price(key, r))
	a := answers.Answer{
		Outcome: answers.Matched, Status: r.Status, Body: r.Body, Resolution: r.ID, Request: r.RequestID,
		Credits: &cost, Received: time.Now().UTC().Truncate(time.Millisecond),
	}
	switch {
	case r.Page == nil && !r.Found.Matched():
		a.Outcome, a.Reason = answers.NoMatch, r.Reason
	case r.Page != nil && r.Page.Result.Leads.Len() == 0 && r.Page.Count.Leads == 0:
		a.Outcome, a.Reason = answers.NoMatch, outcome.ReasonNotFound
	}
	return a
}

// errUnreadable says that a stored answer reads differently than when it came.
var errUnreadable = errors.New("a stored answer that was a match does not read as one")

// answer reads a stored answer by the rules of today. What an earlier version, or other rules of an
// entry, took for a match may have been no value: then it is no match, or its rows fail. into is that
// of Reader.
func (c codec) answer(stored answers.Answer, into *resolution.Answers) (Result, error) {
	switch {
	case stored.Outcome == answers.Refused:
		return refusedAs(stored), nil
	case stored.Outcome == answers.NoMatch && !c.operation.IsKeyword():
		return answerOf(stored, resolution.Reply{}), nil
	}
	r, err := c.read(c.operation, stored.Status, stored.Body, into)
	var failure *resolution.CallError
	switch {
	case c.judged && err == nil && r.Reason == "": // a match, even if nothing is in it
	case errors.As(err, &failure) && failure.Class == resolution.Protocol:
		return failed(outcome.ReasonUnknownCall), nil
	case err != nil, r.Page == nil && !r.Found.Matched() && r.Reason == "":
		return Result{}, errors.Join(errUnreadable, err)
	case r.Page == nil && !r.Found.Matched():
		stored.Outcome, stored.Reason = answers.NoMatch, r.Reason
	}
	return answerOf(stored, r), nil
}

// readAgain reads a stored miss by the rules of today: an earlier version, or other rules of an entry,
// took more for one. It may be a match. Or it is no answer: then it counts as not stored, and its call
// as unknown; none says so. One that is too old is not read, since it is asked about again.
func (c codec) readAgain(f answers.Found, into *resolution.Answers) (_ answers.Found, none bool) {
	if c.judged && !f.Fresh && !c.offline || !f.Stored || f.Answer.Outcome != answers.NoMatch || f.Answer.Status/100 != 2 || len(f.Answer.Body) == 0 {
		return f, false
	}
	r, err := c.readMiss(c.operation, f.Answer.Status, f.Answer.Body, into)
	var failure *resolution.CallError
	switch {
	case errors.As(err, &failure) && failure.Class == resolution.Protocol:
		return noAnswer(f), true
	case r.Found.Matched():
		f.Answer.Outcome, f.Answer.Reason = answers.Matched, ""
	}
	return f, false
}

// noAnswer is what is known of a question whose stored answer is none: its call is unknown.
func noAnswer(f answers.Found) answers.Found {
	if f.Stored, f.Fresh = false, false; f.Open == "" {
		f.Open, f.Sent = answers.Unknown, f.Answer.Received
	}
	return f
}

// explain adds to an error about missing credits what a page needs. A service reserves the
// price of a full page, so it refuses a page while there are credits left.
func (c codec) explain(err error, key string, price int64) error {
	var failure *resolution.CallError
	page, notPage := search.ParseKey(key)
	if c.operation.Gives() != resolution.GivesLeads || notPage != nil || !errors.As(err, &failure) || failure.Class != resolution.NoCredits {
		return err
	}
	return fmt.Errorf("%w; for a page of limit %d up to %d credits are set aside at the service: give a smaller limit or more credits", err, page.Limit, price)
}

// SearchOf returns a query in the form of the interface. For a count, only the HEMs of the page
// matter.
func SearchOf(q search.Query) (resolution.KeywordSearch, resolution.SearchPage) {
	return resolution.KeywordSearch{
			Keywords: q.Keywords, Cities: q.Cities, States: q.States, Zips: q.Zips, LeadType: q.LeadType,
			Start: q.Start, End: q.End, JobTitleInclusions: q.JobTitleInclusions, JobTitleExclusions: q.JobTitleExclusions,
		}, resolution.SearchPage{
			Number: q.Page, Limit: q.Limit, HEMs: q.HEMs, Deanonymize: q.Deanonymize, SuperEnrichment: q.SuperEnrichment,
		}
}
