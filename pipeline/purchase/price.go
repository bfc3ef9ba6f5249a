package purchase

import "github.com/leadetl/leadetl/resolution"

// Price is what a call costs, in credits, where the service does not say.
// What is not found costs nothing.
type Price struct {
	Match int64
	// Company is that of a deanonymization by which only the company was
	// found.
	Company int64
	// Extra is added for each thing more that is asked of the leads of a
	// search (deanonymize, super_enrichment); Match is then that of a lead.
	Extra int64
}

// Prices are those of the interface.
var Prices = map[resolution.Operation]Price{
	resolution.EmailToHEM:         {Match: 1},
	resolution.NetworkToHEM:       {Match: 1},
	resolution.NetworkToPhone:     {Match: 3},
	resolution.IPToCompany:        {Match: 1},
	resolution.Enrichment:         {Match: 2},
	resolution.Deanonymization:    {Match: 3, Company: 1},
	resolution.KeywordToLead:      {Match: 1, Extra: 1},
	resolution.KeywordToLeadCount: {Match: 1},
}

// Max is the most a call can cost.
func (p Price) Max() int64 { return max(p.Match, p.Company) }

// Of is what an answer costs.
func (p Price) Of(op resolution.Operation, a resolution.Answer) int64 {
	switch {
	case !a.Matched():
		return 0
	case op == resolution.Deanonymization && a.Lead.MatchLevel == "company":
		return p.Company
	}
	return p.Match
}

// costOf is what an answer cost: what the service said, or its price where it
// did not, or said it of a replay, which is free while the first was not.
func (p Price) costOf(op resolution.Operation, r resolution.Reply) int64 {
	if r.Spent != nil && (*r.Spent > 0 || !r.Replayed) {
		return *r.Spent
	}
	return p.Of(op, r.Answer)
}
