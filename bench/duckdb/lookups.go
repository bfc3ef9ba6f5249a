package main

import (
	"fmt"
	"strings"
)

// imports read a file of reference data and sort it by its look-up key.
// Addresses become numbers, and ranges their two bounds, so that look-ups need
// not convert them.
var imports = map[string]string{
	"people": `SELECT * FROM $csv ORDER BY network_url`,
	"companies": `SELECT *,
		CASE revenue WHEN '$1M-$10M' THEN 1000000 WHEN '$10M-$50M' THEN 10000000 WHEN '$50M-$100M' THEN 50000000 ELSE 1000000001 END AS revenue_min,
		CASE revenue WHEN '$1M-$10M' THEN 10000000 WHEN '$10M-$50M' THEN 50000000 WHEN '$50M-$100M' THEN 100000000 END AS revenue_max,
		split_part(replace(employee_count, '+', '-'), '-', 1)::BIGINT AS employee_min,
		nullif(split_part(replace(employee_count, '+', '-'), '-', 2), '')::BIGINT AS employee_max
		FROM $csv ORDER BY domain`,
	"ip-ranges": `SELECT first, first + (1::BIGINT << (32 - split_part(cidr, '/', 2)::INTEGER)) - 1 AS last, company_domain, org_type
		FROM (SELECT *, ` + addressNumber("split_part(cidr, '/', 1)") + ` AS first FROM $csv) ORDER BY first`,
	"visits": `SELECT ` + addressNumber("ip") + ` AS n, network_url, confidence::DOUBLE AS confidence FROM $csv ORDER BY n`,
}

func importStatement(kind, in, out string) (string, error) {
	columns, known := imports[kind]
	if !known {
		return "", fmt.Errorf("no kind %q of reference data", kind)
	}
	csv := "read_csv(" + quote(in) + ", header = true, all_varchar = true)"
	return toParquet(strings.ReplaceAll(columns, "$csv", csv), out), nil
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

// The columns computed from a person p and a company c. leadetl computes types
// and regions of phone numbers; here they are constants.
const (
	contact = `, p.first_name, p.last_name, p.first_name || ' ' || p.last_name AS full_name, p.headline, p.job_title, p.seniority, p.department,
		split_part(p.emails, ';', 1) AS email,
		list_transform(string_split(p.emails, ';'), lambda x: {'email': x, 'type': NULL::VARCHAR}) AS emails,
		list_transform(string_split(p.phones, ';'), lambda x: {'phone': x, 'type': NULL::VARCHAR}) AS phones,
		p.network_url, p.street, p.zip_code, p.city, p.state, p.last_seen_at::TIMESTAMP AS last_seen_at`
	phone = `, p.phones AS phone, p.phones AS phone_raw, CASE WHEN p.phones IS NOT NULL THEN 'US' END AS phone_region,
		CASE WHEN p.phones IS NOT NULL THEN 'fixed_line_or_mobile' END AS phone_type, p.phones IS NOT NULL AS phone_valid`
	hem = `, md5(split_part(p.emails, ';', 1)) AS hem_md5, sha1(split_part(p.emails, ';', 1)) AS hem_sha1, sha256(split_part(p.emails, ';', 1)) AS hem_sha256,
		flatten(list_transform(string_split(p.emails, ';'), lambda x: [{'email': md5(x), 'type': 'md5'}, {'email': sha1(x), 'type': 'sha1'}, {'email': sha256(x), 'type': 'sha256'}])) AS hashed_emails`
	company = `, c.name AS company_name, c.domain AS company_domain, c.website_url AS company_website_url, NULL::VARCHAR AS company_network_url,
		c.industry AS company_industry, c.revenue AS company_revenue, c.revenue_min AS company_revenue_min, c.revenue_max AS company_revenue_max,
		c.employee_count AS company_employee_count, c.employee_min AS company_employee_min, c.employee_max AS company_employee_max,
		c.year_founded::INTEGER AS company_year_founded, NULL::VARCHAR AS company_street, NULL::VARCHAR AS company_zip_code,
		c.city AS company_city, c.state AS company_state, NULL::VARCHAR AS company_about`
)

// lookup is an operation as one SELECT over reference data in Parquet.
type lookup struct {
	identifier      string // column of the input
	columns         string // besides those that every operation has
	joins           string // to the input i
	matched, reason string
	same            string // columns to compare the two programs by
}

// Look-ups by profile, and by address. A range of a provider is not a match.
const (
	byProfile = ` LEFT JOIN $people p ON p.network_url = i.key`
	byRange   = ` ASOF LEFT JOIN $ranges r ON i.n >= r.first`
	ofRange   = `CASE WHEN i.n <= r.last AND r.org_type <> 'isp' THEN r.company_domain END`
	notFound  = `CASE WHEN p.network_url IS NULL THEN 'not_found' END`
	noCompany = `CASE WHEN c.domain IS NOT NULL THEN NULL WHEN i.n <= r.last THEN 'org_type:isp' ELSE 'not_found' END`

	sameCompany = `, company_name, company_domain, company_industry, company_revenue_min, company_revenue_max, company_employee_min, company_year_founded, company_city`
	sameHEM     = `, hem_md5, hem_sha1, hem_sha256, hashed_emails`
	samePerson  = `, first_name, full_name, headline, department, email, emails, phones, network_url, zip_code, last_seen_at::DATE, phone` + sameHEM + sameCompany
)

var lookups = map[string]lookup{
	"network_to_phone": {"url", phone, byProfile, "p.network_url IS NOT NULL", notFound, ", phone"},
	"network_to_hem":   {"url", hem + ", p.network_url", byProfile, "p.network_url IS NOT NULL", notFound, sameHEM},
	"enrichment": {
		"url", contact + phone + hem + company, byProfile + ` LEFT JOIN $companies c ON c.domain = p.company_domain`,
		"p.network_url IS NOT NULL", notFound, samePerson,
	},
	"ip_to_company": {
		"ip", `, 'public' AS ip_class, CASE WHEN i.n <= r.last THEN r.org_type END AS org_type` + company,
		byRange + ` LEFT JOIN $companies c ON c.domain = ` + ofRange, "c.domain IS NOT NULL", noCompany, ", org_type" + sameCompany,
	},
	"deanonymization": {
		"ip", contact + phone + hem + company + `,
		CASE WHEN v.n IS NOT NULL THEN 'person' WHEN c.domain IS NOT NULL THEN 'company' END AS match_level,
		CASE WHEN v.n IS NOT NULL THEN v.confidence WHEN c.domain IS NOT NULL THEN 0.7 END AS confidence`,
		` LEFT JOIN $visits v ON v.n = i.n LEFT JOIN $people p ON p.network_url = v.network_url` + byRange +
			` LEFT JOIN $companies c ON c.domain = CASE WHEN v.n IS NOT NULL THEN p.company_domain ELSE ` + ofRange + ` END`,
		"v.n IS NOT NULL OR c.domain IS NOT NULL", `CASE WHEN v.n IS NULL THEN ` + noCompany + ` END`, ", match_level, confidence" + samePerson,
	},
}

// lookupStatement runs an operation on the Parquet files that importStatement
// wrote into a folder. It omits source_row, which costs DuckDB a window over all
// rows.
func lookupStatement(operation, in, dir, out string) (string, error) {
	l, known := lookups[operation]
	if !known {
		return "", fmt.Errorf("no operation %q", operation)
	}
	key := "replace(lower(url), 'https://', '') AS key"
	if l.identifier == "ip" {
		key = "ip AS key, " + addressNumber("ip") + " AS n"
	}
	file := func(kind string) string { return "read_parquet(" + quote(dir+"/"+kind+".parquet") + ")" }
	return toParquet(strings.NewReplacer("$people", file("people"), "$companies", file("companies"), "$ranges", file("ip-ranges"), "$visits", file("visits")).Replace(
		"SELECT id, "+l.identifier+", "+quote(in)+" AS source, key, CASE WHEN "+l.matched+" THEN 'matched' ELSE 'no_match' END AS outcome, "+l.reason+` AS reason,
		NULL::VARCHAR AS resolution_id, NULL::TIMESTAMPTZ AS resolved_at, 'embedded' AS answered_by, 0::INTEGER AS credits`+l.columns+`
		FROM (SELECT *, `+key+" FROM read_csv("+quote(in)+", header = true, columns = {'id': 'VARCHAR', '"+l.identifier+"': 'VARCHAR'})) i"+l.joins), out), nil
}
