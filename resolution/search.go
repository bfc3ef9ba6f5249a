package resolution

import (
	"context"
	"errors"
	"time"
)

// KeywordSearch selects searches that people made. One value of each field must
// match, and all fields must match. A zero field matches every search.
type KeywordSearch struct {
	// Keywords are matched as phrases: a search is found when it has the words
	// of one of them, in their order and side by side, without regard to case.
	Keywords []string
	// Cities, States (two letters) and Zips (a ZIP or ZIP+4) are where the
	// search was made from, compared without regard to case.
	Cities, States, Zips []string
	// LeadType is b2b or b2c.
	LeadType string
	// Start and End are the first and the last day, both included: midnight UTC.
	Start, End time.Time
	// JobTitleInclusions and JobTitleExclusions are parts of job titles,
	// without regard to case. An exclusion has precedence, and a search
	// without a job title matches no inclusion.
	JobTitleInclusions, JobTitleExclusions []string
	// Edition is the state of the data to search in, as Searcher.Edition gave
	// it; empty is the present one.
	Edition string
}

// SearchPage selects a page of the leads of a search, and the fields of each lead.
type SearchPage struct {
	Number int // from 1
	Limit  int // leads on a page
	// HEMs bounds the hashed emails of a lead.
	HEMs int
	// Deanonymize adds who the lead is: names, first email and phone, profile
	// address.
	Deanonymize bool
	// SuperEnrichment adds the company, and with Deanonymize every email and
	// phone.
	SuperEnrichment bool
}

// FoundLead is one person among the results of a keyword search.
type FoundLead struct {
	// LeadID is the same for the same person in every search and edition:
	// lead_ and 32 lower-case hex digits.
	LeadID   string `json:"lead_id"`
	LeadType string `json:"lead_type,omitempty"` // b2b, b2c, empty when unknown
	// MatchedKeywords are those of the request that found the person, in the
	// request's order and spelling.
	MatchedKeywords []string `json:"matched_keywords"`
	// SearchedAt is when the person last made one of the searches, UTC.
	SearchedAt time.Time `json:"searched_at"`
	Lead
}

// SearchResult is one page of leads, the most recent search first, of equals
// by LeadID.
type SearchResult struct {
	// Leads are matches with FieldLeadID, FieldLeadType, Keywords and SearchedAt, and a
	// CompanyList; nil if there are none.
	Leads *Answers
	// Total counts the leads on all pages; 0 if a service does not say.
	Total int64
}

// SearchCount says how many leads a search has.
type SearchCount struct {
	Leads int64
	// HashedEmails counts the hashed emails the leads would be delivered with; -1 if a
	// service does not say.
	HashedEmails int64
	// Approximate says that HashedEmails was estimated from a part of the leads.
	Approximate bool
}

// Searcher answers keyword searches. Its methods are called from many
// goroutines at once. Errors wrap ErrInvalid, ErrUnavailable or ErrNoEdition
// where one of them is true, and never hold what was searched for.
type Searcher interface {
	// Edition names the present state of the data. A search that names it
	// later sees the same leads in the same order, also after the data was
	// replaced, for at least 24 hours.
	Edition() string
	// Search finds one page of leads; a page behind the last is empty.
	Search(ctx context.Context, s KeywordSearch, p SearchPage) (SearchResult, error)
	// Count counts the leads and their hashed emails, at most hems of each.
	Count(ctx context.Context, s KeywordSearch, hems int) (SearchCount, error)
}

// ErrNoEdition says that the data a search named are no longer kept.
var ErrNoEdition = errors.New("edition no longer kept")
