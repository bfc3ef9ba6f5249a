package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/leadetl/leadetl/resolution"
)

// Search is one page of a keyword search, or its count.
type Search struct {
	// Operation is KeywordToLead or KeywordToLeadCount.
	Operation resolution.Operation
	resolution.KeywordSearch
	resolution.SearchPage
	// IdempotencyKey and ClientRef are those of Call.
	IdempotencyKey, ClientRef string
}

// SearchReply is what the service said about a search.
type SearchReply struct {
	// ID is what Poll asks by.
	ID string
	// Pending says that the search is not finished; Poll again after
	// Pace.RetryAfter.
	Pending bool
	// Result is the page of a finished list, Count that of a finished count.
	Result resolution.SearchResult
	Count  resolution.SearchCount
	// HasMore says that there are pages behind this one.
	HasMore bool

	RequestID   string
	Spent       *int64
	Replayed    bool
	Quarantined int
	Pace        Pace
	Body        []byte
}

// creations and results are where keyword searches are started and asked for.
var (
	creations = map[resolution.Operation]string{
		resolution.KeywordToLead:      "/resolve/keyword_to_lead",
		resolution.KeywordToLeadCount: "/resolve/keyword_to_lead/count",
	}
	results = map[resolution.Operation]string{
		resolution.KeywordToLead:      "/resolve/keyword_to_lead/result",
		resolution.KeywordToLeadCount: "/resolve/keyword_to_lead/count/result",
	}
)

// searchBody is a search on the wire.
type searchBody struct {
	Keywords           []string          `json:"keywords"`
	Cities             []string          `json:"cities,omitempty"`
	States             []string          `json:"states,omitempty"`
	Zips               []string          `json:"zips,omitempty"`
	LeadType           string            `json:"lead_type,omitempty"`
	DateStart          string            `json:"date_start,omitempty"`
	DateEnd            string            `json:"date_end,omitempty"`
	Limit              int               `json:"limit,omitempty"`
	LimitOfHEMs        int               `json:"limit_of_hems,omitempty"`
	Page               int               `json:"page,omitempty"`
	Deanonymize        bool              `json:"deanonymize,omitempty"`
	SuperEnrichment    bool              `json:"super_enrichment,omitempty"`
	JobTitleInclusions []string          `json:"job_title_inclusions,omitempty"`
	JobTitleExclusions []string          `json:"job_title_exclusions,omitempty"`
	CallbackURL        string            `json:"callback_url,omitempty"`
	Metadata           map[string]string `json:"metadata,omitempty"`
}

// Start asks the service to begin a search. Members of s that are zero are
// not sent, so that the service's defaults hold.
func (c *Client) Start(ctx context.Context, s Search) (SearchReply, error) {
	path, ok := creations[s.Operation]
	if !ok {
		return SearchReply{}, &Error{Operation: s.Operation, Class: Invalid, Detail: "not a keyword operation"}
	}
	q := searchBody{
		Keywords: s.Keywords, Cities: s.Cities, States: s.States, Zips: s.Zips, LeadType: s.LeadType,
		DateStart: day(s.Start), DateEnd: day(s.End), Limit: s.Limit, LimitOfHEMs: s.HEMs, Page: s.Number,
		Deanonymize: s.Deanonymize, SuperEnrichment: s.SuperEnrichment,
		JobTitleInclusions: s.JobTitleInclusions, JobTitleExclusions: s.JobTitleExclusions, CallbackURL: c.options.CallbackURL,
	}
	if s.ClientRef != "" {
		q.Metadata = map[string]string{"client_ref": s.ClientRef}
	}
	return c.search(ctx, s.Operation, path, s.IdempotencyKey, q)
}

// Poll asks for the outcome of a search that was started. A search the
// service does not know any more is an Error with the status 404 or 410.
func (c *Client) Poll(ctx context.Context, op resolution.Operation, id string) (SearchReply, error) {
	path, ok := results[op]
	if !ok || id == "" {
		return SearchReply{}, &Error{Operation: op, Class: Invalid, Detail: "not a keyword operation, or no resolution id"}
	}
	return c.search(ctx, op, path, "", map[string]string{"resolution_id": id})
}

func (c *Client) search(ctx context.Context, op resolution.Operation, path, idempotencyKey string, question any) (SearchReply, error) {
	body, err := json.Marshal(question)
	if err != nil {
		return SearchReply{}, &Error{Operation: op, Class: Invalid, Detail: "the search cannot be written"}
	}
	a, err := c.post(ctx, op, path, idempotencyKey, body)
	if err != nil {
		return SearchReply{}, err
	}
	return a.searchReply()
}

func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}

// searchReply reads an answer to Start or Poll.
func (a answer) searchReply() (SearchReply, error) {
	body := a.object()
	if err := a.err(body); err != nil && !(a.status == http.StatusOK && isOver(status(body))) {
		var e *Error
		if errors.As(err, &e) && a.isMiss(body) { // it is the resolution that is not known
			e.Class, e.Detail = Invalid, "the service does not know the resolution"
		}
		return SearchReply{}, err
	}
	about := a.about(body)
	r := SearchReply{ID: about.ID, RequestID: about.RequestID, Spent: about.Spent, Replayed: about.Replayed, Pace: about.Pace, Body: about.Body}
	word := status(body)
	found, isList := leads(body)
	count, isCount := counted(body)
	switch {
	case isOver(word):
		e := &Error{Operation: a.operation, Class: Unavailable, Status: a.status, Code: code(body), RequestID: r.RequestID, Sent: true, Over: true,
			Detail: "the service could not finish the search", Pace: r.Pace}
		if e.Code == "" {
			e.Code = word
		}
		return SearchReply{}, e
	case a.operation == resolution.KeywordToLead && isList:
		p := picker{}
		for _, v := range found {
			r.Result.Leads = append(r.Result.Leads, p.foundLead(object(v)))
		}
		r.Quarantined = p.quarantined
		r.Result.Total, r.HasMore = pages(body, len(found))
	case a.operation == resolution.KeywordToLeadCount && isCount:
		r.Count = count
	case word != "" && isFinished(word):
		return SearchReply{}, &Error{Operation: a.operation, Class: Protocol, Status: a.status, RequestID: r.RequestID, Sent: true,
			Detail: "the search is finished, but its result is missing"}
	case r.ID == "":
		return SearchReply{}, &Error{Operation: a.operation, Class: Protocol, Status: http.StatusOK, RequestID: r.RequestID, Sent: true,
			Detail: "the answer names no resolution"}
	default:
		r.Pending = true
	}
	return r, nil
}

// isOver reports whether a status says that a search ended without a result.
func isOver(status string) bool {
	switch status {
	case "failed", "cancelled", "canceled", "error":
		return true
	}
	return false
}

// leads finds the list of leads, wherever a service puts it.
func leads(body map[string]any) (found []any, ok bool) {
	for _, v := range []any{object(body["lead"])["leads"], body["leads"], body["lead"], object(body["data"])["leads"], body["data"], body["results"]} {
		if found, ok = v.([]any); ok {
			return found, true
		}
	}
	return nil, false
}

func counted(body map[string]any) (c resolution.SearchCount, ok bool) {
	for _, m := range []map[string]any{object(body["lead"]), object(body["data"]), object(body["result"]), body} {
		n, is := number(m["count"])
		if !is {
			continue
		}
		hems, _ := number(m["hashed_email_count"])
		approximate, _ := m["is_approximate"].(bool)
		return resolution.SearchCount{Leads: int64(n), HashedEmails: int64(hems), Approximate: approximate}, true
	}
	return c, false
}

// pages reads how many leads there are, and whether this is the last page.
func pages(body map[string]any, here int) (total int64, more bool) {
	for _, m := range []map[string]any{object(object(body["lead"])["pagination"]), object(body["pagination"]), object(object(body["data"])["pagination"]), body} {
		if n, ok := number(m["total"]); ok {
			total = int64(n)
		}
		if is, ok := m["has_more"].(bool); ok {
			return max(total, int64(here)), is
		}
		page, ok := number(m["page"])
		all, known := number(m["total_pages"])
		if ok && known {
			return max(total, int64(here)), page < all
		}
	}
	return max(total, int64(here)), false
}

func (p *picker) foundLead(m map[string]any) resolution.FoundLead {
	f := resolution.FoundLead{
		LeadID:   first(m, "lead_id", "id"),
		LeadType: text(m["lead_type"]),
		Lead:     p.lead(resolution.KeywordToLead, m),
	}
	for _, v := range list(m["matched_keywords"]) {
		if k := text(v); k != "" {
			f.MatchedKeywords = append(f.MatchedKeywords, k)
		}
	}
	if at := moment(m["searched_at"]); at != nil {
		f.SearchedAt = *at
	}
	return f
}
