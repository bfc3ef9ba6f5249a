package resolutiontest

import (
	"time"

	"github.com/leadetl/leadetl/resolution"
)

// searchFact is a keyword search of the sample directory and its leads, found
// by reading searches.csv. A lead is named by when it last made one of the
// searches, as day of November 2026, hour and minute: no two are alike.
type searchFact struct {
	name string
	ask  resolution.KeywordSearch // of all days of the sample unless it says which
	want string                   // "12T09:53 09T16:40", in order
}

// subjects are keywords that every search of the sample has one of.
var subjects = []string{"sourdough starter", "used robots", "crm software", "ergonomic chair", "tax software", "solar panels",
	"cloud backup", "rocket fuel", "green tea wholesale", "book printing"}

func day(d int) time.Time { return time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC) }

func keywords(k ...string) resolution.KeywordSearch { return resolution.KeywordSearch{Keywords: k} }

const (
	tea      = "12T09:53 09T16:40 09T01:37 06T08:24 03T15:11 03T00:08"
	software = "13T15:59 13T05:57 10T22:46 10T12:44 08T05:33 07T19:31 07T04:28 05T12:20 04T11:15 01T18:02"
)

var searchFacts = []searchFact{
	{"a phrase", keywords("green tea wholesale"), tea},
	{"in another case and spacing", keywords("  GREEN   Tea\twholesale "), tea},
	{"with other punctuation", keywords(`"green-tea", wholesale!`), tea},
	{"a part of a phrase", keywords("tea wholesale"), tea},
	{"a word", keywords("tea"), tea},
	{"the words in another order", keywords("wholesale tea"), ""},
	{"the words not side by side", keywords("green wholesale"), ""},
	{"a part of a word", keywords("wholes"), ""},
	{"more words than any has", keywords("green tea wholesale prices"), ""},
	{"an unused word", keywords("tea", "zeppelin"), tea},
	{"a lead found twice counts once, at its last search", keywords("software"), software},
	{"keywords are alternatives", keywords("tax software", "crm software"), software},
	{"stored in capitals", keywords("crm software"), "13T05:57 10T12:44 07T19:31 07T04:28 04T11:15 01T18:02"},
	{"another search of the lead does not count", keywords("sourdough"), "12T19:55 10T02:42 09T11:39 06T18:26 04T01:13 01T08:00"},

	{"a city in another case", resolution.KeywordSearch{Keywords: subjects, Cities: []string{"san EXAMPLE"}},
		"09T16:40 08T20:36 08T00:32 07T04:28"},
	{"a part of a city", resolution.KeywordSearch{Keywords: subjects, Cities: []string{"San"}}, ""},
	{"a state in lower case", resolution.KeywordSearch{Keywords: []string{"rocket fuel", "solar panels"}, States: []string{"il"}},
		"11T18:50 05T02:18 03T10:10"},
	{"a ZIP", resolution.KeywordSearch{Keywords: subjects, Zips: []string{"10005", "99999-1234"}},
		"13T05:57 07T09:29 06T13:25 05T17:21"},
	{"a lead type", resolution.KeywordSearch{Keywords: []string{"rocket fuel"}, LeadType: "b2c"}, "08T20:36"},
	{"values of a field are alternatives, fields all hold",
		resolution.KeywordSearch{Keywords: []string{"solar panels"}, States: []string{"MA", "IL"}, LeadType: "b2b"}, "11T18:50 08T10:34"},
	{"fields that hold for different searches of a lead", // xena printed books from Georgia, as b2c, and bought fuel as b2b
		resolution.KeywordSearch{Keywords: []string{"rocket fuel"}, Cities: []string{"Peach Sample"}, LeadType: "b2c"}, ""},

	{"a part of a job title", resolution.KeywordSearch{Keywords: subjects, JobTitleInclusions: []string{"BAKE"}},
		"09T16:40 08T20:36 08T00:32 07T04:28"},
	{"job titles are alternatives", resolution.KeywordSearch{Keywords: []string{"book printing"}, JobTitleInclusions: []string{"nurse", "professor of"}},
		"12T14:54 09T21:41"},
	{"an exclusion takes away", resolution.KeywordSearch{Keywords: []string{"book printing"}, JobTitleExclusions: []string{"nurse", "Professor"}},
		"09T06:38 06T13:25 03T20:12 03T05:09"},
	{"an exclusion of some included", resolution.KeywordSearch{Keywords: subjects, JobTitleInclusions: []string{"engineer"}, JobTitleExclusions: []string{"ROCKET"}},
		"12T04:52 11T08:48 10T12:44"},
	{"an exclusion outdoes an inclusion", resolution.KeywordSearch{Keywords: subjects, JobTitleInclusions: []string{"robotics engineer"}, JobTitleExclusions: []string{"engineer"}}, ""},

	{"one day", resolution.KeywordSearch{Keywords: subjects, Start: day(5), End: day(5)}, "05T22:22 05T17:21 05T12:20 05T07:19 05T02:18"},
	{"the first day counts whole", resolution.KeywordSearch{Keywords: []string{"green tea wholesale"}, Start: day(3), End: day(6)},
		"06T08:24 03T15:11 03T00:08"},
	{"the last day counts whole", resolution.KeywordSearch{Keywords: []string{"cloud backup"}, Start: day(11), End: day(11)}, "11T23:51 11T08:48"},
	{"days without a search", resolution.KeywordSearch{Keywords: []string{"cloud backup"}, Start: day(12), End: day(13)}, ""},

	{"a quote", keywords(`"`), ""},
	{"a star", keywords(`*`), ""},
	{"a word and a star", keywords(`te*`), ""},
	{"an operator", keywords(`NEAR(`), ""},
	{"a column", keywords(`keyword:tea`), ""},
	{"a word NOT", keywords(`rocket NOT fuel`), ""},
	{"a parenthesis", keywords(`(tea`), tea},
	{"a statement", keywords(`'; DROP TABLE searches; --`), ""},
	{"a backslash and NUL", keywords("\\\x00"), ""},
	{"NUL between words", keywords("green\x00tea"), tea},
	{"an emoji", keywords("🍞"), ""},
	{"a script from right to left", keywords("שלום עולם"), ""},
	{"spaces alone", keywords(" \t "), ""},
}

// leadFact is one lead of a search as it is delivered.
type leadFact struct {
	name string
	ask  resolution.KeywordSearch
	page resolution.SearchPage
	want resolution.FoundLead
}

var (
	vicWork = hashes("fe06dc90e09c62caf89b6b5dc2efa42d", "dce0826e605639be4612e3394365a9eb28ccaae9",
		"4a1e2bbbbfb359000e5c64df1021a644aa632e71ccdbba4fa5572372ce12f17f")
	vicHome = hashes("83bda8d5f1bcf1fd19c039eba31d293b", "96a064f51c3fbdcec55b22967607eb58a06a9cc2",
		"c50119a93c19ac5bcaa483b69b4e3ebfa9a72920035014468e69eb3c2ebe6a09")
	visitor59 = hashes("bc9e19c93a27c727f2a4e9c4ebfe987b", "c435e9370f53195b486b0785f5dfc48bf82b9f46",
		"f26cd8a229539657424d5c70db9d22ce1195842d725fbcc107ea5036c7d206f8")
)

// The ids were computed with another program, as the digests were.
func foundAda() resolution.FoundLead {
	return resolution.FoundLead{
		LeadID: "lead_24b9a743a2ddd129df90be2389f50460", LeadType: "b2b", MatchedKeywords: []string{"TEA"},
		SearchedAt: time.Date(2026, 11, 9, 16, 40, 0, 0, time.UTC),
		Lead: resolution.Lead{
			Contact: resolution.Contact{JobTitle: "Head Baker", Seniority: "manager", Department: "Operations",
				Address: resolution.Address{City: "San Example", State: "CA", ZipCode: "94105"}},
			HashedEmails: adaLead.HashedEmails,
		},
	}
}

func foundVic() resolution.FoundLead {
	return resolution.FoundLead{
		LeadID: "lead_297c295a95cdecbf5b54d42a2f2e8a41", LeadType: "b2b", MatchedKeywords: []string{"robots"},
		SearchedAt: time.Date(2026, 11, 10, 7, 43, 0, 0, time.UTC),
		Lead: resolution.Lead{
			Contact: resolution.Contact{JobTitle: "Sales Director", Seniority: "director", Department: "Sales",
				Address: resolution.Address{City: "Phoenix Sample", State: "AZ", ZipCode: "85001"}},
			HashedEmails: vicWork,
		},
	}
}

func foundVisitor() resolution.FoundLead {
	return resolution.FoundLead{
		LeadID: "lead_dd42ddf6e65f424f849e1b53a557b17c", LeadType: "b2b", MatchedKeywords: []string{"tax"},
		SearchedAt: time.Date(2026, 11, 13, 15, 59, 0, 0, time.UTC),
		Lead: resolution.Lead{
			Contact:      resolution.Contact{JobTitle: "Rocket Engineer", Address: resolution.Address{City: "Cape Sample", State: "FL", ZipCode: "32899"}},
			HashedEmails: visitor59,
		},
	}
}

// with is l and what change does to it.
func with(l resolution.FoundLead, change func(*resolution.FoundLead)) resolution.FoundLead {
	change(&l)
	return l
}

func nameAda(l *resolution.FoundLead) {
	l.Contact, l.Phone, l.NetworkURL = adaLead.Contact, adaLead.Phone, adaLead.NetworkURL
	l.Emails, l.Phones = nil, nil
}

var (
	adaOn9th  = resolution.KeywordSearch{Keywords: []string{"TEA"}, Start: day(9), End: day(9), Cities: []string{"San Example"}}
	vicOn10th = resolution.KeywordSearch{Keywords: []string{"robots"}, Start: day(10), End: day(10)}
	on13th    = resolution.KeywordSearch{Keywords: []string{"tax"}, Start: day(13), End: day(13)}
)

var leadFacts = []leadFact{
	{"no more than asked for", adaOn9th, resolution.SearchPage{HEMs: 20}, foundAda()},
	{"a bound on hashed emails", adaOn9th, resolution.SearchPage{HEMs: 4}, with(foundAda(), func(l *resolution.FoundLead) {
		l.HashedEmails = l.HashedEmails[:4]
	})},
	{"deanonymized", adaOn9th, resolution.SearchPage{HEMs: 20, Deanonymize: true}, with(foundAda(), nameAda)},
	{"enriched", adaOn9th, resolution.SearchPage{HEMs: 20, SuperEnrichment: true}, with(foundAda(), func(l *resolution.FoundLead) {
		l.Company = &bakery
	})},
	{"both", adaOn9th, resolution.SearchPage{HEMs: 20, Deanonymize: true, SuperEnrichment: true}, with(foundAda(), func(l *resolution.FoundLead) {
		nameAda(l)
		l.Emails, l.Phones, l.Company = adaLead.Emails, adaLead.Phones, &bakery
	})},
	{"who searched by email is found by email", vicOn10th, resolution.SearchPage{HEMs: 20, Deanonymize: true, SuperEnrichment: true},
		with(foundVic(), func(l *resolution.FoundLead) {
			seen := time.Date(2026, 4, 26, 8, 30, 0, 0, time.UTC)
			l.HashedEmails = append(vicWork[:3:3], vicHome...)
			l.FirstName, l.LastName, l.FullName, l.Headline = "Vic", "Specimen", "Vic Specimen", "Sales Director"
			l.Email, l.Phone, l.NetworkURL, l.LastSeenAt = "vic.specimen@solar.example", "+12025550121", "network.example/in/vic-specimen", &seen
			l.Emails = []resolution.ContactEmail{{Email: "vic.specimen@solar.example"}, {Email: "vic.specimen21@mail.example"}}
			l.Phones = []resolution.ContactPhone{{Phone: "+12025550121"}}
			l.Address.Street = "121 Sample Street"
		})},
	{"the search's own email comes first", vicOn10th, resolution.SearchPage{HEMs: 3}, foundVic()},
	{"an unknown person", on13th, resolution.SearchPage{HEMs: 20, SuperEnrichment: true}, foundVisitor()},
	{"an unknown person, deanonymized", on13th, resolution.SearchPage{HEMs: 20, Deanonymize: true, SuperEnrichment: true},
		with(foundVisitor(), func(l *resolution.FoundLead) {
			l.Email = "visitor59@mail.example"
			l.Emails = []resolution.ContactEmail{{Email: "visitor59@mail.example"}}
		})},
}
