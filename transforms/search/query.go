package search

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Query is one search in canonical form: two that mean the same are equal.
type Query struct {
	// Lists are in the order of their bytes, each value once and folded:
	// free text in small letters with single spaces, states in large ones.
	Keywords, Cities, States, Zips         []string
	JobTitleInclusions, JobTitleExclusions []string
	LeadType                               string // b2b, b2c, or empty for either
	// Start and End are the first and the last day, both included: midnight UTC.
	Start, End time.Time
	// HEMs bounds the hashed emails of a lead.
	HEMs int
	// Limit is how many leads are on a page; 0 of a count.
	Limit int
	// Page is the one page asked for; 0 is all of them.
	Page int
	// Deanonymize and SuperEnrichment ask for more of each lead.
	Deanonymize, SuperEnrichment bool
}

// Pages is the number of the last page that can be asked for.
func (q Query) Pages(l Limits) int {
	if q.Limit == 0 {
		return 1
	}
	return l.Depth / q.Limit
}

// On is the query about one of its pages.
func (q Query) On(page int) Query {
	q.Page = page
	return q
}

// written is a Query as JSON, names in order.
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

// Key is the query as JSON, the same for the same query: a search is known by
// it, and an answer to a page is by that of On(page).
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
		panic("search: " + err.Error()) // texts, numbers and truths can be written
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

var errNoKey = errors.New("no key of a search")

// ParseKey reads what Key wrote.
func ParseKey(key string) (Query, error) {
	var w written
	d := json.NewDecoder(bytes.NewReader([]byte(key)))
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return Query{}, errNoKey // the decoder's words may repeat the key
	}
	start, startErr := time.Parse(DayFormat, w.DateStart)
	end, endErr := time.Parse(DayFormat, w.DateEnd)
	if startErr != nil || endErr != nil {
		return Query{}, fmt.Errorf("%w: its days are none", errNoKey)
	}
	q := Query{
		Keywords: w.Keywords, Cities: w.Cities, States: w.States, Zips: w.Zips,
		JobTitleInclusions: w.JobTitleInclusions, JobTitleExclusions: w.JobTitleExclusions,
		LeadType: w.LeadType, Start: start, End: end, HEMs: w.LimitOfHEMs, Limit: w.Limit, Page: w.Page,
		Deanonymize: w.Deanonymize, SuperEnrichment: w.SuperEnrichment,
	}
	if q.Key() != key {
		return Query{}, fmt.Errorf("%w: another spelling", errNoKey)
	}
	return q, nil
}
