package values

import (
	"math"
	"strconv"
	"time"

	"github.com/apache/arrow/go/v17/arrow"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks/schema"
	"github.com/leadetl/leadetl/transforms/phone"
)

const (
	// SchemaVersion grows when a column is added, or is one that has to be selected. Columns are added
	// at the end of a block and never renamed or removed. 2: hashed_emails has to be selected, unless
	// hashes are what is asked for.
	SchemaVersion = 2
	// DirectoryFormat is the end of the names of files of reference data. It changes when they get
	// another field, because older programs cannot read them. Earlier ones wrote databases
	// (sqlite, mmdb), column files without checksums (columns), those with another index of keys
	// (cols), those whose phones and kinds of organizations follow older rules (cols2), companies
	// as records (cols3), and phones without details (cols4). Columns of companies that are made of
	// others follow the rules of the import, too.
	DirectoryFormat = "cols5"
)

// Person is the block of a person.
var Person = [...]Value{
	{Column: repeating("first_name", "given name"), Text: resolution.FieldFirstName, Imported: true},
	{Column: repeating("last_name", "family name"), Text: resolution.FieldLastName, Imported: true},
	{Column: repeating("full_name", "whole name"), Text: resolution.FieldFullName, Also: []string{"name"}},
	{Column: repeating("headline", "headline of the profile"), Text: resolution.FieldHeadline, Imported: true},
	{Column: repeating("job_title", "job title"), Text: resolution.FieldJobTitle, Also: []string{"title"}, Imported: true, Role: true},
	{Column: repeating("seniority", "level of the job"), Text: resolution.FieldSeniority, Imported: true, Role: true},
	{Column: repeating("department", "department of the job"), Text: resolution.FieldDepartment, Imported: true, Role: true},
	{Column: text("email", "first of emails"), Text: resolution.FieldEmail, Kind: Email, Imported: true, Makes: allHashes},
	{Column: list(schema.Emails, "emails", "every address known: email, and its type, such as work"), Kind: Special, Imported: true, Makes: allHashes,
		Group: resolution.GroupEmails, Of: first(func(a *resolution.Answers) *resolution.TypedTexts { return &a.Emails })},
	{Column: list(schema.Phones, "phones", "every number known: phone, and its type, such as mobile"), Kind: Special, Imported: true, Makes: append(described[:4:4], "phone"),
		Group: resolution.GroupPhones, Of: first(func(a *resolution.Answers) *resolution.TypedTexts { return &a.Phones })},
	{Column: schema.Text("network_url").Means(meaning{Text: "the person's profile address, without scheme", From: "docs/reference/identifiers.md, profile address"}),
		Text: resolution.FieldNetworkURL, Kind: Profile, Also: []string{"profile_url"}, Imported: true},
	{Column: repeating("street", "the person's street and number"), Text: resolution.FieldStreet, InAddress: true, Imported: true},
	{Column: repeating("zip_code", "the person's postal code, text: leading zeros stay"), Text: resolution.FieldZipCode, InAddress: true, Also: zips, Imported: true},
	{Column: repeating("city", "the person's city"), Text: resolution.FieldCity, InAddress: true, Imported: true},
	{Column: repeating("state", "the person's state"), Text: resolution.FieldState, InAddress: true, Imported: true},
	{Column: schema.Repeats(schema.Of("last_seen_at", schema.Instant)).Means(meaning{Text: "when the person was last seen", Unit: "microseconds, UTC"}), Kind: Special, Imported: true, Of: lastSeen},
}

// Phones is the block of the first number.
var Phones = [...]Value{
	{Column: schema.Repeating("phone").Means(meaning{Text: "phone number", Unit: "E.164", Null: "none, or it cannot be read", From: "docs/reference/identifiers.md, phone", Form: "E.164"}),
		Text: resolution.FieldPhone, Kind: Phone, Makes: described},
	{Column: schema.Repeating("phone_raw").Means(meaning{Text: "phone number as answered, or as the reference data has it", Null: "none"}), Text: resolution.FieldPhoneRaw, Kind: Made},
	{Column: schema.Repeating("phone_region").Means(meaning{Text: "region of the number, 001 for none", Unit: "ISO 3166-1 alpha-2", Null: "there is no phone, or its plan serves several regions", From: "the numbering plans", Form: "region"}),
		Text: resolution.FieldPhoneDetails, Kind: Made, Of: describe(func(d phone.Details) string { return d.Region })},
	{Column: schema.Repeating("phone_type").Means(meaning{Text: "what the number is for: mobile, fixed_line and so on", Null: "there is no phone", From: "the numbering plans"}),
		Text: resolution.FieldPhoneDetails, Kind: Made, Of: describe(func(d phone.Details) string { return d.Type })},
	{Column: schema.Of("phone_valid", arrow.FixedWidthTypes.Boolean).Means(meaning{Text: "whether the region's plan has given the number out", Null: "there is no phone", From: "the numbering plans"}),
		Text: resolution.FieldPhoneDetails, Kind: Made, Of: describe(func(d phone.Details) string { return strconv.FormatBool(d.Valid) })},
}

// Hashes is the block of hashed emails. A run may leave out some types, and has hashed_emails last.
var Hashes = [...]Value{
	{Column: schema.Random(schema.Text("hem_md5")).Means(meaning{Text: "first MD5 among hashed_emails", Unit: "32 hex digits, lower case", Null: "none", Form: "md5 in hex"}),
		Kind: Special, Group: resolution.GroupHashes, Of: hash("md5")},
	{Column: schema.Random(schema.Text("hem_sha1")).Means(meaning{Text: "first SHA-1 among hashed_emails", Unit: "40 hex digits, lower case", Null: "none", Form: "sha1 in hex"}),
		Kind: Special, Group: resolution.GroupHashes, Of: hash("sha1")},
	{Column: schema.Random(schema.Text("hem_sha256")).Means(meaning{Text: "first SHA-256 among hashed_emails", Unit: "64 hex digits, lower case", Null: "none", Form: "sha256 in hex"}),
		Kind: Special, Group: resolution.GroupHashes, Of: hash("sha256")},
	{Column: schema.Random(list(schema.Emails, "hashed_emails", "every hash known: email is the hash, type its algorithm")), Kind: Special, Makes: hems,
		Group: resolution.GroupHashes, Of: first(func(a *resolution.Answers) *resolution.TypedTexts { return &a.Hashes })},
}

// Company is the block of a company.
var Company = [resolution.CompanyColumns]Value{
	{Column: repeating("company_name", "name of the company"), Company: resolution.CompanyName},
	{Column: schema.Repeating("company_domain").Means(meaning{Text: "its domain, lower case and ASCII", From: "docs/reference/identifiers.md, companies"}), Company: resolution.CompanyDomain, Kind: Domain},
	{Column: repeating("company_website_url", "its web site"), Company: resolution.CompanyWebsiteURL, Also: []string{"website"}},
	{Column: schema.Repeating("company_network_url").Means(meaning{Text: "its profile address, without scheme", From: "docs/reference/identifiers.md, companies"}), Company: resolution.CompanyNetworkURL, Kind: Profile},
	{Column: repeating("company_industry", "its industry"), Company: resolution.CompanyIndustry},
	{Column: repeating("company_revenue", "its revenue a year, a range in words"), Company: resolution.CompanyRevenue, Makes: []string{"company_revenue_min", "company_revenue_max"}},
	{Column: bound("company_revenue_min", "lower bound of that range", "US dollars", "none, another currency, or the words are ambiguous"), Company: resolution.CompanyRevenue, Kind: MadeLeast},
	{Column: bound("company_revenue_max", "upper bound of that range", "US dollars", "none, another currency, or the words are ambiguous"), Company: resolution.CompanyRevenue, Kind: MadeMost},
	{Column: repeating("company_employee_count", "its employees, a range in words"), Company: resolution.CompanyEmployeeCount, Makes: []string{"company_employee_min", "company_employee_max"}},
	{Column: bound("company_employee_min", "lower bound of that range", "people", "none, or the words are ambiguous"), Company: resolution.CompanyEmployeeCount, Kind: MadeLeast},
	{Column: bound("company_employee_max", "upper bound of that range", "people", "none, or the words are ambiguous"), Company: resolution.CompanyEmployeeCount, Kind: MadeMost},
	{Column: schema.Repeats(schema.Number("company_year_founded", arrow.PrimitiveTypes.Int32)).Means(meaning{Text: "year it was founded", Unit: "year", Form: "year"}), Company: resolution.CompanyYearFounded, Kind: Year},
	{Column: repeating("company_street", "its street and number"), Company: resolution.CompanyStreet, InAddress: true},
	{Column: repeating("company_zip_code", "its postal code, text: leading zeros stay"), Company: resolution.CompanyZipCode, InAddress: true, Also: zips},
	{Column: repeating("company_city", "its city"), Company: resolution.CompanyCity, InAddress: true},
	{Column: repeating("company_state", "its state"), Company: resolution.CompanyState, InAddress: true},
	{Column: repeating("company_about", "what it says of itself"), Company: resolution.CompanyAbout},
}

// Visit is the block of who was behind an address.
var Visit = [...]Value{
	{Column: schema.Repeating("match_level").Means(meaning{Text: "what the visit was matched with: person or company", Null: "not matched"}), Text: resolution.FieldMatchLevel, Kind: Word},
	{Column: schema.Repeats(schema.Number("confidence", arrow.PrimitiveTypes.Float64)).Means(meaning{Text: "how sure the match is", Unit: "0 to 1", From: "docs/reference/identifiers.md, confidence of a visit", Form: "from 0 to 1"}),
		Kind: Special, Group: resolution.GroupMatch, Of: confidence},
}

// Owner is the block of the owner of an address.
var Owner = [...]Value{
	{Column: repeating("org_type", "kind of organization behind the address: business, isp, hosting and so on"), Kind: Special, Group: resolution.GroupCompany, Of: orgType},
}

type meaning = schema.Meaning

var (
	hems      = []string{"hem_md5", "hem_sha1", "hem_sha256"}
	allHashes = append(hems[:3:3], "hashed_emails")
	described = []string{"phone_raw", "phone_region", "phone_type", "phone_valid"}
	zips      = []string{"zip", "postal_code"}
)

func text(name, what string) schema.Column { return schema.Text(name).Means(meaning{Text: what}) }

func repeating(name, what string) schema.Column { return schema.Repeats(text(name, what)) }

func list(of arrow.DataType, name, what string) schema.Column {
	return schema.Of(name, of).Means(meaning{Text: what, Null: "none"})
}

func bound(name, what, unit, null string) schema.Column {
	return schema.Repeats(schema.Number(name, arrow.PrimitiveTypes.Int64)).Means(meaning{Text: what, Unit: unit, Null: null, From: "docs/reference/identifiers.md, companies", Form: "from 0"})
}

func first(list func(*resolution.Answers) *resolution.TypedTexts) func(resolution.AnswerRow) string {
	return func(r resolution.AnswerRow) string {
		l := list(r.Of)
		from, to := l.Of(r.I)
		if from == to {
			return ""
		}
		return string(l.Texts.At(from))
	}
}

// describe is what the numbering plans say of the first number.
func describe(say func(phone.Details) string) func(resolution.AnswerRow) string {
	return func(r resolution.AnswerRow) string {
		number := r.Of.Texts[resolution.FieldPhone].At(r.I)
		if len(number) == 0 {
			return ""
		}
		return say(phone.Describe(string(number)))
	}
}

// hash is the first hash of a type.
func hash(kind string) func(resolution.AnswerRow) string {
	return func(r resolution.AnswerRow) string {
		l := &r.Of.Hashes
		for n, to := l.Of(r.I); n < to; n++ {
			if string(l.Types.At(n)) == kind {
				return string(l.Texts.At(n))
			}
		}
		return ""
	}
}

func lastSeen(r resolution.AnswerRow) string {
	if r.I >= len(r.Of.LastSeen) || r.Of.LastSeen[r.I] == resolution.NotSeen {
		return ""
	}
	return time.UnixMicro(r.Of.LastSeen[r.I]).UTC().Format(time.RFC3339)
}

func confidence(r resolution.AnswerRow) string {
	if r.I >= len(r.Of.Confidences) || math.IsNaN(r.Of.Confidences[r.I]) {
		return ""
	}
	return strconv.FormatFloat(r.Of.Confidences[r.I], 'g', -1, 64)
}

func orgType(r resolution.AnswerRow) string {
	if r.I >= len(r.Of.OrgTypes) {
		return ""
	}
	return r.Of.OrgTypes[r.I]
}
