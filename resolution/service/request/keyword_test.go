package request

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
)

var today = time.Date(2026, 11, 20, 23, 59, 59, 0, time.FixedZone("", -3600)) // the 21st in UTC

func date(s string) time.Time {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		panic(err)
	}
	return t
}

// strs is a JSON list of n different strings, each made of format.
func strs(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = `"` + fmt.Sprintf(format, i) + `"`
	}
	return "[" + strings.Join(items, ",") + "]"
}

// codes is a JSON list of n states.
func codes(n int) string { return "[" + strings.Repeat(`"CA",`, n-1) + `"NY"]` }

func TestKeywordProblems(t *testing.T) {
	for _, c := range []struct{ name, fields, want string }{
		{"nothing more", ``, ""},
		{"everything", `"cities":["Austin"],"states":["tx"],"zips":["78701","78701-1234"],"lead_type":"B2B","date_start":"2026-11-01","date_end":"2026-11-21",
			"limit":1000,"limit_of_hems":1,"page":100,"deanonymize":true,"super_enrichment":false,"callback_url":"https://a.example/","metadata":{"a":1},
			"job_title_inclusions":["vp"],"job_title_exclusions":["intern"]`, ""},
		{"nulls", `"cities":null,"states":null,"zips":null,"lead_type":null,"date_start":null,"date_end":null,"limit":null,"limit_of_hems":null,"page":null,
			"deanonymize":null,"super_enrichment":null,"callback_url":null,"metadata":null,"job_title_inclusions":null,"job_title_exclusions":null`, ""},
		{"empty lists", `"cities":[],"states":[],"zips":[],"job_title_inclusions":[],"job_title_exclusions":[]`, ""},
		{"every type wrong", `"cities":"a","states":1,"zips":true,"lead_type":[],"date_start":1,"date_end":{},"limit":"1","limit_of_hems":true,"page":[],
			"deanonymize":"true","super_enrichment":1,"callback_url":1,"metadata":1,"job_title_inclusions":{},"job_title_exclusions":"a"`,
			`/cities wrong_type
/states wrong_type
/zips wrong_type
/lead_type wrong_type
/date_start wrong_type
/date_end wrong_type
/job_title_inclusions wrong_type
/job_title_exclusions wrong_type
/limit wrong_type
/limit_of_hems wrong_type
/page wrong_type
/deanonymize wrong_type
/super_enrichment wrong_type
/callback_url wrong_type
/metadata wrong_type`},

		{"500 places", `"cities":` + strs(500, "c%d") + `,"states":` + codes(500) + `,"zips":` + strs(500, "%05d"), ""},
		{"501 places", `"cities":` + strs(501, "c%d") + `,"states":` + codes(501) + `,"zips":` + strs(501, "%05d"),
			"/cities too_many\n/states too_many\n/zips too_many"},
		{"cities", `"cities":["` + strings.Repeat("é", 100) + `","` + strings.Repeat("é", 101) + `",""," ",null,1]`,
			"/cities/1 too_long\n/cities/2 empty\n/cities/3 empty\n/cities/4 wrong_type\n/cities/5 wrong_type"},
		{"states", `"states":["CA","ny"," tx ","C","CAL","C1","ÄÖ",""]`,
			"/states/3 invalid_state\n/states/4 invalid_state\n/states/5 invalid_state\n/states/6 invalid_state\n/states/7 invalid_state"},
		{"zips", `"zips":["12345","12345-6789"," 12345 ","1234","123456","12345-678","12345-","12345-67890","1234a","12345-678a","١٢٣٤٥",""]`,
			"/zips/3 invalid_zip\n/zips/4 invalid_zip\n/zips/5 invalid_zip\n/zips/6 invalid_zip\n/zips/7 invalid_zip\n/zips/8 invalid_zip\n/zips/9 invalid_zip\n/zips/10 invalid_zip\n/zips/11 invalid_zip"},
		{"a zip as a number", `"zips":[12345]`, "/zips/0 wrong_type"},
		{"lead types", `"lead_type":"b2c"`, ""},
		{"another lead type", `"lead_type":"b2g"`, "/lead_type unknown_value"},
		{"an empty lead type", `"lead_type":""`, "/lead_type unknown_value"},
		{"100 titles", `"job_title_inclusions":` + strs(100, "t%d") + `,"job_title_exclusions":` + strs(100, "t%d"), ""},
		{"101 titles", `"job_title_inclusions":` + strs(101, "t%d") + `,"job_title_exclusions":` + strs(101, "t%d"),
			"/job_title_inclusions too_many\n/job_title_exclusions too_many"},
		{"titles", `"job_title_inclusions":["` + strings.Repeat("é", 200) + `","` + strings.Repeat("é", 201) + `"],"job_title_exclusions":[""]`,
			"/job_title_inclusions/1 too_long\n/job_title_exclusions/0 empty"},

		{"one day", `"date_start":"2026-11-21","date_end":"2026-11-21"`, ""},
		{"tomorrow", `"date_start":"2026-11-22","date_end":"2026-11-22"`, "/date_start date_in_future\n/date_end date_in_future"},
		{"31 days", `"date_start":"2026-10-22","date_end":"2026-11-21"`, ""},
		{"32 days", `"date_start":"2026-10-21","date_end":"2026-11-21"`, "/date_start date_span"},
		{"the end before the start", `"date_start":"2026-11-02","date_end":"2026-11-01"`, "/date_start date_order"},
		{"a day that is not", `"date_start":"2026-02-29","date_end":"2026-04-31"`, "/date_start invalid_date\n/date_end invalid_date"},
		{"29 February", `"date_start":"2024-02-29","date_end":"2024-02-29"`, ""},
		{"other spellings", `"date_start":"2026-11-1","date_end":"20261101"`, "/date_start invalid_date\n/date_end invalid_date"},
		{"moments", `"date_start":"2026-11-01T00:00:00Z","date_end":"11/01/2026"`, "/date_start invalid_date\n/date_end invalid_date"},
		{"empty dates", `"date_start":"","date_end":" 2026-11-01"`, "/date_start invalid_date\n/date_end invalid_date"},

		{"least numbers", `"limit":1,"limit_of_hems":1,"page":1`, ""},
		{"most numbers", `"limit":1000,"limit_of_hems":20,"page":100`, ""},
		{"numbers below", `"limit":0,"limit_of_hems":0,"page":0`, "/limit out_of_range\n/limit_of_hems out_of_range\n/page out_of_range"},
		{"numbers above", `"limit":1001,"limit_of_hems":21,"page":100001`, "/limit out_of_range\n/limit_of_hems out_of_range\n/page out_of_range"},
		{"negative numbers", `"limit":-1,"limit_of_hems":-1e0,"page":-1`, "/limit out_of_range\n/limit_of_hems out_of_range\n/page out_of_range"},
		{"huge numbers", `"limit":1e400,"limit_of_hems":9223372036854775808,"page":1e99999999999999999999`, "/limit out_of_range\n/limit_of_hems out_of_range\n/page out_of_range"},
		{"integers in other spellings", `"limit":10.0,"limit_of_hems":1e1,"page":10000e-3`, ""},
		{"fractions", `"limit":10.5,"limit_of_hems":15e-1,"page":1e-99999999999999999999`, "/limit wrong_type\n/limit_of_hems wrong_type\n/page wrong_type"},
		{"the furthest page", `"limit":1,"page":100000`, ""},
		{"one page too far", `"limit":1000,"page":101`, "/page out_of_range"},
		{"one page too far, by default", `"page":1001`, "/page out_of_range"},
		{"no page of no limit", `"limit":0,"page":100000`, "/limit out_of_range"},

		{"a callback", `"callback_url":"nowhere"`, "/callback_url invalid_url"},
		{"metadata", `"metadata":{"a":{"b":[1]}}`, ""},
		{"unknown fields", `"x":1`, ""},
	} {
		body := `{"keywords":["crm"]`
		if c.fields != "" {
			body += "," + c.fields
		}
		for _, op := range []resolution.Operation{resolution.KeywordToLead, resolution.KeywordToLeadCount} {
			if _, problems := DefaultLimits().Keyword(op, parse(t, body+"}"), today); short(problems) != c.want {
				t.Errorf("%s, %s: got %q, want %q", op, c.name, short(problems), c.want)
			}
		}
	}
}

func TestKeywords(t *testing.T) {
	for _, c := range []struct {
		name, keywords string
		values         []string
		want           string
	}{
		{"one", `["crm"]`, []string{"crm"}, ""},
		{"their order and spelling", `["Zebra  CRM"," apple\t","crm"]`, []string{"Zebra  CRM", "apple", "crm"}, ""},
		{"each once", `["CRM","crm"," crm ","data  base","Data Base"]`, []string{"CRM", "data  base"}, ""},
		{"200 characters", `["  ` + strings.Repeat("é", 200) + ` "]`, []string{strings.Repeat("é", 200)}, ""},
		{"201 characters", `["` + strings.Repeat("é", 201) + `"]`, nil, "/keywords/0 too_long"},
		{"empty and blank", `["a",""," \u00a0\u200b"]`, nil, "/keywords/1 empty\n/keywords/2 empty"},
		{"no strings", `["a",1,null,[],{"a":["b"]},true]`, nil, "/keywords/1 wrong_type\n/keywords/2 wrong_type\n/keywords/3 wrong_type\n/keywords/4 wrong_type\n/keywords/5 wrong_type"},
		{"none", `[]`, nil, "/keywords too_few"},
		{"null", `null`, nil, "/keywords required"},
		{"no list", `"crm"`, nil, "/keywords wrong_type"},
		{"101", strs(101, "k%d"), nil, "/keywords too_many"},
	} {
		call, problems := DefaultLimits().Keyword(resolution.KeywordToLead, parse(t, `{"keywords":`+c.keywords+`}`), today)
		if got := call.Search.Keywords; short(problems) != c.want || !reflect.DeepEqual(got, c.values) {
			t.Errorf("%s: got %q, %q; want %q, %q", c.name, got, short(problems), c.values, c.want)
		}
	}
	if call, _ := DefaultLimits().Keyword(resolution.KeywordToLead, parse(t, `{"keywords":`+strs(100, "k%d")+`}`), today); len(call.Search.Keywords) != 100 {
		t.Errorf("of 100 keywords: %d", len(call.Search.Keywords))
	}
	if _, problems := DefaultLimits().Keyword(resolution.KeywordToLeadCount, parse(t, `{}`), today); short(problems) != "/keywords required" {
		t.Errorf("of an empty body: %q", short(problems))
	}
}

func TestKeyword(t *testing.T) {
	for _, c := range []struct {
		name, body string
		search     resolution.KeywordSearch
		page       resolution.SearchPage
		callback   string
	}{
		{
			"defaults", `{"keywords":["crm"]}`,
			resolution.KeywordSearch{Keywords: []string{"crm"}, Start: date("2026-11-14"), End: date("2026-11-21")},
			resolution.SearchPage{Number: 1, Limit: 100, HEMs: 20}, "",
		},
		{
			"everything", `{"keywords":["crm"],"cities":["New  York "," new york","Austin"],"states":["ny","NY","tx"],"zips":["10001","10001"],"lead_type":"B2B",
				"date_start":"2026-11-01","date_end":"2026-11-10","limit":50,"limit_of_hems":3,"page":2,"deanonymize":true,"super_enrichment":true,
				"callback_url":"https://a.example/b","job_title_inclusions":["VP  Sales","vp sales"],"job_title_exclusions":["Intern"]}`,
			resolution.KeywordSearch{
				Keywords: []string{"crm"}, Cities: []string{"New York", "Austin"}, States: []string{"NY", "TX"}, Zips: []string{"10001"}, LeadType: "b2b",
				Start: date("2026-11-01"), End: date("2026-11-10"), JobTitleInclusions: []string{"VP Sales"}, JobTitleExclusions: []string{"Intern"},
			},
			resolution.SearchPage{Number: 2, Limit: 50, HEMs: 3, Deanonymize: true, SuperEnrichment: true}, "https://a.example/b",
		},
		{
			"from a day on", `{"keywords":["crm"],"date_start":"2026-11-01"}`,
			resolution.KeywordSearch{Keywords: []string{"crm"}, Start: date("2026-11-01"), End: date("2026-11-08")},
			resolution.SearchPage{Number: 1, Limit: 100, HEMs: 20}, "",
		},
		{
			"from a day on, up to today", `{"keywords":["crm"],"date_start":"2026-11-20"}`,
			resolution.KeywordSearch{Keywords: []string{"crm"}, Start: date("2026-11-20"), End: date("2026-11-21")},
			resolution.SearchPage{Number: 1, Limit: 100, HEMs: 20}, "",
		},
		{
			"up to a day", `{"keywords":["crm"],"date_end":"2026-03-03"}`,
			resolution.KeywordSearch{Keywords: []string{"crm"}, Start: date("2026-02-24"), End: date("2026-03-03")},
			resolution.SearchPage{Number: 1, Limit: 100, HEMs: 20}, "",
		},
	} {
		o := parse(t, c.body)
		call, problems := DefaultLimits().Keyword(resolution.KeywordToLead, o, today)
		if problems != nil {
			t.Errorf("%s: %q", c.name, short(problems))
			continue
		}
		if !reflect.DeepEqual(call.Search, c.search) || call.Page != c.page || call.CallbackURL != c.callback {
			t.Errorf("%s: got %+v %+v %q, want %+v %+v %q", c.name, call.Search, call.Page, call.CallbackURL, c.search, c.page, c.callback)
		}
		if string(call.Payload) != string(o.text) {
			t.Errorf("%s: payload %s", c.name, call.Payload)
		}
	}
}

func TestFingerprint(t *testing.T) {
	print := func(fields string, today time.Time) [32]byte {
		call, problems := DefaultLimits().Keyword(resolution.KeywordToLeadCount, parse(t, "{"+fields+"}"), today)
		if problems != nil {
			t.Fatalf("%s: %q", fields, short(problems))
		}
		return call.Fingerprint
	}
	tomorrow := today.AddDate(0, 0, 1)
	for _, c := range []struct {
		name string
		a, b string
		same bool
	}{
		{"order of members", `"keywords":["a"],"cities":["b"]`, `"cities":["b"],"keywords":["a"]`, true},
		{"order of values", `"keywords":["a","b"],"states":["CA","NY"]`, `"keywords":["b","a"],"states":["NY","CA"]`, true},
		{"case", `"keywords":["Ab"],"cities":["C"],"states":["ca"],"lead_type":"B2B","job_title_inclusions":["D"],"job_title_exclusions":["E"]`,
			`"keywords":["aB"],"cities":["c"],"states":["CA"],"lead_type":"b2b","job_title_inclusions":["d"],"job_title_exclusions":["e"]`, true},
		{"duplicates", `"keywords":["a","A","a "],"zips":["12345","12345"]`, `"keywords":["a"],"zips":["12345"]`, true},
		{"spacing", `"keywords":[" a  b "],"cities":["new\tyork"],"job_title_inclusions":["vp  sales"]`,
			`"keywords":["a b"],"cities":["new york"],"job_title_inclusions":["vp sales"]`, true},
		{"what does not choose leads", `"keywords":["a"]`,
			`"keywords":["a"],"limit":7,"page":2,"limit_of_hems":2,"deanonymize":true,"super_enrichment":true,"callback_url":"https://a.example","metadata":{"a":1},"x":1`, true},
		{"empty lists", `"keywords":["a"],"cities":[],"states":null`, `"keywords":["a"]`, true},

		{"a keyword", `"keywords":["a"]`, `"keywords":["b"]`, false},
		{"where values part", `"keywords":["a","bc"]`, `"keywords":["ab","c"]`, false},
		{"one value or two", `"keywords":["a b"]`, `"keywords":["a","b"]`, false},
		{"which field", `"keywords":["a"],"cities":["b"]`, `"keywords":["a"],"job_title_inclusions":["b"]`, false},
		{"inclusion or exclusion", `"keywords":["a"],"job_title_exclusions":["b"]`, `"keywords":["a"],"job_title_inclusions":["b"]`, false},
		{"states", `"keywords":["a"],"states":["CA"]`, `"keywords":["a"],"states":["NY"]`, false},
		{"zips", `"keywords":["a"],"zips":["12345"]`, `"keywords":["a"],"zips":["12345-6789"]`, false},
		{"the lead type", `"keywords":["a"],"lead_type":"b2b"`, `"keywords":["a"],"lead_type":"b2c"`, false},
		{"any lead type", `"keywords":["a"],"lead_type":"b2b"`, `"keywords":["a"]`, false},
		{"the dates", `"keywords":["a"],"date_start":"2026-11-01"`, `"keywords":["a"],"date_end":"2026-11-01"`, false},
		{"said or not", `"keywords":["a"],"date_start":"2026-11-14","date_end":"2026-11-21"`, `"keywords":["a"]`, false},
	} {
		if got := print(c.a, today) == print(c.b, today); got != c.same {
			t.Errorf("%s: same is %t, want %t", c.name, got, c.same)
		}
		if print(c.a, today) != print(c.a, tomorrow) {
			t.Errorf("%s: another fingerprint after midnight", c.name)
		}
	}
}

func TestMoreProblemsThanListed(t *testing.T) {
	for _, c := range []struct {
		wrong, listed int
		last          Problem
	}{
		{100, 100, Problem{"/zips/99", "invalid_zip", "must be a ZIP code, such as 12345 or 12345-6789"}},
		{101, 100, Problem{"", "more_problems", "and 2 more problems"}},
		{500, 100, Problem{"", "more_problems", "and 401 more problems"}},
	} {
		_, problems := DefaultLimits().Keyword(resolution.KeywordToLead, parse(t, `{"keywords":["a"],"zips":`+strs(c.wrong, "x%d")+`}`), today)
		if len(problems) != c.listed || problems[len(problems)-1] != c.last {
			t.Errorf("%d problems: got %d, the last %+v; want %d, %+v", c.wrong, len(problems), problems[len(problems)-1], c.listed, c.last)
		}
	}
}

func TestLimits(t *testing.T) {
	if err := DefaultLimits().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	l := DefaultLimits()
	l.Keywords, l.PageLimit, l.DefaultPageLimit = 0, 10, 11
	const want = "limit keywords is 0; it must be at least 1\nlimit default page limit is 11; it must be at most 10"
	if err := l.Validate(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}

	l = DefaultLimits()
	l.Keywords, l.DateSpan, l.DefaultSpan, l.Depth, l.PageLimit, l.DefaultPageLimit = 1, 2, 1, 10, 10, 5
	for _, c := range []struct{ body, want string }{
		{`{"keywords":["a"],"page":2}`, ""},
		{`{"keywords":["a"],"page":3}`, "/page out_of_range"},
		{`{"keywords":["a","b"],"limit":11}`, "/keywords too_many\n/limit out_of_range"},
		{`{"keywords":["a"],"date_start":"2026-11-01","date_end":"2026-11-02"}`, ""},
		{`{"keywords":["a"],"date_start":"2026-11-01","date_end":"2026-11-03"}`, "/date_start date_span"},
	} {
		if _, problems := l.Keyword(resolution.KeywordToLead, parse(t, c.body), today); short(problems) != c.want {
			t.Errorf("%s: got %q, want %q", c.body, short(problems), c.want)
		}
	}
}
