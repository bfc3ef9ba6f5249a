package search

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Query is one search in canonical form: two queries with the same meaning are
// equal.
type Query struct {
	// Lists are sorted by bytes, and have each value once: free text in lower case
	// with single spaces, states in upper case.
	Keywords, Cities, States, Zips         []string
	JobTitleInclusions, JobTitleExclusions []string
	LeadType                               string // b2b, b2c, or empty for both
	// Start and End are the first and the last day, both included: midnight UTC.
	Start, End time.Time
	// HEMs bounds the hashed emails of a lead.
	HEMs int
	// Limit is the number of leads on a page; 0 for a count.
	Limit int
	// Page is the requested page; 0 is all pages.
	Page int
	// Deanonymize and SuperEnrichment request more fields of each lead.
	Deanonymize, SuperEnrichment bool
}

// Pages returns the number of the last page that can be requested.
func (q Query) Pages(l Limits) int {
	if q.Limit == 0 {
		return 1
	}
	return l.Depth / q.Limit
}

// On returns the query for one of its pages.
func (q Query) On(page int) Query {
	q.Page = page
	return q
}

// written is a Query as JSON, with sorted names.
type written struct {
	Cities             []string `json:"cities,omitempty"`
	DateEnd            string   `json:"date_end"`
	DateStart          string   `json:"date_start"`
	Deanonymize        bool     `json:"deanonymize,omitempty"`
	JobTitleExclusions []string `json:"job_title_exclusions,omitempty"`
	JobTitleInclusions []string `json:"job_title_inclusions,omitempty"`
	Keywords           []string `json:"keywords"`
	LeadType           string   `json:"lead_type,omitempty"`
	Limit              int      `json:"limit,omitempty"`
	LimitOfHEMs        int      `json:"limit_of_hems"`
	Page               int      `json:"page,omitempty"`
	States             []string `json:"states,omitempty"`
	SuperEnrichment    bool     `json:"super_enrichment,omitempty"`
	Zips               []string `json:"zips,omitempty"`
}

// Key returns the query as JSON, always the same for the same query. A search is
// stored under it, and the answer to a page under the key of On(page). Stored keys
// depend on how encoding/json writes.
func (q Query) Key() string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(written{
		Cities: q.Cities, DateEnd: q.End.Format(DayFormat), DateStart: q.Start.Format(DayFormat), Deanonymize: q.Deanonymize,
		JobTitleExclusions: q.JobTitleExclusions, JobTitleInclusions: q.JobTitleInclusions, Keywords: q.Keywords, LeadType: q.LeadType,
		Limit: q.Limit, LimitOfHEMs: q.HEMs, Page: q.Page, States: q.States, SuperEnrichment: q.SuperEnrichment, Zips: q.Zips,
	})
	if err != nil {
		panic("search: " + err.Error()) // strings, numbers and booleans can always be written
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

var errNoKey = errors.New("not the key of a search")

// ParseKey reads what Key wrote.
func ParseKey(key string) (Query, error) {
	var w written
	if err := json.Unmarshal([]byte(key), &w); err != nil {
		return Query{}, errNoKey // the error of the decoder may repeat the key
	}
	start, startErr := time.Parse(DayFormat, w.DateStart)
	end, endErr := time.Parse(DayFormat, w.DateEnd)
	if startErr != nil || endErr != nil {
		return Query{}, fmt.Errorf("%w: its days are not dates", errNoKey)
	}
	q := Query{
		Keywords: w.Keywords, Cities: w.Cities, States: w.States, Zips: w.Zips,
		JobTitleInclusions: w.JobTitleInclusions, JobTitleExclusions: w.JobTitleExclusions,
		LeadType: w.LeadType, Start: start, End: end, HEMs: w.LimitOfHEMs, Limit: w.Limit, Page: w.Page,
		Deanonymize: w.Deanonymize, SuperEnrichment: w.SuperEnrichment,
	}
	if q.Key() != key { // unknown or repeated names, another order or spelling
		return Query{}, fmt.Errorf("%w: not in the form that Key writes", errNoKey)
	}
	return q, nil
}
