package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
)

// searchBody is the JSON body of a search.
type searchBody struct {
	Keywords           []string `json:"keywords"`
	Cities             []string `json:"cities,omitempty"`
	States             []string `json:"states,omitempty"`
	Zips               []string `json:"zips,omitempty"`
	LeadType           string   `json:"lead_type,omitempty"`
	DateStart          string   `json:"date_start,omitempty"`
	DateEnd            string   `json:"date_end,omitempty"`
	Limit              int      `json:"limit,omitempty"`
	LimitOfHEMs        int      `json:"limit_of_hems,omitempty"`
	Page               int      `json:"page,omitempty"`
	Deanonymize        bool     `json:"deanonymize,omitempty"`
	SuperEnrichment    bool     `json:"super_enrichment,omitempty"`
	JobTitleInclusions []string `json:"job_title_inclusions,omitempty"`
	JobTitleExclusions []string `json:"job_title_exclusions,omitempty"`
	CallbackURL        string   `json:"callback_url,omitempty"`
	Metadata           metadata `json:"metadata,omitzero"`
}

// Start asks the service to begin a search. Zero fields of s are not sent, so that
// the defaults of the service apply.
func (c *Client) Start(ctx context.Context, s resolution.SearchCall) (resolution.Reply, error) {
	if !s.Operation.IsKeyword() {
		return resolution.Reply{}, &resolution.CallError{Operation: s.Operation, Class: resolution.Invalid, Detail: "not a keyword operation"}
	}
	q := searchBody{
		Keywords: s.Keywords, Cities: s.Cities, States: s.States, Zips: s.Zips, LeadType: s.LeadType,
		DateStart: day(s.Start), DateEnd: day(s.End), Limit: s.Limit, LimitOfHEMs: s.HEMs, Page: s.Number,
		Deanonymize: s.Deanonymize, SuperEnrichment: s.SuperEnrichment,
		JobTitleInclusions: s.JobTitleInclusions, JobTitleExclusions: s.JobTitleExclusions, CallbackURL: c.options.CallbackURL,
	}
	q.Metadata.ClientRef = s.ClientRef
	about := questionOf(c.options.Asked, resolution.Call{Request: resolution.Request{Operation: s.Operation}, ClientRef: s.ClientRef})
	about.search = &q
	return c.search(ctx, s.Operation.Facts().Path, s.IdempotencyKey, q, about)
}

// Poll asks for the result of a search. A search that the service no longer knows
// is Invalid, with status 404 or 410. clientRef is that of its Start.
func (c *Client) Poll(ctx context.Context, op resolution.Operation, id, clientRef string) (resolution.Reply, error) {
	if !op.IsKeyword() || id == "" {
		return resolution.Reply{}, &resolution.CallError{Operation: op, Class: resolution.Invalid, Detail: "not a keyword operation, or no resolution id"}
	}
	about := questionOf(c.options.Asked, resolution.Call{Request: resolution.Request{Operation: op}, ClientRef: clientRef})
	about.id = id
	return c.search(ctx, op.Facts().Path+"/result", "", map[string]string{"resolution_id": id}, about)
}

func (c *Client) search(ctx context.Context, path, idempotencyKey string, question any, about *asked) (resolution.Reply, error) {
	op := about.call.Operation
	body, err := json.Marshal(question)
	if err != nil {
		return resolution.Reply{}, &resolution.CallError{Operation: op, Class: resolution.Invalid, Detail: "the search cannot be written"}
	}
	return c.ask(ctx, request{http.MethodPost, op, path, idempotencyKey, body}, about)
}

func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}

// searchReply reads an answer to Start or Poll.
func (a response) searchReply() (resolution.Reply, error) {
	e := a.envelope()
	body := e.body
	if err := e.misplaced(); err != nil {
		return resolution.Reply{}, err
	}
	if a.asked.isPoll() && e.isTooEarly() {
		e.about.Pending = true
		return resolution.Reply{About: e.about}, nil
	}
	if err := e.err(); err != nil {
		var refused *resolution.CallError
		if a.asked.isPoll() && errors.As(err, &refused) && (e.isMiss() || a.status == http.StatusGone && refused.Code != retired) {
			refused.Class, refused.Detail = resolution.Invalid, "the service no longer knows the resolution"
		}
		return resolution.Reply{}, err
	}
	r := resolution.Reply{About: e.about}
	var page resolution.FoundPage
	found, isList := leads(body)
	p := picker{companies: a.companies}
	count, isCount := p.counted(body)
	switch {
	case (!isList || len(found) == 1) && (!isCount || count.Leads == 0) && !e.isPromise():
		return resolution.Reply{}, e.unreadable("the answer reports an error")
	case a.operation.Gives() == resolution.GivesLeads && isList:
		p.into = resolution.NewAnswers()
		for v := range found.Inside().All() {
			if !p.foundLead(jsontree.Object(v)) {
				page.LeftOut++
			}
		}
		page.Result.Leads = p.into
		r.Quarantined = p.quarantined + page.LeftOut
		page.Result.Total, page.HasMore = pages(body)
		r.Page = &page
	case a.operation.Gives() == resolution.GivesCount && isCount:
		page.Count, r.Quarantined = count, p.quarantined
		r.Page = &page
	case a.operation.Gives() == resolution.GivesCount && p.quarantined > 0 && isFinished(e.status):
		return resolution.Reply{}, e.unreadable("the count of the answer is not a count")
	case e.status != "" && isFinished(e.status):
		return resolution.Reply{}, e.unreadable("the search is finished, but its result is missing")
	case r.ID == "" && !a.asked.isToldByCallback():
		return resolution.Reply{}, e.unreadable("the answer does not name its resolution")
	default:
		r.Pending = true
	}
	return r, nil
}

// isOver reports whether a status says that a resolution ended without an
// answer.
func isOver(status string) bool {
	switch status {
	case "failed", "cancelled", "canceled", "error":
		return true
	}
	return false
}

// leads finds the list of leads, in all the places where services put it.
func leads(body jsontree.Value) (found jsontree.Value, ok bool) {
	for _, v := range []jsontree.Value{jsontree.Object(body.Get("lead")).Get("leads"), body.Get("leads"), body.Get("lead"), jsontree.Object(body.Get("data")).Get("leads"), body.Get("data"), body.Get("results")} {
		if v.Kind() == '[' {
			return v, true
		}
	}
	return nil, false
}

// counted finds the result of a count. A number that is no count is left out.
func (p *picker) counted(body jsontree.Value) (c resolution.SearchCount, ok bool) {
	for _, m := range []jsontree.Value{jsontree.Object(body.Get("lead")), jsontree.Object(body.Get("data")), jsontree.Object(body.Get("result")), body} {
		leads, is := p.count(m.Get("count"))
		if !is {
			continue
		}
		hems, is := p.count(m.Get("hashed_email_count"))
		if !is {
			hems = -1
		}
		approximate, _ := jsontree.Truth(m.Get("is_approximate"))
		return resolution.SearchCount{Leads: leads, HashedEmails: hems, Approximate: approximate}, true
	}
	return c, false
}

// count is v as a count; is reports whether it is one.
func (p *picker) count(v jsontree.Value) (n int64, is bool) {
	if n, is = exchange.Whole(v); !is && !isBlank(v) {
		p.quarantined++
	}
	return n, is
}

// pages reads how many leads there are, 0 if that is not said, and whether this is the
// last page.
func pages(body jsontree.Value) (total int64, more bool) {
	for _, m := range []jsontree.Value{jsontree.Object(jsontree.Object(body.Get("lead")).Get("pagination")), jsontree.Object(body.Get("pagination")), jsontree.Object(jsontree.Object(body.Get("data")).Get("pagination")), body} {
		if n, ok := exchange.Whole(m.Get("total")); ok {
			total = n
		}
		if more, is := jsontree.Truth(m.Get("has_more")); is {
			return total, more
		}
		page, ok := exchange.Number(m.Get("page"))
		all, known := exchange.Number(m.Get("total_pages"))
		if ok && known {
			return total, page < all
		}
	}
	return total, false
}

// foundLead reads a lead of a page; has says that there is one.
func (p *picker) foundLead(m jsontree.Value) (has bool) {
	a, id := p.into, first(m, "lead_id", "id")
	p.lead(resolution.GivesLeads, m)
	if id == "" && a.IsLastEmpty() {
		a.DropLast()
		return false
	}
	a.SetText(resolution.FieldLeadID, id)
	a.SetText(resolution.FieldLeadType, jsontree.Text(m.Get("lead_type")))
	for v := range jsontree.List(m.Get("matched_keywords")).All() {
		if k := jsontree.Text(v); k != "" {
			a.AddKeyword(k)
		}
	}
	if at := exchange.Moment(m.Get("searched_at")); at != nil {
		a.SetTime(&a.SearchedAt, *at)
	}
	return true
}
