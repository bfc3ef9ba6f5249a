package search

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var today = time.Date(2026, 11, 20, 23, 59, 59, 0, time.FixedZone("", -3600)) // the 21st in UTC

// cells reads "name=cell|name=cell".
func cells(text string) Cells {
	fields := map[string]string{}
	for field := range strings.SplitSeq(text, "|") {
		name, cell, _ := strings.Cut(field, "=")
		fields[name] = cell
	}
	return func(name string) string { return fields[name] }
}

// many is n different values.
func many(n int, format string) string {
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(values, ";")
}

func TestKeysOfCells(t *testing.T) {
	const days = `"date_end":"2026-11-21","date_start":"2026-11-14"`
	for _, c := range []struct{ name, cells, want string }{
		{"the least", `keywords=crm`, `{` + days + `,"keywords":["crm"],"limit":1000,"limit_of_hems":20}`},
		{"order, case, spacing and duplicates mean nothing", "keywords= Sales\t software;CRM;;crm ;sales software;", `{` + days + `,"keywords":["crm","sales software"],"limit":1000,"limit_of_hems":20}`},
		{"everything", `keywords=crm|cities=San  Example;austin|states=tx; CA|zips=78701-1234;02108|lead_type=B2B|date_start=2026-11-01|date_end=2026-11-21|` +
			`limit=10|limit_of_hems=1|page=3|deanonymize=TRUE|super_enrichment=yes|job_title_inclusions=VP|job_title_exclusions=Intern;  Head of "R&D"`,
			`{"cities":["austin","san example"],"date_end":"2026-11-21","date_start":"2026-11-01","deanonymize":true,"job_title_exclusions":["head of \"r&d\"","intern"],` +
				`"job_title_inclusions":["vp"],"keywords":["crm"],"lead_type":"b2b","limit":10,"limit_of_hems":1,"page":3,"states":["CA","TX"],"super_enrichment":true,"zips":["02108","78701-1234"]}`},
		{"cells that say they are empty", `keywords=crm|cities=null|states=N/A|zips=none|lead_type=-|date_start=undefined|limit= |page=NULL|deanonymize=n/a`,
			`{` + days + `,"keywords":["crm"],"limit":1000,"limit_of_hems":20}`},
		{"lists of files that have such", `keywords=["crm",null,"a; b"]|cities=[]|states=["tx"]|limit=["10"]|limit_of_hems=[null]`,
			`{` + days + `,"keywords":["a; b","crm"],"limit":10,"limit_of_hems":20,"states":["TX"]}`},
		{"marks of spreadsheets", `keywords='crm;'s work;="02138"|states='TX|zips=="02138"`,
			`{` + days + `,"keywords":["'s work","02138","crm"],"limit":1000,"limit_of_hems":20,"states":["TX"],"zips":["02138"]}`},
		{"what is false", `keywords=crm|deanonymize=0|super_enrichment=No`, `{` + days + `,"keywords":["crm"],"limit":1000,"limit_of_hems":20}`},
		{"numbers of programs without whole ones", `keywords=crm|limit=0100.0|limit_of_hems=5.|page=1.00`, `{` + days + `,"keywords":["crm"],"limit":100,"limit_of_hems":5,"page":1}`},
		{"a first day alone", `keywords=crm|date_start=2026-11-01`, `{"date_end":"2026-11-08","date_start":"2026-11-01","keywords":["crm"],"limit":1000,"limit_of_hems":20}`},
		{"a first day alone, of this week", `keywords=crm|date_start=2026-11-20`, `{"date_end":"2026-11-21","date_start":"2026-11-20","keywords":["crm"],"limit":1000,"limit_of_hems":20}`},
		{"a last day alone", `keywords=crm|date_end=2026-11-09`, `{"date_end":"2026-11-09","date_start":"2026-11-02","keywords":["crm"],"limit":1000,"limit_of_hems":20}`},
		{"the furthest page", `keywords=crm|limit=1|page=100000`, `{` + days + `,"keywords":["crm"],"limit":1,"limit_of_hems":20,"page":100000}`},
		{"31 days", `keywords=crm|date_start=2026-10-22|date_end=2026-11-21`, `{"date_end":"2026-11-21","date_start":"2026-10-22","keywords":["crm"],"limit":1000,"limit_of_hems":20}`},
		{"500 cities", `keywords=crm|cities=` + strings.Repeat("austin;", 501), `{"cities":["austin"],` + days + `,"keywords":["crm"],"limit":1000,"limit_of_hems":20}`},
	} {
		q, reason := DefaultLimits().Read(cells(c.cells), today, false)
		if got := q.Key(); reason != "" || got != c.want {
			t.Errorf("%s: %q\n got %s\nwant %s", c.name, reason, got, c.want)
		}
		if parsed, err := ParseKey(q.Key()); err != nil || !reflect.DeepEqual(parsed, q) {
			t.Errorf("%s: its key reads %+v, %v", c.name, parsed, err)
		}
	}
}

// A count has no pages, and what is only of leads makes no other count.
func TestKeysOfCounts(t *testing.T) {
	q, reason := DefaultLimits().Read(cells(`keywords=crm|states=CA|limit=wrong|page=-1|deanonymize=maybe|super_enrichment=true|limit_of_hems=3`), today, true)
	const want = `{"date_end":"2026-11-21","date_start":"2026-11-14","keywords":["crm"],"limit_of_hems":3,"states":["CA"]}`
	if got := q.Key(); reason != "" || got != want || q.Pages(DefaultLimits()) != 1 {
		t.Errorf("%q, %s, want %s", reason, got, want)
	}
}

func TestReasons(t *testing.T) {
	for _, c := range []struct{ name, cells, want string }{
		{"no keywords", `states=CA`, "keywords:missing"},
		{"no keyword among them", `keywords= ; ;`, "keywords:missing"},
		{"a word for none", `keywords=n/a`, "keywords:missing"},
		{"101 keywords", `keywords=` + many(101, "k%d"), "keywords:too_many"},
		{"a long keyword", `keywords=` + strings.Repeat("é", 201), "keywords:too_long"},
		{"no text", "keywords=crm|cities=\xff", "cities:invalid_utf8"},
		{"501 cities", `keywords=crm|cities=` + many(501, "c%d"), "cities:too_many"},
		{"a long city", `keywords=crm|cities=` + strings.Repeat("é", 101), "cities:too_long"},
		{"a state's name", `keywords=crm|states=California`, "states:invalid"},
		{"a zip without its zero", `keywords=crm|zips=2108`, "zips:invalid"},
		{"another lead type", `keywords=crm|lead_type=b2g`, "lead_type:invalid"},
		{"a day that is not", `keywords=crm|date_start=2026-02-29`, "date_start:invalid"},
		{"a moment", `keywords=crm|date_end=2026-11-01T00:00:00Z`, "date_end:invalid"},
		{"tomorrow", `keywords=crm|date_end=2026-11-22`, "date_end:in_future"},
		{"the end before the start", `keywords=crm|date_start=2026-11-02|date_end=2026-11-01`, "date_range:order"},
		{"32 days", `keywords=crm|date_start=2026-10-21|date_end=2026-11-21`, "date_range:too_long"},
		{"no number", `keywords=crm|limit=many`, "limit:invalid"},
		{"a signed number", `keywords=crm|limit=+5`, "limit:invalid"},
		{"a fraction", `keywords=crm|limit=10.5`, "limit:invalid"},
		{"no whole number", `keywords=crm|limit=.0`, "limit:invalid"},
		{"no leads", `keywords=crm|limit=0`, "limit:out_of_range"},
		{"too many leads", `keywords=crm|limit=1001`, "limit:out_of_range"},
		{"a number too long to be one", `keywords=crm|limit_of_hems=99999999999999999999`, "limit_of_hems:out_of_range"},
		{"a page too far", `keywords=crm|page=101`, "page:out_of_range"},
		{"a page far too far", `keywords=crm|page=100001|limit=1`, "page:out_of_range"},
		{"neither true nor false", `keywords=crm|deanonymize=maybe`, "deanonymize:invalid"},
		{"101 titles", `keywords=crm|job_title_inclusions=` + many(101, "t%d"), "job_title_inclusions:too_many"},
		{"a long title", `keywords=crm|job_title_exclusions=` + strings.Repeat("x", 201), "job_title_exclusions:too_long"},
		{"the first of several", `keywords=crm|page=x|states=x`, "states:invalid"},
	} {
		q, reason := DefaultLimits().Read(cells(c.cells), today, false)
		if reason != c.want || !reflect.DeepEqual(q, Query{}) {
			t.Errorf("%s: %q and %+v, want %q", c.name, reason, q, c.want)
		}
	}
}

func TestKeysThatAreNone(t *testing.T) {
	for _, key := range []string{
		``, `crm`, `{}`, `{"keywords":["crm"]}`,
		`{"date_end":"2026-11-21","date_start":"2026-11-14","keywords":["crm"],"limit_of_hems":20} `,
		`{"keywords":["crm"],"date_end":"2026-11-21","date_start":"2026-11-14","limit_of_hems":20}`,
		`{"date_end":"2026-11-21","date_start":"2026-11-14","keywords":["crm"],"limit_of_hems":20,"x":1}`,
	} {
		if _, err := ParseKey(key); !errors.Is(err, errNoKey) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

// FuzzKey: a key reads as the query it was made of, and cells made of a query
// make it again.
func FuzzKey(f *testing.F) {
	f.Add("crm; Sales  software", "Austin;san example", "ca;TX", "12345", "2026-11-01", "2026-11-20", "10", "3", true, false)
	f.Add("İstanbul;ǅ;Straße\u2028x;\u200bCRM\u200b", "null", "", "", "", "2026-11-21", "1000.0", "", false, true)
	f.Fuzz(func(t *testing.T, keywords, cities, states, zips, start, end, limit, page string, deanonymize, count bool) {
		from := map[string]string{"keywords": keywords, "cities": cities, "states": states, "zips": zips, "date_start": start, "date_end": end,
			"limit": limit, "page": page, "deanonymize": fmt.Sprint(deanonymize), "job_title_exclusions": cities}
		q, reason := DefaultLimits().Read(func(name string) string { return from[name] }, today, count)
		if reason != "" {
			return
		}
		key := q.Key()
		if parsed, err := ParseKey(key); err != nil || !reflect.DeepEqual(parsed, q) {
			t.Errorf("%s reads %+v, %v", key, parsed, err)
		}
		again := map[string]string{"keywords": strings.Join(q.Keywords, ";") + ";", "cities": strings.Join(q.Cities, ";") + ";", "states": strings.Join(q.States, ";") + ";",
			"zips": strings.Join(q.Zips, ";") + ";", "date_start": q.Start.Format(DayFormat), "date_end": q.End.Format(DayFormat), "limit": fmt.Sprint(q.Limit),
			"deanonymize": fmt.Sprint(q.Deanonymize), "job_title_exclusions": strings.Join(q.JobTitleExclusions, ";") + ";"}
		if q.Page > 0 {
			again["page"] = fmt.Sprint(q.Page)
		}
		second, reason := DefaultLimits().Read(func(name string) string { return again[name] }, today, count)
		if reason != "" || second.Key() != key {
			t.Errorf("%s becomes %q, %s", key, reason, second.Key())
		}
		if !slices.IsSorted(q.Keywords) || q.Pages(DefaultLimits()) < max(q.Page, 1) {
			t.Errorf("%s has %d pages", key, q.Pages(DefaultLimits()))
		}
	})
}
