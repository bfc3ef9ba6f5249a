package main

import (
	"fmt"
	"strings"
)

// The kinds of reference data, each as a SELECT of a file. Addresses become numbers, and
// ranges their two bounds, so that look-ups need not convert them.
var kinds = map[string]string{
	"people": `SELECT * REPLACE (string_split(emails, ';') AS emails, string_split(phones, ';') AS phones, last_seen_at::TIMESTAMPTZ AS last_seen_at)
		FROM $csv`,
	"companies": `SELECT *,
		CASE revenue WHEN '$1M-$10M' THEN 1000000 WHEN '$10M-$50M' THEN 10000000 WHEN '$50M-$100M' THEN 50000000 WHEN '$100M-$500M' THEN 100000000
			WHEN '$500M-$1B' THEN 500000000 WHEN 'over $1B' THEN 1000000001 END AS revenue_min,
		CASE revenue WHEN '$1M-$10M' THEN 10000000 WHEN '$10M-$50M' THEN 50000000 WHEN '$50M-$100M' THEN 100000000 WHEN '$100M-$500M' THEN 500000000
			WHEN '$500M-$1B' THEN 1000000000 END AS revenue_max,
		split_part(replace(employee_count, '+', '-'), '-', 1)::BIGINT AS employee_min,
		nullif(split_part(replace(employee_count, '+', '-'), '-', 2), '')::BIGINT AS employee_max
		FROM $csv`,
	"ip-ranges": `SELECT first, first + (1::BIGINT << (32 - split_part(cidr, '/', 2)::INTEGER)) - 1 AS last, company_domain, org_type
		FROM (SELECT *, ` + addressNumber("split_part(cidr, '/', 1)") + ` AS first FROM $csv)`,
	"visits": `SELECT ` + addressNumber("ip") + ` AS n, network_url, confidence::DOUBLE AS confidence FROM $csv`,
}

// sortedBy is what tables of reference data are sorted by: the key of look-ups.
var sortedBy = map[string]string{"people": "network_url", "companies": "domain", "ip-ranges": "first", "visits": "n"}

// importStatement makes a table of a file of reference data, sorted.
func importStatement(kind, in string) (string, error) {
	if kinds[kind] == "" {
		return "", fmt.Errorf("no kind %q of reference data", kind)
	}
	from := fromCSV(kind, in)
	if kind == "companies" { // the first data of the benchmarks have fewer columns
		from += " UNION ALL BY NAME SELECT NULL::VARCHAR AS network_url, NULL::VARCHAR AS street, NULL::VARCHAR AS zip_code, NULL::VARCHAR AS about WHERE false"
	}
	return "CREATE TABLE " + table(kind) + " AS " + from + " ORDER BY " + sortedBy[kind], nil
}

func table(kind string) string { return strings.ReplaceAll(kind, "-", "_") }

func fromCSV(kind, file string) string {
	return strings.ReplaceAll(kinds[kind], "$csv", "read_csv("+quote(file)+", header = true, all_varchar = true)")
}

func toParquet(query, out string) string {
	return "COPY (" + query + ") TO " + quote(out) + " (FORMAT parquet, COMPRESSION snappy)"
}

// addressNumber is an IPv4 address as a number.
func addressNumber(ip string) string {
	var parts []string
	for i := range 4 {
		parts = append(parts, fmt.Sprintf("(split_part(%s, '.', %d)::BIGINT << %d)", ip, i+1, 24-8*i))
	}
	return strings.Join(parts, " + ")
}

// profileKey is the address of a profile without scheme, www, country, capitals and query.
const profileKey = `'linkedin.com/in/' || split_part(split_part(lower(url), '/in/', 2), '?', 1)`

// The columns computed from a person p and a company c. leadetl computes types
// and regions of phone numbers; here they are constants.
const (
	contact = `, p.first_name, p.last_name, p.first_name || ' ' || p.last_name AS full_name, p.headline, p.job_title, p.seniority, p.department,
		p.emails[1] AS email,
		list_transform(p.emails, lambda x: {'email': x, 'type': NULL::VARCHAR}) AS emails,
		list_transform(p.phones, lambda x: {'phone': x, 'type': NULL::VARCHAR}) AS phones,
		p.network_url, p.street, p.zip_code, p.city, p.state, p.last_seen_at`
	phone = `, p.phones[1] AS phone, p.phones[1] AS phone_raw, CASE WHEN p.phones IS NOT NULL THEN 'US' END AS phone_region,
		CASE WHEN p.phones IS NOT NULL THEN 'fixed_line_or_mobile' END AS phone_type, CASE WHEN p.phones IS NOT NULL THEN true END AS phone_valid`
	hem     = `, md5(p.emails[1]) AS hem_md5, sha1(p.emails[1]) AS hem_sha1, sha256(p.emails[1]) AS hem_sha256`
	hashes  = `, flatten(list_transform(p.emails, lambda x: [{'email': md5(x), 'type': 'md5'}, {'email': sha1(x), 'type': 'sha1'}, {'email': sha256(x), 'type': 'sha256'}])) AS hashed_emails`
	company = `, c.name AS company_name, c.domain AS company_domain, c.website_url AS company_website_url, c.network_url AS company_network_url,
		c.industry AS company_industry, c.revenue AS company_revenue, c.revenue_min AS company_revenue_min, c.revenue_max AS company_revenue_max,
		c.employee_count AS company_employee_count, c.employee_min AS company_employee_min, c.employee_max AS company_employee_max,
		c.year_founded::INTEGER AS company_year_founded, c.street AS company_street, c.zip_code AS company_zip_code,
		c.city AS company_city, c.state AS company_state, c.about AS company_about`
)

// lookup is an operation as one SELECT over reference data.
type lookup struct {
	identifier string // column of the input
	columns    string // besides those that every operation has
	joins      string // to the input i
	reason     string // NULL for a match
}

// Look-ups by profile, and by address. A range of a provider is not a match.
const (
	byProfile = ` LEFT JOIN $people p ON p.network_url = i.key`
	byRange   = ` ASOF LEFT JOIN $ranges r ON i.n >= r.first`
	provider  = `r.org_type IN ('isp', 'hosting', 'cellular')`
	ofRange   = `CASE WHEN i.n <= r.last AND NOT ` + provider + ` THEN r.company_domain END`
	notFound  = `WHEN p.network_url IS NULL THEN 'not_found'`
	noCompany = `WHEN c.domain IS NOT NULL THEN NULL WHEN i.n <= r.last THEN 'org_type:' || r.org_type ELSE 'not_found'`
)

var lookups = map[string]lookup{
	"network_to_phone": {"url", phone, byProfile, notFound + ` WHEN p.phones IS NULL THEN 'no_phone'`},
	"network_to_hem": {
		"url", hem + hashes + `, CASE WHEN p.emails IS NOT NULL THEN p.network_url END AS network_url`, byProfile, notFound + ` WHEN p.emails IS NULL THEN 'no_email'`,
	},
	"enrichment": {"url", contact + phone + hem + company, byProfile + ` LEFT JOIN $companies c ON c.domain = p.company_domain`, notFound},
	"ip_to_company": {
		"ip", `, 'public' AS ip_class, CASE WHEN i.n <= r.last THEN r.org_type END AS org_type` + company,
		byRange + ` LEFT JOIN $companies c ON c.domain = ` + ofRange, noCompany,
	},
	"deanonymization": {
		"ip", contact + phone + hem + company + `,
		CASE WHEN v.n IS NOT NULL THEN 'person' WHEN c.domain IS NOT NULL THEN 'company' END AS match_level,
		CASE WHEN v.n IS NOT NULL THEN v.confidence WHEN c.domain IS NOT NULL THEN 0.7 END AS confidence`,
		` LEFT JOIN $visits v ON v.n = i.n LEFT JOIN $people p ON p.network_url = v.network_url` + byRange +
			` LEFT JOIN $companies c ON c.domain = CASE WHEN v.n IS NOT NULL THEN p.company_domain ELSE ` + ofRange + ` END`,
		`WHEN v.n IS NOT NULL THEN NULL ` + noCompany,
	},
}

// lookupStatement runs an operation on reference data: the tables of the database that is
// attached as reference, or the CSV files of a folder. It writes the input and some columns,
// all if columns is "all". It omits source_row, which costs DuckDB a window over all rows.
func lookupStatement(operation, columns, in, reference, out string) (string, error) {
	l, known := lookups[operation]
	if !known {
		return "", fmt.Errorf("no operation %q", operation)
	}
	key := profileKey + " AS key"
	if l.identifier == "ip" {
		key = "ip AS key, " + addressNumber("ip") + " AS n"
	}
	data := func(kind string) string {
		if isDatabase(reference) {
			return "reference." + table(kind)
		}
		return "(" + fromCSV(kind, reference+"/"+kind+".csv") + ")"
	}
	query := strings.NewReplacer("$people", data("people"), "$companies", data("companies"), "$ranges", data("ip-ranges"), "$visits", data("visits")).Replace(
		"SELECT id, " + l.identifier + ", " + quote(in) + " AS source, key, CASE " + l.reason + ` END AS reason, CASE WHEN reason IS NULL THEN 'matched' ELSE 'no_match' END AS outcome,
		NULL::VARCHAR AS resolution_id, NULL::TIMESTAMPTZ AS resolved_at, 'embedded' AS answered_by, 0::INTEGER AS credits` + l.columns + `
		FROM (SELECT *, ` + key + " FROM read_csv(" + quote(in) + ", header = true, columns = {'id': 'VARCHAR', '" + l.identifier + "': 'VARCHAR'})) i" + l.joins)
	if columns != "all" {
		query = "SELECT id, " + l.identifier + ", " + columns + ", outcome, reason FROM (" + query + ")"
	}
	return toParquet(query+" ORDER BY id::BIGINT", out), nil // joins leave the rows in another order than the list's
}
