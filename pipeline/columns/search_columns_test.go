package columns_test

import (
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
)

func TestFinds(t *testing.T) {
	berlin := time.FixedZone("", 3600)
	for _, c := range []struct {
		name    string
		outcome outcome.Outcome
		find    columns.Find
		lead    *resolution.FoundLead
		want    string
	}{
		{
			"everything", outcome.Matched,
			columns.Find{SearchRow: 7, Page: 3},
			&resolution.FoundLead{LeadID: "lead_1", LeadType: "b2b", MatchedKeywords: []string{"crm", ""}, SearchedAt: time.Date(2026, 11, 1, 23, 59, 59, 0, time.UTC), Lead: *fullLead},
			`"search_row": 7, "page": 3, "lead_id": "lead_1", "matched_keywords": ["crm", ""], "searched_on": "2026-11-01", "lead_type": "b2b",` + leadFacts,
		},
		{
			"nobody's name", outcome.Matched,
			columns.Find{SearchRow: 7, Page: 1},
			&resolution.FoundLead{LeadID: "lead_1", MatchedKeywords: []string{"crm"}, SearchedAt: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)},
			`"search_row": 7, "page": 1, "lead_id": "lead_1", "matched_keywords": ["crm"], "searched_on": "2026-11-01"`,
		},
		{"the day is UTC's", outcome.Matched, columns.Find{SearchRow: 1}, &resolution.FoundLead{SearchedAt: time.Date(2026, 11, 2, 0, 30, 0, 0, berlin)}, `"search_row": 1, "searched_on": "2026-11-01"`},
		{"a day before 1970", outcome.Matched, columns.Find{SearchRow: 1}, &resolution.FoundLead{SearchedAt: time.Date(1969, 12, 31, 12, 0, 0, 0, time.UTC)}, `"search_row": 1, "searched_on": "1969-12-31"`},
		{"no leads", outcome.NoMatch, columns.Find{SearchRow: 8, Page: 1}, nil, `"search_row": 8, "page": 1`},
		{"rejected", outcome.Rejected, columns.Find{SearchRow: 9}, nil, `"search_row": 9`},
		{"nothing", outcome.Failed, columns.Find{}, nil, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			other := columns.Find{SearchRow: 99, Page: 99}
			batch := leadBatch(nil, nil, nil)
			batch.Answers = answersOf()
			for _, l := range []*resolution.FoundLead{otherFound, c.lead, otherFound} {
				if l == nil {
					batch.Answers.AddMiss("")
				} else {
					batch.Answers.AddFound(l)
				}
			}
			inTheUS.CleanPhones(batch.Answers)
			batch.Outcomes[1] = c.outcome
			batch.Finds = []columns.Find{other, c.find, other}
			rec := builder(t, columns.Settings{Operation: resolution.KeywordToLead, DefaultRegion: "US"}).Record(batch)
			requireFacts(t, without(facts(t, rec)[1]), "{"+c.want+"}")
		})
	}
}

var otherFound = &resolution.FoundLead{LeadID: "lead_x", LeadType: "b2c", MatchedKeywords: []string{"x", "y"}, SearchedAt: time.Unix(0, 0), Lead: *fullLead}

func TestCounts(t *testing.T) {
	batch := leadBatch(nil, nil, nil, nil)
	batch.Answers = nil
	batch.Counts = []*resolution.SearchCount{{Leads: 1 << 40, HashedEmails: 3 << 40}, nil, {}, {Leads: 5, HashedEmails: 70, Approximate: true}}
	rec := builder(t, columns.Settings{Operation: resolution.KeywordToLeadCount}).Record(batch)
	for i, want := range []string{
		`{"count": 1099511627776, "hashed_email_count": 3298534883328, "is_approximate": false}`,
		`{}`,
		`{"count": 0, "hashed_email_count": 0, "is_approximate": false}`,
		`{"count": 5, "hashed_email_count": 70, "is_approximate": true}`,
	} {
		requireFacts(t, without(facts(t, rec)[i]), want)
	}
}
