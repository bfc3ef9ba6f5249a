package service

import (
	"bytes"

	"github.com/leadetl/leadetl/resolution"
)

// outcome is what a finished keyword search adds to its envelope, as it is
// kept.
type outcome struct {
	Data    bool    `json:"data"` // there are leads
	Lead    any     `json:"lead"`
	Credits credits `json:"credits"`
}

type credits struct {
	Spent int64 `json:"spent"`
}

type listLead struct {
	Leads      []resolution.FoundLead `json:"leads"`
	Pagination pagination             `json:"pagination"`
}

type pagination struct {
	Page       int   `json:"page"`
	Limit      int   `json:"limit"`
	Total      int64 `json:"total"` // leads on all pages
	TotalPages int64 `json:"total_pages"`
	HasMore    bool  `json:"has_more"`
}

type countLead struct {
	Count            int64 `json:"count"`
	HashedEmailCount int64 `json:"hashed_email_count"`
	IsApproximate    bool  `json:"is_approximate"`
}

// listOutcome is a page of leads. No more are delivered than were asked for,
// whatever the Searcher found.
func listOutcome(found resolution.SearchResult, page resolution.SearchPage, unit int64) outcome {
	leads := found.Leads[:min(len(found.Leads), page.Limit)]
	if leads == nil {
		leads = []resolution.FoundLead{}
	}
	limit, number := int64(page.Limit), int64(page.Number)
	pages := (found.Total + limit - 1) / limit
	return outcome{
		Data: len(leads) > 0,
		Lead: listLead{leads, pagination{
			Page: page.Number, Limit: page.Limit, Total: found.Total, TotalPages: pages, HasMore: number < pages,
		}},
		Credits: credits{int64(len(leads)) * unit},
	}
}

// countOutcome is a count; nothing found costs nothing.
func countOutcome(found resolution.SearchCount, price int64) outcome {
	o := outcome{Data: found.Leads > 0, Lead: countLead{found.Leads, found.HashedEmails, found.Approximate}}
	if o.Data {
		o.Credits.Spent = price
	}
	return o
}

func (o outcome) json() []byte {
	var b bytes.Buffer
	writeJSON(&b, o)
	return b.Bytes()
}
