package columns_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
)

// builder makes records of an operation.
func builder(t testing.TB, s columns.Settings) *columns.Builder {
	t.Helper()
	l, err := columns.NewLayout(s)
	if err != nil {
		t.Fatal(err)
	}
	return l.NewBuilder()
}

// emptyBatch is a batch of n rows, all matched, with neither keys nor leads.
func emptyBatch(n int) *columns.Batch {
	b := &columns.Batch{Source: "a.csv"}
	b.Reset(n)
	for i := range n {
		b.Rows = append(b.Rows, int64(i+1))
	}
	return b
}

// leadBatch is a batch of rows that were answered; nil is no match.
func leadBatch(leads ...*resolution.Lead) *columns.Batch {
	b := emptyBatch(len(leads))
	b.Answers = answersOf()
	for i, lead := range leads {
		b.Answers.AddLead(lead)
		b.Keys.Data = fmt.Append(b.Keys.Data, "key ", i)
		b.Keys.End()
		if lead == nil {
			b.Outcomes[i], b.Reasons[i] = outcome.NoMatch, "not_found"
		}
		b.IPClasses, b.Answers.OrgTypes = append(b.IPClasses, "public"), append(b.Answers.OrgTypes, "business")
	}
	inTheUS.CleanPhones(b.Answers)
	return b
}

var inTheUS, _ = columns.NewLayout(columns.Settings{Operation: resolution.Enrichment, DefaultRegion: "US"})

// answersOf are the answers that are leads, with a table of companies.
func answersOf(leads ...*resolution.Lead) *resolution.Answers {
	a := &resolution.Answers{Companies: resolution.CompanyCodes{Table: inTheUS.Companies()}}
	for _, l := range leads {
		a.AddLead(l)
	}
	return a
}

// facts are the columns of each row that are not null.
func facts(t testing.TB, rec arrow.Record) []map[string]any {
	t.Helper()
	data, err := rec.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		maps.DeleteFunc(row, func(_ string, v any) bool { return v == nil })
	}
	return rows
}

// without removes the fixed block.
func without(row map[string]any) map[string]any {
	for _, name := range lines(fixedBlock) {
		var column string
		fmt.Sscan(name, &column)
		delete(row, column)
	}
	return row
}

// requireFacts compares a row with JSON.
func requireFacts(t testing.TB, got map[string]any, want string) {
	t.Helper()
	var wanted map[string]any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatalf("%s: %v", want, err)
	}
	if !reflect.DeepEqual(got, wanted) {
		text, _ := json.Marshal(got)
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

func pointer[T any](v T) *T { return &v }

var (
	fullCompany = &resolution.Company{
		Name: "Sample Bakery", Domain: "https://WWW.Bakery.example/", WebsiteURL: "https://www.bakery.example",
		NetworkURL: "https://network.example/company/sample-bakery", Industry: pointer("Food Production"),
		Revenue: "$1M-$10M", EmployeeCount: "10,001+", YearFounded: pointer(int32(1987)), About: "Bread",
		Address: resolution.Address{Street: "1 Example Street", ZipCode: "94105", City: "San Example", State: "CA"},
	}
	fullLead = &resolution.Lead{
		Contact: resolution.Contact{
			FirstName: "Ada", LastName: "Example", FullName: "Ada Example", Headline: "Baker", JobTitle: "Head Baker",
			Seniority: "manager", Department: "Operations", Email: "ada@bakery.example",
			Emails:     []resolution.ContactEmail{{Email: "ada@bakery.example", Type: "work"}, {Email: "ada@mail.example"}},
			Phones:     []resolution.ContactPhone{{Phone: "+12025550100", Type: "mobile"}},
			Address:    resolution.Address{Street: "100 Sample Street", ZipCode: "02108", City: "San Example", State: "CA"},
			LastSeenAt: pointer(time.Date(2026, 11, 1, 8, 30, 0, 123456789, time.UTC)),
		},
		Phone: "(202) 555-0100",
		HashedEmails: []resolution.HashedEmail{
			{Email: "m1", Type: "md5"}, {Email: "s1", Type: "sha1"}, {Email: "t1", Type: "sha256"},
			{Email: "m2", Type: "md5"}, {Email: "s2", Type: "sha1"},
		},
		NetworkURL: "network.example/in/ada-example", Company: fullCompany, MatchLevel: "person", Confidence: pointer(0.92),
	}
)

const (
	companyFacts = `"company_name": "Sample Bakery", "company_domain": "bakery.example",
		"company_website_url": "https://www.bakery.example", "company_network_url": "network.example/company/sample-bakery",
		"company_industry": "Food Production", "company_revenue": "$1M-$10M", "company_revenue_min": 1000000, "company_revenue_max": 10000000,
		"company_employee_count": "10,001+", "company_employee_min": 10001, "company_year_founded": 1987,
		"company_street": "1 Example Street", "company_zip_code": "94105", "company_city": "San Example", "company_state": "CA", "company_about": "Bread"`
	hemFacts    = `"hem_md5": "m1", "hem_sha1": "s1", "hem_sha256": "t1"`
	hashedFacts = `"hashed_emails": [{"email": "m1", "type": "md5"}, {"email": "s1", "type": "sha1"}, {"email": "t1", "type": "sha256"},
		{"email": "m2", "type": "md5"}, {"email": "s2", "type": "sha1"}]`
	phoneFacts   = `"phone": "+12025550100", "phone_raw": "(202) 555-0100", "phone_region": "US", "phone_type": "fixed_line_or_mobile", "phone_valid": true`
	networkFacts = `"network_url": "network.example/in/ada-example"`
	contactFacts = `"first_name": "Ada", "last_name": "Example", "full_name": "Ada Example", "headline": "Baker", "job_title": "Head Baker",
		"seniority": "manager", "department": "Operations", "email": "ada@bakery.example",
		"emails": [{"email": "ada@bakery.example", "type": "work"}, {"email": "ada@mail.example", "type": null}],
		"phones": [{"phone": "+12025550100", "type": "mobile"}],
		"street": "100 Sample Street", "zip_code": "02108", "city": "San Example", "state": "CA", "last_seen_at": "2026-11-01 08:30:00.123456Z"`
	leadFacts = contactFacts + "," + networkFacts + "," + phoneFacts + "," + hemFacts + "," + companyFacts
)

func TestBlocksFromLeads(t *testing.T) {
	for _, c := range []struct {
		name string
		op   resolution.Operation
		lead *resolution.Lead
		want string
	}{
		{"network_to_hem", resolution.NetworkToHEM, fullLead, hemFacts + "," + hashedFacts + "," + networkFacts},
		{"network_to_phone", resolution.NetworkToPhone, fullLead, phoneFacts},
		{"ip_to_company", resolution.IPToCompany, fullLead, `"ip_class": "public", "org_type": "business",` + companyFacts},
		{"enrichment", resolution.Enrichment, fullLead, leadFacts},
		{"every hash", resolution.Enrichment, fullLead, leadFacts + "," + hashedFacts},
		{"deanonymization", resolution.Deanonymization, fullLead, leadFacts + `, "match_level": "person", "confidence": 0.92`},
		{"nothing known", resolution.Deanonymization, &resolution.Lead{}, ``},
		{"no match", resolution.Deanonymization, nil, ``},
		{"no company", resolution.IPToCompany, &resolution.Lead{}, `"ip_class": "public", "org_type": "business"`},
		{"one hash", resolution.NetworkToHEM, &resolution.Lead{HashedEmails: []resolution.HashedEmail{{Email: "s", Type: "sha1"}}}, `"hem_sha1": "s", "hashed_emails": [{"email": "s", "type": "sha1"}]`},
		{"E.164 phone", resolution.NetworkToPhone, &resolution.Lead{Phone: "+442071838750"}, `"phone": "+442071838750", "phone_raw": "+442071838750", "phone_region": "GB", "phone_type": "fixed_line", "phone_valid": true`},
		{"not a phone number", resolution.NetworkToPhone, &resolution.Lead{Phone: "ask reception"}, `"phone_raw": "ask reception"`},
		{"phone through a spreadsheet", resolution.NetworkToPhone, &resolution.Lead{Phone: "6.50555E+09"}, `"phone_raw": "6.50555E+09"`},
		{"ranges that say nothing", resolution.IPToCompany, &resolution.Lead{Company: &resolution.Company{Revenue: "unknown", EmployeeCount: "Nov-50"}}, `"ip_class": "public", "org_type": "business", "company_revenue": "unknown", "company_employee_count": "Nov-50"`},
		{"confidence of nothing", resolution.Deanonymization, &resolution.Lead{MatchLevel: "company", Confidence: pointer(0.0)}, `"match_level": "company", "confidence": 0`},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Among others, so that a value in the wrong row shows.
			batch := leadBatch(nil, c.lead, nil)
			settings := columns.Settings{Operation: c.op}
			if strings.Contains(c.want, "hashed_emails") {
				settings.Select = []string{"all", "hashed_emails"}
			}
			rec := builder(t, settings).Record(batch)
			requireFacts(t, without(facts(t, rec)[1]), "{"+c.want+"}")
		})
	}
}

func TestFixedBlock(t *testing.T) {
	kept := array.NewStringBuilder(memory.DefaultAllocator)
	for _, v := range []string{"x", "", "z"} {
		kept.Append(v)
	}
	kept.AppendNull()
	b := leadBatch(&resolution.Lead{}, nil, nil, nil)
	b.Source, b.Rows = "in/b.csv", []int64{7, 8, 10, 11}
	b.Kept = []*array.String{kept.NewStringArray()}
	for i, o := range []outcome.Outcome{outcome.Rejected, outcome.Failed} {
		b.Outcomes[2+i], b.Reasons[2+i] = o, fmt.Sprint("reason ", i)
	}
	rec := builder(t, columns.Settings{Operation: resolution.NetworkToPhone, Kept: []string{"id"}}).Record(b)
	for i, want := range []string{
		`{"id": "x", "source": "in/b.csv", "source_row": 7, "key": "key 0", "outcome": "matched", "answered_by": "embedded", "credits": 0}`,
		`{"id": "", "source": "in/b.csv", "source_row": 8, "key": "key 1", "outcome": "no_match", "reason": "not_found", "answered_by": "embedded", "credits": 0}`,
		`{"id": "z", "source": "in/b.csv", "source_row": 10, "outcome": "rejected", "reason": "reason 0"}`,
		`{"source": "in/b.csv", "source_row": 11, "key": "key 3", "outcome": "failed", "reason": "reason 1"}`,
	} {
		requireFacts(t, facts(t, rec)[i], want)
	}
}

// What is known of a service's answers, row by row.
func TestReceipts(t *testing.T) {
	at := time.Date(2026, 11, 20, 9, 18, 0, 123456789, time.FixedZone("", 3600))
	const heard = `"resolved_at": "2026-11-20 08:18:00.123456Z", "answered_by": "service"`
	for _, c := range []struct {
		name    string
		outcome outcome.Outcome
		receipt outcome.Receipt
		want    string
	}{
		{"matched", outcome.Matched, outcome.Receipt{ResolutionID: "res_1", ResolvedAt: at, Credits: 3, Priced: true}, `"resolution_id": "res_1", "credits": 3,` + heard},
		{"without an id", outcome.Matched, outcome.Receipt{ResolvedAt: at, Credits: 1, Priced: true}, `"credits": 1,` + heard},
		{"free", outcome.NoMatch, outcome.Receipt{ResolutionID: "res_2", ResolvedAt: at, Priced: true}, `"resolution_id": "res_2", "credits": 0,` + heard},
		{"without a price", outcome.Matched, outcome.Receipt{ResolutionID: "res_3", ResolvedAt: at, Credits: 7}, `"resolution_id": "res_3",` + heard},
		{"failed with an answer", outcome.Failed, outcome.Receipt{ResolutionID: "res_4", ResolvedAt: at, Priced: true}, `"resolution_id": "res_4", "credits": 0,` + heard},
		{"not asked", outcome.NoMatch, outcome.Receipt{}, ``},
		{"not stored", outcome.Skipped, outcome.Receipt{}, ``},
		{"begun and not answered", outcome.Failed, outcome.Receipt{ResolutionID: "res_5", Credits: 3, Priced: true}, `"resolution_id": "res_5"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			batch := leadBatch(nil, &resolution.Lead{}, nil)
			batch.Outcomes[1] = c.outcome
			batch.Receipts = []outcome.Receipt{{ResolvedAt: at}, c.receipt, {ResolutionID: "last"}}
			row := facts(t, builder(t, columns.Settings{Operation: resolution.NetworkToPhone, Remote: true}).Record(batch))[1]
			for _, other := range []string{"source", "source_row", "key", "outcome"} {
				delete(row, other)
			}
			requireFacts(t, row, "{"+c.want+"}")
		})
	}
}

func TestOutcomeWords(t *testing.T) {
	for o, want := range map[outcome.Outcome]string{
		outcome.Matched: "matched", outcome.NoMatch: "no_match", outcome.Rejected: "rejected",
		outcome.Failed: "failed", outcome.Suppressed: "suppressed", outcome.Skipped: "skipped",
	} {
		if o.String() != want {
			t.Errorf("%d: %s, want %s", o, o, want)
		}
	}
}
