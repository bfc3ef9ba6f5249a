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

	page      *resolution.FoundPage // of a page of a search, or a count
	pageBytes int                   // of the page as it was received
}

func failed(reason string) Answer { return Answer{Outcome: outcome.Failed, Reason: reason} }

// answerOf is what a stored answer and the reply that was stored say together.
func answerOf(stored answers.Answer, r resolution.Reply) Answer {
	a := Answer{
		Outcome: outcome.NoMatch, Reason: stored.Reason, Found: r.Found, Helpers: r.Helpers, page: r.Page, pageBytes: len(stored.Body),
		Receipt: outcome.Receipt{ResolutionID: stored.Resolution, ResolvedAt: stored.Received},
	}
	if stored.Outcome == answers.Matched || r.Page != nil { // whether a search has leads is known after its last page
		a.Outcome, a.Reason = outcome.Matched, ""
	}
	if stored.Credits != nil {
		a.Receipt.Credits, a.Receipt.Priced = int32(*stored.Credits), true
	}
	return a
}
