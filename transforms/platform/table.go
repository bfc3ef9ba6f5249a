package platform

import (
	"github.com/leadetl/leadetl/transforms/email"
	"github.com/leadetl/leadetl/transforms/phone"
)

// plain is the rule that most platforms share: white space around it removed, lower case.
func plain(source, date string) Mail {
	return byProfile(email.Plain, Rule{"white space around it removed, lower case", source, date})
}

// Pages and repositories that several rules are from.
const (
	googleHelp      = "support.google.com/google-ads/answer/7659867"
	googleFormatter = "Google Data Manager, formatting"
	metaValues      = "Meta, customer information parameters"
	metaList        = "facebook.com/business/help/2082575038703844"
	tiktokFile      = "ads.tiktok.com/help, customer file pages"
	linkedinList    = "linkedin.com/help/lms/answer/a1489764"
	microsoftBulk   = "MicrosoftDocs/BingAds-docs@ec008d0, bulk-service"
	pinterestList   = "help.pinterest.com/business/article/audience-targeting"
	xList           = "business.x.com, list audiences"
	xHash           = "docs.x.com/x-ads-api/audiences/reference"
)

const mega, giga = 1_000_000, 1_000_000_000

// All are the platforms whose file and rules were read at their source.
var All = []Platform{{
	Name: "google", Title: "Google Ads, Customer Match",
	Columns: []Column{
		{Header: "Email", Field: Email, Hashed: true},
		{Header: "First Name", Field: FirstName, Write: googleName, Hashed: true},
		{Header: "Last Name", Field: LastName, Write: googleName, Hashed: true},
		{Header: "Country", Field: Country, Write: countryUpper},
		{Header: "Zip", Field: ZipCode, Write: googleZip},
		{Header: "Email", Field: Email, Hashed: true},
		{Header: "Email", Field: Email, Hashed: true},
		{Header: "Phone", Field: Phone, Hashed: true},
	},
	Mails: []Mail{
		byProfile(email.Google, Rule{"lower case; at gmail.com and googlemail.com without dots and `+tag` before the @", googleFormatter, "2026"}),
		byProfile(email.GoogleUntil202608, Rule{"lower case; at gmail.com and googlemail.com without dots before the @", "googleads/data-manager-python@5abbf5d", "2025-12"}),
		plain(googleHelp+", googleads/google-ads-python@481f222", ""),
	},
	Numbers:  []Number{{Rule{"+ and digits (E.164)", googleFormatter, "2026"}, phone.E164}},
	Digests:  []email.Profile{email.Google},
	Together: []Field{FirstName, LastName, Country, ZipCode}, ByAddress: true,
	MaxBytes: 5 * giga, Least: 100, LeastOf: "members",
	Whose: Rule{"only what the advertiser collected from people directly", "support.google.com/adspolicy/answer/6299717", ""},
	Rules: []Rule{
		{"comma CSV in UTF-8; Email, Phone and Zip may occur several times", "support.google.com/google-ads/answer/7659867, 7475964, 7476159; template g.co/wudy8r", ""},
		{"pages disagree about addresses at Gmail: as Email may repeat, each form is written", googleFormatter + "; " + googleHelp, "2026"},
		{"email, phone, first and last name are hashed, Country and Zip stay plain", "support.google.com/google-ads/answer/7474263", ""},
		{"a file is hashed or plain, never both", "support.google.com/google-ads/answer/6276125", ""},
		{"names are matched only with First Name, Last Name, Country and Zip: a person has all four or none", googleHelp, ""},
		{"names: lower case, without title (Mrs.) and suffix (Jr.), accents stay; with punctuation or a space inside they are open, and left out", googleHelp + "; template g.co/wudy8r; googleads/data-manager-python@5abbf5d", "2025-12"},
		{"Country: two capital letters; Zip: in the US 5 digits, or 5 and 4", "googleads/data-manager-python@5abbf5d; support.google.com/google-ads/answer/7476159", "2025-12"},
		{"at most 5 GB a file", "support.google.com/google-ads/answer/6276125", ""},
		{"at least 100 members", "Google Data Manager, send audience members", "2026-06"},
	},
}, {
	Name: "meta", Title: "Meta, customer list custom audience",
	Columns: []Column{
		{Header: "email", Field: Email, Hashed: true},
		{Header: "phone", Field: Phone, Hashed: true},
		{Header: "fn", Field: FirstName, Write: metaName, Hashed: true},
		{Header: "ln", Field: LastName, Write: metaName, Hashed: true},
		{Header: "ct", Field: City, Write: metaCity, Hashed: true},
		{Header: "st", Field: State, Write: metaState, Hashed: true},
		{Header: "country", Field: Country, Write: countryLower, Hashed: true},
		{Header: "zip", Field: ZipCode, Write: metaZip, Hashed: true},
	},
	Mails:   []Mail{plain(metaValues, "2026-01-09")},
	Numbers: []Number{{Rule{"digits with country code, without plus and leading zeros", metaValues, "2026-01-09"}, phone.Digits}},
	Digests: []email.Profile{email.Plain},
	Least:   100, LeastOf: "people",
	Whose:        Rule{"all rights and a lawful basis; people who opted out are left out, and removed later", "facebook.com/legal/terms/customaudience", ""},
	Reservations: []string{"that Meta takes files with hashed values was not read at Meta: its pages say that the browser hashes plain ones"},
	Rules: []Rule{
		{"CSV or TXT with these headers", metaList, ""},
		{"digests are lower-case hex", "developers.facebook.com, custom audiences guide v25", ""},
		{"names: lower case, without white space and punctuation; accents and letters of every script stay, as in the printed digest of valéry", metaValues, "2026-01-09"},
		{"city: the same; with accents it is open (facebook/capi-param-builder@b0b6f0b drops them), and left out", metaValues, "2026-01-09"},
		{"state: in the US two letters; country: two lower-case letters", metaValues, "2026-01-09"},
		{"zip: lower case without spaces, in the US the first five digits", metaValues, "2026-01-09"},
		{"fewer than 100 people are discouraged", metaList, ""},
	},
}, {
	Name: "tiktok", Title: "TikTok, customer file",
	Columns: []Column{
		{Header: "Email_SHA256", Field: Email, Hashed: true},
		{Header: "Email_SHA256", Field: Email, Hashed: true},
		{Header: "Phone_SHA256", Field: Phone, Hashed: true},
		{Header: "Phone_SHA256", Field: Phone, Hashed: true},
	},
	Mails: []Mail{
		byProfile(email.Plain, Rule{"lower case, spaces removed", tiktokFile, "2025-09"}),
		{Rule: Rule{"the same without `+tag` before the @", tiktokFile, "2025-08"}, Profile: -1, append: withoutTag},
	},
	Numbers: []Number{
		{Rule{"+ and digits (E.164)", tiktokFile, "2025-09"}, phone.E164},
		{Rule{"digits with country code: the example's digest is of them", tiktokFile, "2025-09"}, phone.Digits},
	},
	Digests:  []email.Profile{email.Plain},
	MaxBytes: giga - 1, Least: 1000, LeastOf: "entries",
	Reservations: []string{
		"TikTok's page wants phones with a plus, and its example has the digest of one without: each phone is written in both forms",
		"TikTok's pages disagree about addresses with a +tag: these are written with and without it",
	},
	Rules: []Rule{
		{"CSV or TXT with a header, no archive, less than 1 GB, at least 1,000 entries; a header at most three times", tiktokFile, ""},
		{"no names", "ads.tiktok.com/help, list of supported ids and formats", ""},
		{"the page of 2024 also removed all dots before the @; the three newer ones do not", tiktokFile, "2025-09"},
	},
}, {
	Name: "linkedin", Title: "LinkedIn, contact list",
	Columns: []Column{
		{Header: "email", Field: Email, Hashed: true},
		{Header: "firstname", Field: FirstName, Write: upTo(35)},
		{Header: "lastname", Field: LastName, Write: upTo(35)},
		{Header: "jobtitle", Field: JobTitle, Write: upTo(50)},
		{Header: "employeecompany", Field: CompanyName, Write: upTo(50)},
		{Header: "country", Field: Country, Write: countryUpper},
		{Header: "googleaid"},
	},
	Template: true,
	Mails:    []Mail{byProfile(email.Plain, Rule{"all white space removed, lower case", "LinkedIn, API page of matched audiences; " + linkedinList, ""})},
	Digests:  []email.Profile{email.Plain},
	Needs:    []Field{Email, FirstName, LastName},
	MaxRows:  300_000, MaxBytes: 20 * mega, Least: 300, LeastOf: "rows",
	Rules: []Rule{
		{"CSV with this header, which must not be changed", "LinkedIn_Ads_Contact_Match_Template.csv; " + linkedinList, "2026-07"},
		{"a row needs email, first and last name; 300 to 300,000 rows and 20 MB a file", linkedinList, "2026-07"},
		{"names of at most 35 characters, title and company of 50, country in two letters, all plain; no phones", linkedinList, ""},
	},
}, {
	Name: "x", Title: "X, list audience",
	Columns: []Column{
		{Header: "email", Field: Email, Hashed: true},
		{Header: "phone", Field: Phone, Hashed: true},
	},
	NoHeader: true, OneKind: true,
	Mails:    []Mail{plain(xHash, "")},
	Numbers:  []Number{{Rule{"+ and digits (E.164)", xHash, ""}, phone.E164}},
	Digests:  []email.Profile{email.Plain},
	MaxBytes: 10 * giga, Least: 100, LeastOf: "matched people",
	Whose: Rule{"own data, or that of others", xList, ""},
	Rules: []Rule{
		{"one value a line; what the column holds is chosen in the page after the upload", xList, ""},
		{"at most 10 GB (an older page), at least 100 matched people", xList, ""},
	},
}, {
	Name: "pinterest", Title: "Pinterest, customer list",
	Columns:  []Column{{Header: "email", Field: Email, Hashed: true}},
	NoHeader: true, OneKind: true,
	Mails:   []Mail{byProfile(email.Plain, Rule{"lower case", "pinterest/api-description@c05b189", "2025-12"})},
	Digests: []email.Profile{email.Plain},
	Least:   100, LeastOf: "matched people",
	Rules: []Rule{
		{"CSV of one column without header, title, blank lines and tabs; no names, phones and addresses; at least 100 matches", pinterestList, ""},
	},
}, {
	Name: "microsoft", Title: "Microsoft Advertising, Customer Match (bulk file)",
	Columns: []Column{
		{Header: "Type", Always: "Customer List Item"}, {Header: "Status"}, {Header: "Id"}, {Header: "Parent Id", Always: "-1"}, {Header: "Client Id"},
		{Header: "Modified Time"}, {Header: "Name"}, {Header: "Description"}, {Header: "Scope"}, {Header: "Audience"}, {Header: "Action Type"},
		{Header: "Sub Type", Always: "Email"}, {Header: "Text", Field: Email, Hashed: true},
	},
	Template: true,
	Before: func(audience string) [][]string {
		return [][]string{
			{"Format Version", "", "", "", "", "", "6.0", "", "", "", "", "", ""},
			{"Customer List", "Active", "-1", "", "", "", "", "", "Customer", audience, "Add", "", ""},
		}
	},
	Mails: []Mail{plain("connectors of other companies", "")},
	Least: 300, LeastOf: "matched people",
	Whose:        Rule{"no user data of third parties; yet the page goes on to suggest uploading an export of another provider", "help.ads.microsoft.com 56921", ""},
	Reservations: []string{"how Microsoft wants addresses written before they are hashed (lower case, no white space around them) was read in connectors of others only"},
	Rules: []Rule{
		{"the bulk layout alone: Format Version 6.0, a Customer List, its Customer List Items; the header of the file of the web page is not known", microsoftBulk, "2021"},
		{"SHA-256 of the email, never plain; first accept the terms in the web page", microsoftBulk, "2021"},
		{"emails only; at least 300 matched people; not in every market", "help.ads.microsoft.com 56921", ""},
	},
}}
