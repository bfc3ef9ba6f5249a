package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
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
				sameAnswers(rt, e, op, batch, keys)
			}
		}
	})
}

// sameAnswers checks that the answers as columns are those of one request after another, also
// where a limit ends them early, and when the engine knows the codes of companies already.
func sameAnswers(t *rapid.T, e *Engine, op resolution.Operation, b resolution.Batch, keys []string) {
	want := make([]string, len(keys))
	for i, key := range keys {
		var answer resolution.Answer
		if key != "" {
			var err error
			if answer, err = e.Resolve(context.Background(), resolution.Request{Operation: op, Key: key}); err != nil {
				t.Fatal(err)
			}
		}
		want[i] = answerFacts(t, op, key, answer)
	}
	got, asked := resolutiontest.Answers(), resolutiontest.Questions(op, keys...)
	for range 2 {
		limit := rapid.SampledFrom([]int{0, 500, 2000, math.MaxInt}).Draw(t, "limit")
		for from := 0; from < len(keys); {
			rest := keys[from:]
			n, err := b.Resolve(context.Background(), asked.Slice(from, len(keys)), limit, got)
			if err != nil || n < 1 || n > len(rest) || n < len(rest) && got.Size <= limit || len(got.Reasons) != n || len(got.Matched) != n {
				t.Fatalf("%s: %d keys with %d bytes, %d reasons and %d matches of %d keys, limit %d: %v", op, n, got.Size, len(got.Reasons), len(got.Matched), len(rest), limit, err)
			}
			for i, key := range rest[:n] {
				answer := resolution.Answer{Reason: got.Reasons[i], Lead: got.Lead(i)}
				if i < len(got.OrgTypes) {
					answer.OrgType = got.OrgTypes[i]
				}
				if facts := answerFacts(t, op, key, answer); facts != want[from+i] {
					t.Fatalf("%s of %s (%d of %d) in columns, limit %d:\n got %s\nwant %s", op, key, from+i, len(keys), limit, facts, want[from+i])
				}
				got.Matched[i] = true // whoever has no match has no data
				if l := got.Lead(i); answer.Lead == nil && !reflect.DeepEqual(l, &resolution.Lead{}) {
					t.Fatalf("%s of %s has no match, and %+v", op, key, l)
				}
			}
			from += n
		}
	}
}

// answerFacts is an answer as text, without the hashes that follow from the key.
func answerFacts(t *rapid.T, op resolution.Operation, key string, a resolution.Answer) string {
	if op == resolution.EmailToHEM && strings.Contains(key, "@") && a.Lead != nil {
		l := *a.Lead
		l.HashedEmails, a.Lead = nil, &l
	}
	lead, err := json.Marshal(a.Lead)
	if err != nil {
		t.Fatal(err)
	}
	raw := ""
	if a.Lead != nil {
		raw = a.Lead.PhoneRaw
	}
	return fmt.Sprintf("%q %q %q %s", a.Reason, a.OrgType, raw, lead)
}

// TestBatchOfInvalidKeys fails as a request does.
func TestBatchOfInvalidKeys(t *testing.T) {
	b := New(sample(t), Options{}).NewBatch(resolution.EmailToHEM)
	for _, key := range []string{"no digest", strings.Repeat("0", 66)} {
		if _, err := resolutiontest.Ask(t.Context(), b, resolution.EmailToHEM, "ada@bakery.example", key); !errors.Is(err, resolution.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", key, err)
		}
	}
}
