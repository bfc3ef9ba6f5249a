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
		lead    *resolution.Lead
		want    string
	}{
		{
			"everything", outcome.Matched,
			columns.Find{SearchRow: 7, Page: 3, LeadID: "lead_1", LeadType: "b2b", MatchedKeywords: []string{"crm", ""}, SearchedOn: time.Date(2026, 11, 1, 23, 59, 59, 0, time.UTC)},
			fullLead,
			`"search_row": 7, "page": 3, "lead_id": "lead_1", "matched_keywords": ["crm", ""], "searched_on": "2026-11-01", "lead_type": "b2b",` + leadFacts,
		},
		{
			"nobody's name", outcome.Matched,
			columns.Find{SearchRow: 7, Page: 1, LeadID: "lead_1", MatchedKeywords: []string{"crm"}, SearchedOn: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)},
			&resolution.Lead{},
			`"search_row": 7, "page": 1, "lead_id": "lead_1", "matched_keywords": ["crm"], "searched_on": "2026-11-01"`,
		},
		{"the day is UTC's", outcome.Matched, columns.Find{SearchRow: 1, SearchedOn: time.Date(2026, 11, 2, 0, 30, 0, 0, berlin)}, nil, `"search_row": 1, "searched_on": "2026-11-01"`},
		{"a day before 1970", outcome.Matched, columns.Find{SearchRow: 1, SearchedOn: time.Date(1969, 12, 31, 12, 0, 0, 0, time.UTC)}, nil, `"search_row": 1, "searched_on": "1969-12-31"`},
		{"no leads", outcome.NoMatch, columns.Find{SearchRow: 8, Page: 1}, nil, `"search_row": 8, "page": 1`},
		{"rejected", outcome.Rejected, columns.Find{SearchRow: 9}, nil, `"search_row": 9`},
		{"nothing", outcome.Failed, columns.Find{}, nil, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			other := columns.Find{SearchRow: 99, Page: 99, LeadID: "lead_x", LeadType: "b2c", MatchedKeywords: []string{"x", "y"}, SearchedOn: time.Unix(0, 0)}
			batch := leadBatch(nil, c.lead, fullLead)
			batch.Outcomes[1] = c.outcome
			batch.Finds = []columns.Find{other, c.find, other}
			rec := builder(t, columns.Settings{Operation: resolution.KeywordToLead, DefaultRegion: "US"}).Record(batch)
			requireFacts(t, without(facts(t, rec)[1]), "{"+c.want+"}")
		})
	}
}

func TestCounts(t *testing.T) {
	batch := leadBatch(nil, nil, nil, nil)
	batch.Leads = nil
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
