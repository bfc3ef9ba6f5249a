package wire

import (
	"bytes"

	"github.com/leadetl/leadetl/resolution"
)

// Outcome is what a finished keyword search adds to its envelope, in the form
// in which it is stored.
type Outcome struct {
	Data    bool    `json:"data"` // there are leads
	Lead    any     `json:"lead"`
	Credits Credits `json:"credits"`
}

// Credits is what a search cost.
type Credits struct {
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

// ListOutcome is the outcome of a list: a page of leads, at unit credits each.
// It has at most as many leads as were requested, even if the Searcher found
// more.
func ListOutcome(found resolution.SearchResult, page resolution.SearchPage, unit int64) Outcome {
	leads := make([]resolution.FoundLead, min(found.Leads.Len(), page.Limit))
	for i := range leads {
		leads[i] = found.Leads.Found(i)
	}
	limit, number := int64(page.Limit), int64(page.Number)
	pages := (found.Total + limit - 1) / limit
	return Outcome{
		Data: len(leads) > 0,
		Lead: listLead{leads, pagination{
			Page: page.Number, Limit: page.Limit, Total: found.Total, TotalPages: pages, HasMore: number < pages,
		}},
		Credits: Credits{int64(len(leads)) * unit},
	}
}

// CountOutcome is the outcome of a count. It costs nothing when nothing was
// found.
func CountOutcome(found resolution.SearchCount, price int64) Outcome {
	o := Outcome{Data: found.Leads > 0, Lead: countLead{found.Leads, found.HashedEmails, found.Approximate}}
	if o.Data {
		o.Credits.Spent = price
	}
	return o
}

// JSON returns o as it is stored.
func (o Outcome) JSON() []byte {
	var b bytes.Buffer
	WriteJSON(&b, o)
	return b.Bytes()
}
