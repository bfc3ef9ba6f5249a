package purchase

import (
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
)

// Answer is what is known about a question, for every row that asks it.
type Answer struct {
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

	page      *resolution.FoundPage // of a page of a search, or a count
	pageBytes int                   // of the page as it was received
}

func failed(reason string) Answer { return Answer{Outcome: outcome.Failed, Reason: reason} }

// leaveOpen notes that the call is open.
func (a *Answer) leaveOpen(run string, maxCredits int64) {
	a.Open, a.Run, a.MaxCredits = true, run, maxCredits
}

// refusedAs is what a stored refusal says.
func refusedAs(stored answers.Answer) Answer {
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
func answerOf(stored answers.Answer, r resolution.Reply) Answer {
	a := Answer{
		Outcome: outcome.NoMatch, Reason: stored.Reason, Found: r.Found, Helpers: r.Helpers, page: r.Page, pageBytes: len(stored.Body),
		Receipt: receiptOf(stored), Run: stored.Run, Request: stored.Request,
	}
	if stored.Outcome == answers.Matched || r.Page != nil { // whether a search has leads is known after its last page
		a.Outcome, a.Reason = outcome.Matched, ""
	}
	return a
}
