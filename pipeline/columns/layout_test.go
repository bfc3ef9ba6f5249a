package columns_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/email"
)

// The blocks of columns, a line a column. Columns are only ever
// added, each at the end of its block: a change of any other line breaks the
// tables people have loaded.
const (
	fixedBlock = `
		source STRING required
		source_row INT64 required
		key STRING
		outcome STRING required
		reason STRING
		resolution_id STRING
		resolved_at TIMESTAMP(MICROS, UTC)
		answered_by STRING
		credits INT32`
	hemBlock = `
		hem_md5 STRING
		hem_sha1 STRING
		hem_sha256 STRING`
	hashedEmails = `
		hashed_emails LIST<STRUCT<email STRING, type STRING>>`
	networkURL = `
		network_url STRING`
	phoneBlock = `
		phone STRING
		phone_raw STRING
		phone_region STRING
		phone_type STRING
		phone_valid BOOLEAN`
	companyBlock = `
		company_name STRING
		company_domain STRING
		company_website_url STRING
		company_network_url STRING
		company_industry STRING
		company_revenue STRING
		company_revenue_min INT64
		company_revenue_max INT64
		company_employee_count STRING
		company_employee_min INT64
		company_employee_max INT64
		company_year_founded INT32
		company_street STRING
		company_zip_code STRING
		company_city STRING
		company_state STRING
		company_about STRING`
	contactBlock = `
		first_name STRING
		last_name STRING
		full_name STRING
		headline STRING
		job_title STRING
		seniority STRING
		department STRING
		email STRING
		emails LIST<STRUCT<email STRING, type STRING>>
		phones LIST<STRUCT<phone STRING, type STRING>>
		network_url STRING
		street STRING
		zip_code STRING
		city STRING
		state STRING
		last_seen_at TIMESTAMP(MICROS, UTC)`
	findBlock = `
		search_row INT64
		page INT32
		lead_id STRING
		matched_keywords LIST<STRING>
		searched_on DATE`
	countBlock = `
		count INT64
		hashed_email_count INT64
		is_approximate BOOLEAN`
	leadBlock = contactBlock + phoneBlock + hemBlock + companyBlock
)

func TestSchema(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings columns.Settings
		want     string
	}{
		{"email_to_hem", columns.Settings{Operation: resolution.EmailToHEM}, fixedBlock + hemBlock + networkURL},
		{
			"email_to_hem with profiles",
			columns.Settings{Operation: resolution.EmailToHEM, HEMProfiles: []email.Profile{email.Google, email.UID2}},
			fixedBlock + hemBlock + "\nhem_uid2_sha256_base64 STRING\nhem_google_sha256 STRING" + networkURL,
		},
		{
			"email_to_hem of some types",
			columns.Settings{Operation: resolution.EmailToHEM, HEMTypes: []string{"sha256", "md5"}},
			fixedBlock + "\nhem_md5 STRING\nhem_sha256 STRING" + networkURL,
		},
		{
			"email_to_hem of a service",
			columns.Settings{Operation: resolution.EmailToHEM, HEMProfiles: []email.Profile{email.UID2}, Remote: true},
			fixedBlock + hemBlock + "\nhem_uid2_sha256_base64 STRING" + networkURL + hashedEmails,
		},
		{"network_to_hem", columns.Settings{Operation: resolution.NetworkToHEM}, fixedBlock + hemBlock + hashedEmails + networkURL},
		{"network_to_phone", columns.Settings{Operation: resolution.NetworkToPhone}, fixedBlock + phoneBlock},
		{"ip_to_company", columns.Settings{Operation: resolution.IPToCompany}, fixedBlock + "\nip_class STRING\norg_type STRING" + companyBlock},
		{"enrichment", columns.Settings{Operation: resolution.Enrichment}, fixedBlock + leadBlock},
		{"every hash", columns.Settings{Operation: resolution.Enrichment, Select: []string{"all", "hashed_emails"}}, fixedBlock + leadBlock + hashedEmails},
		{"deanonymization", columns.Settings{Operation: resolution.Deanonymization}, fixedBlock + leadBlock + "\nmatch_level STRING\nconfidence DOUBLE"},
		{"enrichment of a service", columns.Settings{Operation: resolution.Enrichment, Remote: true}, fixedBlock + leadBlock},
		{"keyword_to_lead", columns.Settings{Operation: resolution.KeywordToLead}, fixedBlock + findBlock + leadBlock + "\nlead_type STRING"},
		{
			"keyword_to_lead of some hash types",
			columns.Settings{Operation: resolution.KeywordToLead, HEMTypes: []string{"sha256"}},
			fixedBlock + findBlock + contactBlock + phoneBlock + "\nhem_sha256 STRING" + companyBlock + "\nlead_type STRING",
		},
		{"keyword_to_lead_count", columns.Settings{Operation: resolution.KeywordToLeadCount}, fixedBlock + countBlock},
		{
			"kept columns first",
			columns.Settings{Operation: resolution.NetworkToPhone, Kept: []string{"id", "network_url"}, Identifier: "network_url"},
			"id STRING\nnetwork_url STRING" + fixedBlock + phoneBlock,
		},
		{
			"identifier dropped",
			columns.Settings{Operation: resolution.NetworkToPhone, Kept: []string{"id", "network_url"}, Identifier: "network_url", DropIdentifier: true},
			"id STRING" + strings.Replace(fixedBlock, "key STRING", "", 1) + phoneBlock,
		},
		{
			"searches dropped",
			columns.Settings{Operation: resolution.KeywordToLead, Kept: []string{"keywords", "page"}, Identifier: "keywords", DropIdentifier: true},
			"in_page STRING" + strings.Replace(fixedBlock, "key STRING", "", 1) +
				strings.Replace(findBlock, "matched_keywords LIST<STRING>", "", 1) + leadBlock + "\nlead_type STRING",
		},
	} {
		l, err := columns.NewLayout(c.settings)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, column := range l.Columns() {
			line := column.Name + " " + column.Type
			if !column.Nullable {
				line += " required"
			}
			got = append(got, line)
		}
		if want := lines(c.want); !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// Statistics are values in clear text, so no column has them that holds what
// somebody is called, reached by, or was looked up under.
func TestStatisticsAreNotPersonal(t *testing.T) {
	allowed := []string{
		"source_row", "resolved_at", "credits", "confidence", "company_revenue_min", "company_revenue_max",
		"company_employee_min", "company_employee_max", "company_year_founded",
		"search_row", "page", "count", "hashed_email_count",
	}
	for _, op := range append(slices.Clone(resolution.SingleRecord), resolution.KeywordToLead, resolution.KeywordToLeadCount) {
		l, err := columns.NewLayout(columns.Settings{Operation: op, Kept: []string{"id"}, Remote: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range l.Columns() {
			if c.Statistics && !slices.Contains(allowed, c.Name) {
				t.Errorf("%s: %s has statistics", op, c.Name)
			}
		}
	}
}

func TestKeptNames(t *testing.T) {
	for _, c := range []struct {
		kept []string
		drop bool
		want string // of the kept columns in the output; "" is refused
	}{
		{[]string{"id", "email"}, false, "id email"},
		{[]string{"email", "key"}, false, "email in_key"},
		{[]string{"email", "KEY", "Source"}, false, "email in_KEY in_Source"},
		{[]string{"email", "hem_md5", "network_url"}, false, "email in_hem_md5 in_network_url"},
		{[]string{"email", "phone", "in_id"}, false, "email phone in_id"},
		{[]string{"email", "in_key", "key"}, false, ""},
		{[]string{"key", "IN_KEY", "email"}, false, ""},
		{[]string{"email", "id", "ID"}, false, ""},
		{[]string{"email", "id", "id"}, false, ""},
		{[]string{"Straße", "email", "STRASSE"}, false, "Straße email STRASSE"},
		{[]string{"id", "email"}, true, "id"},
		{[]string{"email"}, true, " "},
		{[]string{"email", "key"}, true, "in_key"}, // a name does not depend on what is dropped
	} {
		l, err := columns.NewLayout(columns.Settings{Operation: resolution.EmailToHEM, Kept: c.kept, Identifier: "email", DropIdentifier: c.drop})
		if err != nil {
			if c.want != "" {
				t.Errorf("%q: %v", c.kept, err)
			}
			continue
		}
		if c.want == "" {
			t.Errorf("%q: not refused", c.kept)
			continue
		}
		var got []string
		for _, column := range l.Columns() {
			if column.Name == "source" {
				break
			}
			got = append(got, column.Name)
		}
		if strings.Join(got, " ") != strings.TrimSpace(c.want) {
			t.Errorf("%q, drop %v: %q, want %q", c.kept, c.drop, got, c.want)
		}
	}
}

func TestRenamedColumns(t *testing.T) {
	type renames = []columns.Rename
	for _, c := range []struct {
		kept    []string
		snake   bool
		renames renames
		want    string // names of the kept columns, or the error
	}{
		{[]string{"Record ID", "email"}, false, nil, "Record ID, email"},
		{[]string{"Record ID", "email", "Prénom", "???"}, true, nil, "record_id, email, prenom, column_4"},
		{[]string{"Record ID", "email"}, false, renames{{"Record ID", "crm_id"}}, "crm_id, email"},
		{[]string{"Record ID", "email"}, true, renames{{"Record ID", "CRM_Id"}}, "CRM_Id, email"},
		{[]string{"Record ID", "email"}, true, renames{{"record_id", "crm_id"}}, "crm_id, email"},
		{[]string{"Record ID", "email"}, false, renames{{"RECORD id", "crm_id"}}, "crm_id, email"},
		{[]string{"Record ID", "record_id"}, true, renames{{"record_id", "other"}}, "record_id, other"},
		{[]string{"a", "b", "email"}, false, renames{{"a", "b"}, {"b", "a"}}, "b, a, email"},
		{[]string{"Source", "email"}, true, nil, "in_source, email"},
		{[]string{"Network URL", "email"}, true, nil, "in_network_url, email"},
		{[]string{"source", "email"}, false, renames{{"source", "crm"}}, "crm, email"},
		{[]string{"source", "email"}, false, renames{{"in_source", "crm"}}, "crm, email"},
		{[]string{"key", "email"}, false, renames{{"key", "id"}}, "id, email"},

		{[]string{"Record ID", "record-id", "email"}, true, nil, `input columns "Record ID" and "record-id" would both be called "record_id" in the output; choose with --select, or name one with --rename 'record-id=NEW'`},
		{[]string{"名", "column_1", "email"}, true, nil, `input columns "名" and "column_1" would both be called "column_1" in the output`},
		{[]string{"Key", "in_key", "email"}, true, nil, `input columns "Key" and "in_key" would both be called "in_key" in the output`},
		{[]string{"id", "email"}, false, renames{{"id", "Email"}}, `input columns "id" and "email" would both be called "email" in the output`},
		{[]string{"a", "b", "email"}, false, renames{{"a", "x"}, {"b", "X"}}, `input columns "a" and "b" would both be called "X" in the output`},
		{[]string{"id", "email"}, false, renames{{"id", "KEY"}}, `input column "id" would be called "KEY" in the output, as a column that is not from the input`},
		{[]string{"id", "email"}, false, renames{{"id", "dt"}}, `input column "id" would be called "dt" in the output, as a column that is not from the input`},
		{[]string{"id", "email"}, false, renames{{"id", "a"}, {"ID", "b"}}, `cannot rename column "id" twice`},
		{[]string{"id", "email"}, false, renames{{"id", "a b"}}, `cannot rename column "id" to "a b": a name that every warehouse takes`},
		{[]string{"id", "email"}, false, renames{{"id", ""}}, `cannot rename column "id" to ""`},
		{[]string{"id", "email"}, false, renames{{"id", strings.Repeat("a", 128)}}, `cannot rename column "id" to "aaa`},
		{[]string{"Record ID", "email"}, false, renames{{"RecordID", "a"}}, `cannot rename column "RecordID": it is not among the kept input columns; did you mean "Record ID"?`},
		{[]string{"id", "email"}, false, renames{{"outcome", "a"}}, `cannot rename column "outcome": it is not from the input, and its name is fixed`},
		{[]string{"id", "email"}, false, renames{{"dt", "a"}}, `cannot rename column "dt": it is not from the input`},
		{[]string{"id", "e-mail"}, false, renames{{"E-Mail", "a"}}, `cannot rename column "E-Mail": --drop-identifier leaves it out`},
	} {
		s := columns.Settings{Operation: resolution.EmailToHEM, Kept: c.kept, Identifier: "email", Snake: c.snake, Renames: c.renames, Partitions: []string{"dt"}}
		if strings.Contains(c.want, "--drop-identifier") {
			s.Identifier, s.DropIdentifier = "e-mail", true
		}
		l, err := columns.NewLayout(s)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			var names []string
			for _, column := range l.Columns()[:len(c.kept)] {
				names = append(names, column.Name)
				if from := l.Inputs()[column.Name]; !slices.Contains(c.kept, from) || !strings.Contains(column.Meaning.Text, "input's column of that name") && !strings.Contains(column.Meaning.Text, "input's column "+from) {
					t.Errorf("%q: %s is from %q: %s", c.kept, column.Name, from, column.Meaning.Text)
				}
			}
			got = strings.Join(names, ", ")
		}
		if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%q, snake %v, %v: %s\nwant %s", c.kept, c.snake, c.renames, got, c.want)
		}
	}
}
