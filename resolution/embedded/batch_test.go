package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/transforms/email"
)

// someDirectory draws reference data of few keys, so that much of it meets.
func someDirectory(t *rapid.T, tb testing.TB) *directory.Directory {
	var people, companies, ranges, visits strings.Builder
	some := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	count := func(name string) int { return rapid.IntRange(0, 12).Draw(t, name) }
	people.WriteString("network_url,first_name,last_name,emails,phones,company_domain,last_seen_at,city\n")
	for range count("people") {
		fmt.Fprintf(&people, "n.example/in/%s,%s,%s,%s;%s,%s,%s,%s,%s\n", some("who", "a", "b", "c", "d"), some("first", "", "Ann"), some("last", "", "Last"),
			someEmail(t), some("second", "", "x@y.example", hashOf("z@y.example", 32)), some("phones", "", "+12025550100", "(202) 555-0100;+12025550102", "+12025550101;+12025550102"),
			some("domain", "", "a.example", "b.example", "c.example"), some("seen", "", "2026-01-02"), some("city", "", "Here"))
	}
	companies.WriteString("domain,name,industry,year_founded\n")
	for range count("companies") {
		fmt.Fprintf(&companies, "%s.example,%s,%s,%s\n", some("company", "a", "b"), some("name", "", "A", "B"), some("industry", "", "Tea"), some("year", "", "1987"))
	}
	ranges.WriteString("cidr,company_domain,name,org_type\n")
	for range count("ranges") {
		fmt.Fprintf(&ranges, "%s,%s,%s,%s\n", some("cidr", "8.8.8.0/24", "8.8.8.8/32", "8.8.0.0/16", "2001:4860::/32", "2001:4860::8/128"),
			some("owner", "", "a.example", "c.example"), some("called", "", "N"), some("type", "isp", "business", "hosting", "circus"))
	}
	visits.WriteString("ip,network_url,confidence\n")
	for range count("visits") {
		fmt.Fprintf(&visits, "%s,n.example/in/%s,0.%d\n", some("ip", "8.8.8.8", "8.8.4.4", "2001:4860::8"), some("visitor", "a", "b", "c", "d", "e"), rapid.IntRange(1, 9).Draw(t, "confidence"))
	}
	dir := tb.TempDir()
	files := directory.Files{Companies: file(tb, "c.csv", companies.String()), People: file(tb, "p.csv", people.String()),
		IPRanges: file(tb, "r.csv", ranges.String()), Visits: file(tb, "v.csv", visits.String())}
	if rapid.Bool().Draw(t, "without companies") {
		files.Companies = ""
	}
	if _, err := directory.Import(tb.Context(), dir, files, directory.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	d, err := directory.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// hashOf is a digest of an address by its length in hex.
func hashOf(address string, length int) string {
	d := email.Sum([]byte(address))
	return map[int]string{32: fmt.Sprintf("%x", d.MD5), 40: fmt.Sprintf("%x", d.SHA1), 64: fmt.Sprintf("%x", d.SHA256)}[length]
}

// someEmail draws the key of an email: an address, or a digest of one.
func someEmail(t *rapid.T) string {
	address := rapid.SampledFrom([]string{"x@y.example", "z@y.example", "a.b+c@gmail.com", "ab@gmail.com", "unknown@y.example"}).Draw(t, "address")
	if length := rapid.SampledFrom([]int{0, 0, 32, 40, 64}).Draw(t, "length"); length > 0 {
		return hashOf(address, length)
	}
	return address
}

// someKey draws a key that an operation may be asked about, "" for none.
func someKey(t *rapid.T, op resolution.Operation) string {
	if rapid.IntRange(0, 9).Draw(t, "none") == 0 {
		return ""
	}
	switch op.Identifier() {
	case resolution.Email:
		return someEmail(t)
	case resolution.NetworkURL:
		return "n.example/in/" + rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "profile")
	}
	return rapid.SampledFrom([]string{"8.8.8.8", "8.8.8.9", "8.8.4.4", "9.9.9.9", "10.1.2.3", "2001:4860::8", "2001:4860::9", "2001:4861::", "::1"}).Draw(t, "ip")
}

// TestBatchIsSingle: a batch answers as one request after another, whatever its
// memory was used for before.
func TestBatchIsSingle(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var d *directory.Directory
		if rapid.IntRange(0, 9).Draw(rt, "directory") > 0 {
			d = someDirectory(rt, t)
			defer d.Close()
		}
		o := Options{IncludeProviders: rapid.Bool().Draw(rt, "providers")}
		if listed := rapid.SampledFrom([]string{"", "n.example/in/a", "x@y.example", "+12025550100", "8.8.8.8"}).Draw(rt, "listed"); listed != "" {
			o.Listed = func(_ resolution.Identifier, value string) bool { return value == listed }
		}
		e := New(d, o)
		for _, op := range resolution.SingleRecord {
			batch := e.NewBatch(op)
			for range 3 {
				keys := make([]string, rapid.IntRange(0, 40).Draw(rt, "keys"))
				for i := range keys {
					keys[i] = someKey(rt, op)
				}
				answers := make([]resolution.Answer, len(keys))
				if err := batch.Resolve(t.Context(), keys, answers); err != nil {
					rt.Fatal(err)
				}
				for i, key := range keys {
					var want resolution.Answer
					if key != "" {
						var err error
						if want, err = e.Resolve(t.Context(), resolution.Request{Operation: op, Key: key}); err != nil {
							rt.Fatal(err)
						}
					}
					if !reflect.DeepEqual(answers[i], want) {
						rt.Fatalf("%s of %s (%d of %d):\n got %+v\n     %+v\nwant %+v\n     %+v", op, key, i, len(keys), answers[i], answers[i].Lead, want, want.Lead)
					}
				}
				if op == resolution.EmailToHEM && o.Listed == nil {
					sameProfiles(rt, batch.(resolution.ProfileBatch), keys, answers)
				}
				if op.FindsPeople() {
					samePeople(rt, op, batch.(resolution.PeopleBatch), keys, answers)
				}
				if op == resolution.IPToCompany {
					sameCompanies(rt, batch.(resolution.CompanyBatch), keys, answers)
				}
			}
		}
	})
}

// sameProfiles checks that addresses have the profiles of the leads of their keys.
func sameProfiles(t *rapid.T, b resolution.ProfileBatch, keys []string, answers []resolution.Answer) {
	var addresses, got resolution.Texts
	addresses.Reset()
	var want []string
	for i, key := range keys {
		url := ""
		if !strings.Contains(key, "@") {
			key = ""
		} else if l := answers[i].Lead; l != nil {
			url = strings.Clone(l.NetworkURL)
		}
		addresses.Add([]byte(key))
		want = append(want, url)
	}
	if err := b.Profiles(context.Background(), &addresses, &got); err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		if string(got.At(i)) != want[i] {
			t.Fatalf("%s by its address: %s, want %s", key, got.At(i), want[i])
		}
	}
}

// companyList is a table of companies that keeps copies of them.
type companyList struct{ all []*resolution.Company }

func (l *companyList) Add(c *resolution.Company) int32 {
	encoded, err := json.Marshal(c)
	kept := &resolution.Company{}
	if err := errors.Join(err, json.Unmarshal(encoded, kept)); err != nil {
		panic(err)
	}
	l.all = append(l.all, kept)
	return int32(len(l.all))
}

func (l *companyList) of(code int32) *resolution.Company {
	if code == 0 {
		return nil
	}
	return l.all[code-1]
}

// samePeople checks that the answers as columns are those of the keys, also where a limit ends
// them early: the companies by their codes, all else of a lead, and the reasons.
func samePeople(t *rapid.T, op resolution.Operation, b resolution.PeopleBatch, keys []string, answers []resolution.Answer) {
	want := make([]string, len(keys))
	for i, a := range answers { // leads are in the memory of the batch
		want[i] = answerFacts(t, a)
	}
	table := &companyList{}
	var p resolution.People
	p.Companies.Table = table
	for range 2 { // the second time, the engine knows the codes
		limit := rapid.SampledFrom([]int{0, 500, 2000, math.MaxInt}).Draw(t, "limit")
		for from := 0; from < len(keys); {
			rest := keys[from:]
			n, err := b.ResolvePeople(context.Background(), rest, limit, &p)
			if err != nil || n < 1 || n > len(rest) || n < len(rest) && p.Size <= limit || len(p.Reasons) != n || len(p.Matched) != n {
				t.Fatalf("%s: %d keys with %d bytes, %d reasons and %d matches of %d keys, limit %d: %v", op, n, p.Size, len(p.Reasons), len(p.Matched), len(rest), limit, err)
			}
			leads := make([]resolution.Lead, n)
			p.Leads(leads)
			for i, key := range rest[:n] {
				got := resolution.Answer{Reason: p.Reasons[i]}
				if p.Matched[i] {
					if got.Lead = &leads[i]; p.Whole {
						got.Lead.Company = table.of(p.Companies.Codes[i])
					}
				} else if p.Whole && p.Companies.Codes[i] != 0 {
					t.Fatalf("%s of %s has no match, and a company", op, key)
				}
				if facts := answerFacts(t, got); facts != want[from+i] {
					t.Fatalf("%s of %s (%d of %d) in columns, limit %d:\n got %s\nwant %s", op, key, from+i, len(keys), limit, facts, want[from+i])
				}
				if op == resolution.Deanonymization && !p.Matched[i] && (p.MatchLevels[i] != "" || p.Confidences[i] != 0) {
					t.Fatalf("%s of %s has no match, and match level %q with confidence %v", op, key, p.MatchLevels[i], p.Confidences[i])
				}
			}
			from += n
		}
	}
}

// answerFacts is an answer as text.
func answerFacts(t *rapid.T, a resolution.Answer) string {
	lead, err := json.Marshal(a.Lead)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%q %s", a.Reason, lead)
}

// sameCompanies checks that parsed addresses have the answers of their keys.
func sameCompanies(t *rapid.T, b resolution.CompanyBatch, keys []string, want []resolution.Answer) {
	n := len(keys)
	want = slices.Clone(want) // leads are in the memory of the batch
	companies := make([]*resolution.Company, n)
	for i, a := range want {
		if a.Lead != nil {
			companies[i] = a.Lead.Company
		}
	}
	addrs := make([]netip.Addr, n)
	for i, key := range keys {
		if key != "" {
			addrs[i] = netip.MustParseAddr(key)
		}
	}
	table := &companyList{}
	got := resolution.Companies{CompanyCodes: resolution.CompanyCodes{Table: table, Codes: make([]int32, n)}, OrgTypes: make([]string, n), Reasons: make([]string, n)}
	for range 2 { // the second time, the engine knows the codes
		if err := b.Companies(context.Background(), addrs, got); err != nil {
			t.Fatal(err)
		}
		for i := range keys {
			if c := table.of(got.Codes[i]); !reflect.DeepEqual(c, companies[i]) || got.Reasons[i] != want[i].Reason || got.OrgTypes[i] != want[i].OrgType {
				t.Fatalf("%s by its address: %+v, %q, %q; want %+v", keys[i], c, got.Reasons[i], got.OrgTypes[i], want[i])
			}
		}
	}
}

// TestBatchOfInvalidKeys fails as a request does.
func TestBatchOfInvalidKeys(t *testing.T) {
	b := New(nil, Options{}).NewBatch(resolution.IPToCompany)
	if err := b.Resolve(t.Context(), []string{"8.8.8.8", "not an address"}, make([]resolution.Answer, 2)); err == nil {
		t.Error("an invalid key was answered")
	}
}
