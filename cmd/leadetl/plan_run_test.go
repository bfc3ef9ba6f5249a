//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/sinks"
)

// till is between a run and its service, and counts what passes. To ask for a
// result or the balance is no call: it costs nothing.
type till struct{ calls, credits atomic.Int64 }

func newTill(t *testing.T, service string) (*till, string) {
	to, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	counts := &till{}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			if !strings.HasSuffix(r.In.URL.Path, "/result") && r.In.URL.Path != "/account/balance" {
				counts.calls.Add(1)
			}
			r.SetURL(to)
		},
		ModifyResponse: func(a *http.Response) error {
			a.Header.Del("Retry-After") // the sample is searched at once
			spent, err := spentBy(a)
			counts.credits.Add(spent)
			return err
		},
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return counts, s.URL
}

// spentBy is what an answer cost: a search's is said with its result.
func spentBy(a *http.Response) (int64, error) {
	if a.Request.URL.Path == "/account/balance" {
		return 0, nil
	}
	if !strings.HasPrefix(a.Request.URL.Path, "/resolve/") {
		return strconv.ParseInt(a.Header.Get("X-Credits-Spent"), 10, 64)
	}
	body, err := io.ReadAll(a.Body)
	a.Body = io.NopCloser(bytes.NewReader(body))
	var result struct {
		Credits struct {
			Spent int64 `json:"spent"`
		} `json:"credits"`
	}
	return result.Credits.Spent, errors.Join(err, json.Unmarshal(body, &result))
}

// since is what was counted since the last time.
func (c *till) since() (calls, credits int64) { return c.calls.Swap(0), c.credits.Swap(0) }

// TestPlanIsWhatHappens plans runs against a service and then runs them, in
// one state folder: each plan has to say what comes over the wire.
func TestPlanIsWhatHappens(t *testing.T) {
	t.Parallel()
	p := clitest.NewPlace(t)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(p.Customer("Example Rockets", "10000")), 0o600); err != nil {
		t.Fatal(err)
	}
	counted, service := newTill(t, p.Serve(slices.Concat(clitest.Unlimited, []string{"--limit-single", "60000/min", "--limit-create", "30000/min"})...).Public)
	const (
		ips      = "ip\n192.31.196.5\n::ffff:192.31.196.5\n"
		profiles = "network_url\nhttps://network.example/in/ada-example\nnetwork.example/in/ben-specimen\nHTTPS://WWW.network.example/in/Ada-Example/\n"
		counts   = "keywords,date_start,date_end\ntea,2026-11-01,2026-11-13\n TEA ,2026-11-01,2026-11-13\n"
		fullPage = "keywords,date_start,date_end,limit,page,deanonymize\ntea,2026-11-01,2026-11-13,2,1,yes\n"
	)
	for _, c := range []struct {
		operation, sample, known string
		credits                  int64 // of known, where every key is found
	}{
		{"ip_to_company", "ips.csv", ips, 1},
		{"deanonymization", "ips.csv", ips, 3},
		{"enrichment", "profiles.csv", profiles, 4},
		{"keyword_to_lead_count", "searches.csv", counts, 1},
		{"keyword_to_lead", "searches.csv", fullPage, 4},
	} {
		t.Run(c.operation, func(t *testing.T) {
			dir := t.TempDir()
			known := filepath.Join(dir, "known.csv")
			if err := os.WriteFile(known, []byte(c.known), 0o600); err != nil {
				t.Fatal(err)
			}
			sample := filepath.Join(clitest.Samples, c.sample)
			var asOf []string
			if strings.HasPrefix(c.operation, "keyword") {
				asOf = []string{"--as-of", "2026-11-13"}
			}
			command := func(in, out string, flags ...string) []string {
				return append([]string{c.operation, "--in", in, "--out", filepath.Join(dir, out), "--state", filepath.Join(dir, "state"),
					"--resolver", service, "--api-key-file", key, "--quiet", "--set", "rows_per_part=10"}, append(asOf, flags...)...)
			}
			for _, s := range []struct {
				name   string
				args   []string
				stored bool // answers to all keys
				stale  bool // and all are too old
				exact  bool // every key is found
			}{
				{"at first", command(known, "known"), false, false, true},
				{"some stored", command(sample, "sample"), false, false, false},
				{"complete", command(sample, "sample"), true, false, false},
				{"all stored", command(sample, "again"), true, false, false},
				{"offline", command(sample, "offline", "--offline"), true, false, false},
				{"all stale", command(known, "refreshed", "--refresh-older-than", "1ns"), true, true, true},
			} {
				counted.since()
				plan := planJSON(t, s.args)
				if told := plan.AccountCredits != nil; told != (plan.Calls.Credits > 0) || told && *plan.AccountCredits > 10_000 {
					t.Errorf("%s: the account has %v, and the plan costs %d", s.name, plan.AccountCredits, plan.Calls.Credits)
				}
				allowed := 1000.
				if strings.HasPrefix(c.operation, "keyword") {
					allowed = 500
				}
				if plan.AccountCredits != nil && (plan.Calls.Allowed != allowed || plan.Calls.Seconds != float64(plan.Calls.Calls)/allowed) {
					t.Errorf("%s: it plans %v s at %v calls a second, want those that the service allows, %v", s.name, plan.Calls.Seconds, plan.Calls.Allowed, allowed)
				}
				if calls, _ := counted.since(); calls != 0 {
					t.Fatalf("%s: planning made %d calls", s.name, calls)
				}
				clitest.Run(t, append([]string{"run"}, s.args...)...)
				calls, credits := counted.since()
				more := plan.Calls.MorePages && calls > plan.Calls.Calls
				if plan.Calls.Calls != calls && !more || plan.Calls.Credits < credits && !more || s.exact && plan.Calls.Credits != credits {
					t.Errorf("%s: planned %+v, and %d calls for %d credits were made", s.name, *plan.Calls, calls, credits)
				}
				if s.exact && credits != c.credits {
					t.Errorf("%s: it cost %d credits, want %d", s.name, credits, c.credits)
				}
				if s.stored && !s.stale && (calls > 0 || plan.Calls.Stored != plan.Keys) || s.stale && plan.Calls.Stale != plan.Keys {
					t.Errorf("%s: planned %+v of %d keys, and %d calls were made", s.name, *plan.Calls, plan.Keys, calls)
				}
				if s.name == "complete" != plan.Complete {
					t.Errorf("%s: complete is %t", s.name, plan.Complete)
				}
				requireTotals(t, s.name, plan, s.args[4])
			}
		})
	}
}

// planned is a plan as it is printed.
type planned struct {
	pipeline.Plan
	AccountCredits *int64 `json:"account_credits"`
}

func planJSON(t *testing.T, args []string) *planned {
	t.Helper()
	plan := new(planned)
	if err := json.Unmarshal([]byte(clitest.Run(t, append([]string{"plan", "--json"}, args...)...)), plan); err != nil {
		t.Fatal(err)
	}
	return plan
}

// requireTotals compares what a plan said of rows with the dataset's manifest.
func requireTotals(t *testing.T, name string, p *planned, out string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(out, "_manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	m := new(sinks.Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		t.Fatal(err)
	}
	rows := m.Totals.Rows
	if m.Totals.Searches > 0 {
		rows = m.Totals.Searches
	}
	if p.Rows != rows || p.Malformed != m.Totals.Malformed || p.Rejected != m.Totals.Rejected || p.Files.Parts != len(m.Parts) {
		t.Errorf("%s: planned %+v, the dataset has %+v in %d parts", name, p, m.Totals, len(m.Parts))
	}
	for reason, n := range p.Reasons["rejected"] {
		if m.Totals.Reasons["rejected"][reason] != n {
			t.Errorf("%s: planned %d rejected as %s, there are %d", name, n, reason, m.Totals.Reasons["rejected"][reason])
		}
	}
}
