package columns

import (
	"cmp"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks/schema"
)

// Every lists all columns that an operation can have with any settings, in order and
// without those kept from the input; of them only the chosen ones in the order of their
// names, unless there are none. own are the columns of a dataset: those that say which of
// several resolvers answered are in the list if they are among own.
func Every(op resolution.Operation, chosen []string, own []schema.Column) []schema.Column {
	settings := Settings{Operation: op, HEMTypes: HEMTypes, HEMProfiles: profiles, Remote: true}
	settings.noteOrigins(own)
	all := slices.Concat(fixedColumns(true), blockColumns(settings), originColumns(settings))
	if chosen != nil {
		var named []schema.Column
		for _, name := range chosen {
			if i := slices.IndexFunc(all, func(c schema.Column) bool { return c.Name == name }); i >= 0 {
				named = append(named, all[i])
			}
		}
		all = named
	}
	return Describe(op, all, 0, nil)
}

// Describe adds their meanings to the columns of a dataset. Those before own are kept from
// the input, whatever their names; renamed are the names there of those that have another one.
func Describe(op resolution.Operation, columns []schema.Column, own int, renamed map[string]string) []schema.Column {
	described := slices.Clone(columns)
	for i := range described {
		described[i].Meaning = keptMeaning
		if i >= own {
			described[i].Meaning = meaningOf(op, described[i].Name)
		} else if input, ok := renamed[described[i].Name]; ok {
			described[i].Meaning.Text = "the input's column " + input + ", as text"
		}
	}
	return described
}

func meaningOf(op resolution.Operation, column string) meaning {
	m, known := meaningsOf[op][column]
	if !known {
		m, known = meanings[column]
	}
	if !known {
		m, known = contactMeanings[column]
	}
	if !known {
		m, known = originMeaning(column)
	}
	if !known {
		return keptMeaning // of the input, or of a later version
	}
	if m.Null = cmp.Or(m.Null, "unknown"); m.Null == always {
		m.Null = ""
	}
	m.From = cmp.Or(m.From, "answer")
	return m
}

type meaning = schema.Meaning

// keptMeaning is the meaning of columns kept from the input.
var keptMeaning = meaning{Text: "the input's column of that name, as text", Null: "a Parquet input has no value; an empty CSV cell is an empty text", From: "docs/input.md"}

// RejectsColumns are the columns of a file of malformed lines. The last is left out if
// identifiers are dropped.
func RejectsColumns() []schema.Column {
	return []schema.Column{
		required(text("source")), required(of("line", arrow.PrimitiveTypes.Int64)),
		required(text("reason")), required(text("raw_line")),
	}
}

// SuppressedColumns are the columns of a file of the ids of suppressed rows.
func SuppressedColumns() []schema.Column {
	return []schema.Column{
		required(text("source")), required(of("source_row", arrow.PrimitiveTypes.Int64)), required(text("reason")), text("id"),
	}
}

// always makes a column that is never null.
const always = "never"

const (
	hexMD5    = "md5 in hex"
	hexSHA1   = "sha1 in hex"
	hexSHA256 = "sha256 in hex"
)

// meanings are those of columns with the same meaning in every operation, without contactMeanings.
var meanings = map[string]meaning{
	"source":        {Text: "input file, as it was given", Null: always, From: "the run", Form: "text, never empty"},
	"source_row":    {Text: "data row of that file, malformed lines counted", Unit: "rows, from 1", Null: always, From: "docs/input.md", Form: "from 1"},
	"key":           {Text: "the identifier in canonical form: rows with one key are asked once", Null: "the row is rejected or suppressed", From: "docs/reference/identifiers.md", Form: "text, never empty"},
	"outcome":       {Text: "what became of the row", Null: always, From: "docs/reference/reasons.md", Form: "one of: matched no_match rejected failed suppressed skipped"},
	"reason":        {Text: "why the row is not matched", Null: "it is matched", From: "docs/reference/reasons.md", Form: "text, never empty"},
	"resolution_id": {Text: "the service's id of the answer", Null: "none, or the embedded engine answered"},
	"resolved_at":   {Text: "when the service's answer was received", Unit: "microseconds, UTC", Null: "the embedded engine answered, or there is no answer", From: "the run"},
	"answered_by":   {Text: "who answered: service or embedded; of several resolvers the name of the first with a match", Null: "no answer", From: "the run", Form: "text, never empty"},
	"credits":       {Text: "cost of the answer, shared by all rows of a key (of a search: of a key and page): SELECT sum(credits) FROM (SELECT max(credits) AS credits FROM leads GROUP BY key) AS once", Unit: "credits", Null: "no answer, or its cost is unknown", Form: "from 0"},
	"source_part":   {Text: "which identifier of its cell the row has, with --multiple each", Unit: "identifiers, from 1", Null: always, From: "docs/reference/identifiers.md", Form: "from 1"},

	"hem_md5":                {Text: "first MD5 among hashed_emails", Unit: "32 hex digits, lower case", Null: "none", Form: hexMD5},
	"hem_sha1":               {Text: "first SHA-1 among hashed_emails", Unit: "40 hex digits, lower case", Null: "none", Form: hexSHA1},
	"hem_sha256":             {Text: "first SHA-256 among hashed_emails", Unit: "64 hex digits, lower case", Null: "none", Form: hexSHA256},
	"hem_uid2_sha256_base64": {Text: "SHA-256 of the address in profile uid2", Unit: "44 base64 characters", Null: "the address has no such form, or only its hash is known", From: "unifiedid.com, normalization", Form: "sha256 in base64"},
	"hem_google_sha256":      {Text: "SHA-256 of the address in profile google, by its rule of 2026-08", Unit: "64 hex digits, lower case", Null: "the address has no such form, or only its hash is known", From: "Google Data Manager, formatters", Form: hexSHA256},
	"hashed_emails":          {Text: "every hash known: email is the hash, type its algorithm", Null: "none"},
	"network_url":            {Text: "the person's profile address, without scheme", From: "docs/reference/identifiers.md, profile address"},

	"ip_class": {Text: "what the address is for; only public ones are looked up", Null: "the row is rejected", From: "IANA special-purpose registries"},
	"org_type": {Text: "kind of organization behind the address: business, isp, hosting and so on"},

	"company_name":           {Text: "name of the company"},
	"company_domain":         {Text: "its domain, lower case and ASCII", From: "docs/reference/identifiers.md, companies"},
	"company_website_url":    {Text: "its web site"},
	"company_network_url":    {Text: "its profile address, without scheme", From: "docs/reference/identifiers.md, companies"},
	"company_industry":       {Text: "its industry"},
	"company_revenue":        {Text: "its revenue a year, a range in words"},
	"company_revenue_min":    {Text: "lower bound of that range", Unit: "US dollars", Null: "none, another currency, or the words are ambiguous", From: "docs/reference/identifiers.md, companies", Form: "from 0"},
	"company_revenue_max":    {Text: "upper bound of that range", Unit: "US dollars", Null: "none, another currency, or the words are ambiguous", From: "docs/reference/identifiers.md, companies", Form: "from 0"},
	"company_employee_count": {Text: "its employees, a range in words"},
	"company_employee_min":   {Text: "lower bound of that range", Unit: "people", Null: "none, or the words are ambiguous", From: "docs/reference/identifiers.md, companies", Form: "from 0"},
	"company_employee_max":   {Text: "upper bound of that range", Unit: "people", Null: "none, or the words are ambiguous", From: "docs/reference/identifiers.md, companies", Form: "from 0"},
	"company_year_founded":   {Text: "year it was founded", Unit: "year", Form: "year"},
	"company_street":         {Text: "its street and number"},
	"company_zip_code":       {Text: "its postal code, text: leading zeros stay"},
	"company_city":           {Text: "its city"},
	"company_state":          {Text: "its state"},
	"company_about":          {Text: "what it says of itself"},

	"match_level": {Text: "what the visit was matched with: person or company", Null: "not matched"},
	"confidence":  {Text: "how sure the match is", Unit: "0 to 1", From: "docs/reference/identifiers.md, confidence of a visit", Form: "from 0 to 1"},

	"search_row":       {Text: "row of the search in its file, as source_row", Unit: "rows, from 1", Null: "the search has no leads", From: "the run", Form: "from 1"},
	"page":             {Text: "page of the search that the lead was on", Unit: "pages, from 1", Null: "the search has no leads", Form: "from 1"},
	"lead_id":          {Text: "the lead's id", Null: "the search has no leads"},
	"matched_keywords": {Text: "keywords of the search that the person searched for", Null: "none is named"},
	"searched_on":      {Text: "day of the person's last search", Unit: "days, UTC"},
	"lead_type":        {Text: "b2b or b2c"},

	"count":              {Text: "leads of the search", Unit: "people", Null: "not answered", Form: "from 0"},
	"hashed_email_count": {Text: "hashed emails of those leads", Unit: "hashes", Null: "not answered, or the service does not say", Form: "from 0"},
	"is_approximate":     {Text: "whether the counts are estimates", Null: "not answered"},
}

// meaningsOf are those of columns with another meaning in one operation.
var meaningsOf = map[resolution.Operation]map[string]meaning{
	resolution.EmailToHEM: {
		"hem_md5":       {Text: "MD5 of the key, or the input where it is one", Unit: "32 hex digits, lower case", Null: "the row is rejected, or only another hash is known", From: "docs/reference/identifiers.md, profile plain", Form: hexMD5},
		"hem_sha1":      {Text: "SHA-1 of the key, or the input where it is one", Unit: "40 hex digits, lower case", Null: "the row is rejected, or only another hash is known", From: "docs/reference/identifiers.md, profile plain", Form: hexSHA1},
		"hem_sha256":    {Text: "SHA-256 of the key, or the input where it is one", Unit: "64 hex digits, lower case", Null: "the row is rejected, or only another hash is known", From: "docs/reference/identifiers.md, profile plain", Form: hexSHA256},
		"network_url":   {Text: "profile address of the person with this email, without scheme", From: "docs/reference/identifiers.md, profile address"},
		"hashed_emails": {Text: "every hash in the answer: email is the hash, type its algorithm", Null: "none"},
	},
	resolution.NetworkToHEM: {
		"network_url": {Text: "the profile's address in canonical form, without scheme", From: "docs/reference/identifiers.md, profile address"},
	},
}
