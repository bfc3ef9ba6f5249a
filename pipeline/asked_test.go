package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/pipeline/verify"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
	"github.com/leadetl/leadetl/sinks"
)

// saying is a resolver that is written down: what it says about each key, in words. A key that is
// not among them has no match.
type saying map[string]string

// Do answers a call.
func (s saying) Do(_ context.Context, c resolution.Call) (resolution.Reply, error) {
	said := s.about(c.Key)
	switch said {
	case "refused":
		return resolution.Reply{}, &resolution.CallError{Class: resolution.Invalid, Status: 422, Sent: true, RequestID: "req-" + c.Key}
	case "unknown":
		return resolution.Reply{}, &resolution.CallError{Class: resolution.Protocol, Status: 200, Sent: true}
	}
	r, err := readSaid(c.Operation, 200, []byte(said), nil)
	r.ID, r.RequestID = "res-"+c.Key, "req-"+c.Key
	return r, err
}

func (s saying) about(key string) string {
	said := s[strings.TrimPrefix(key, "linkedin.com/in/")]
	if said == "" {
		said = "none credits=0"
	}
	return said
}

// Start refuses a search.
func (saying) Start(context.Context, resolution.SearchCall) (resolution.Reply, error) {
	return resolution.Reply{}, errors.ErrUnsupported
}

// Poll refuses to poll.
func (saying) Poll(context.Context, resolution.Operation, string, string) (resolution.Reply, error) {
	return resolution.Reply{}, errors.ErrUnsupported
}

// Resolve answers as reference data.
func (s saying) Resolve(_ context.Context, r resolution.Request) (a resolution.Answer, err error) {
	lead, _, _ := leadOf(s.about(r.Key))
	if lead == nil {
		return resolution.Answer{Reason: resolution.NoMatch}, nil
	}
	return resolution.Answer{Lead: lead}, nil
}

// leadOf reads words such as email=a@x.example status=valid credits=2.
func leadOf(said string) (lead *resolution.Lead, helpers map[string]string, credits int64) {
	helpers = map[string]string{}
	for _, word := range strings.Fields(said) {
		name, value, _ := strings.Cut(word, "=")
		if lead == nil && name != "credits" && name != "none" {
			lead = &resolution.Lead{}
		}
		switch name {
		case "email":
			lead.Email = value
		case "phone":
			lead.Phone = value
		case "status":
			helpers["email_status"] = value
		case "credits":
			credits, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	return lead, helpers, credits
}

func readSaid(_ resolution.Operation, status int, body []byte, into *resolution.Answers) (r resolution.Reply, err error) {
	if into == nil {
		into = resolution.NewAnswers()
	}
	lead, helpers, credits := leadOf(string(body))
	r.Status, r.Body, r.Spent, r.Helpers = status, body, &credits, helpers
	if lead == nil {
		r.Reason = resolution.NoMatch
		return r, nil
	}
	into.AddLead(lead)
	r.Found = resolution.AnswerRow{Of: into, I: into.Len() - 1}
	return r, nil
}

// ordered is a job whose resolvers are written down, a line each: NAME SETTINGS: KEY is WORDS; …
type ordered struct {
	setup
	want      string
	resolvers []string
	offline   bool
	drop      bool            // the identifiers
	calls     func()          // is told of each call before it; nil is not
	budget    purchase.Budget // of the resolver called first, or of the only one
}

// telling tells of each call.
type telling struct {
	saying
	calls func()
}

// Do answers a call.
func (s telling) Do(ctx context.Context, c resolution.Call) (resolution.Reply, error) {
	if s.calls != nil {
		s.calls()
	}
	return s.saying.Do(ctx, c)
}

func (o ordered) order(store *answers.Store) *order.Order {
	if o.budget == (purchase.Budget{}) {
		o.budget = purchase.NoBudget
	}
	all := &order.Order{Want: strings.Fields(o.want), Budget: purchase.NoBudget, Counters: &stats.CallCounters{}}
	for _, line := range o.resolvers {
		head, facts, _ := strings.Cut(line, ": ")
		words, says := strings.Fields(head), saying{}
		for fact := range strings.SplitSeq(facts, "; ") {
			key, said, _ := strings.Cut(fact, " is ")
			says[key] = said
		}
		s := &order.Step{Name: words[0]}
		all.Steps = append(all.Steps, s)
		if s.Name == "embedded" {
			s.Directory = resolutiontest.Singly(says.Resolve)
			continue
		}
		s.Remote = &purchase.Remote{
			Service: telling{says, o.calls}, Read: readSaid, Judged: true, Name: s.Name, Answers: store, Pace: pace.New(pace.DefaultOptions()), Concurrency: 8,
			Budget: purchase.NoBudget, Price: purchase.Price{Match: 9}, Offline: o.offline, RetryBills: true, Counters: &stats.CallCounters{},
		}
		if s.Name == "first" || len(all.Steps) == 1 {
			s.Remote.Budget = o.budget
		}
		for _, word := range words[1:] {
			name, value, _ := strings.Cut(word, "=")
			switch name {
			case "verifies":
				s.Verifies, s.Accept = value, map[string][]string{"email_status": {"valid"}}
			case "else":
				s.ElseNext = true
			case "min_match":
				s.MinMatch = 0.5
			}
		}
	}
	return all
}

func (o ordered) run(ctx context.Context) (result *finish.Result, err error) {
	store, err := answers.Open(context.Background(), answers.InFolder(filepath.Join(o.stateDir(), "answers")), answers.Options{})
	if err != nil {
		return nil, err
	}
	o.job = func(j *job.Job) { j.DropIdentifier = o.drop }
	err = o.open(ctx, func(run *job.Run) error {
		run.Order = o.order(store)
		result, err = pipeline.Do(ctx, run)
		return err
	})
	return result, errors.Join(err, store.Close())
}

// asked are the rows of _asked, in words.
func (o ordered) asked(t tb) (all []string) {
	for _, row := range rows(t, of(content(t, o.outDir()), "_asked/")) {
		f := fields(t, row)
		words := []string{fmt.Sprint(f["key"]), fmt.Sprint(f["resolver"]), fmt.Sprint(f["outcome"])}
		if key, found := strings.CutPrefix(words[0], "linkedin.com/in/"); found {
			words[0] = key
		}
		if f["reason"] != nil {
			words = append(words, fmt.Sprint(f["reason"]))
		}
		for _, name := range []string{"credits", "max_credits_open", "request_id"} {
			if f[name] != nil {
				words = append(words, name+"="+strings.TrimPrefix(fmt.Sprint(f[name]), "req-linkedin.com/in/"))
			}
		}
		if f["received_at"] != nil {
			words = append(words, "received")
		}
		if f["paid_here"] == true {
			words = append(words, "here")
		}
		all = append(all, strings.Join(words, " "))
	}
	return all
}

// requireVerified verifies a dataset of enrichment.
func requireVerified(t *testing.T, dir string) {
	t.Helper()
	d, err := sinks.OpenReader(t.Context(), dir, sinks.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := verify.Check(t.Context(), d, verify.Options{Workers: 2, Rules: func(m *sinks.Manifest) (verify.Rules, bool) {
		return verify.Rules{Own: columns.Every(resolution.Enrichment, nil, m.Own()), Rejects: columns.RejectsColumns(), Asked: columns.AskedColumns()}, true
	}})
	if err != nil || !r.Whole() {
		t.Errorf("verify found %v: %v", r.Failures, err)
	}
}

// TestAsked: a dataset of several resolvers says what each has answered, a row for each key and
// resolver, in the order of the keys.
func TestAsked(t *testing.T) {
	for _, c := range []struct {
		name      string
		keys      string
		want      string
		resolvers []string
		suppress  string
		drop      bool
		asked     []string
		totals    map[string]sinks.ResolverTotals
	}{
		{
			"each answer once, in the order of first rows", "bob ann bob cid ann", "email",
			[]string{"a: ann is email=ann@a.example credits=2; cid is none credits=1", "b: bob is email=bob@b.example credits=3"}, "", false,
			[]string{
				"bob a no_match no_match credits=0 request_id=bob received here", "bob b matched credits=3 request_id=bob received here",
				"ann a matched credits=2 request_id=ann received here",
				"cid a no_match no_match credits=1 request_id=cid received here", "cid b no_match no_match credits=0 request_id=cid received here",
			},
			map[string]sinks.ResolverTotals{"a": {Asked: 3, Matched: 1, Credits: 3, Added: 2}, "b": {Asked: 2, Matched: 1, Credits: 3, Added: 2}},
		},
		{
			"reference data is free and has no call", "ann bob", "email", []string{"embedded: ann is email=ann@d.example", "b: bob is email=bob@b.example credits=1"}, "", false,
			[]string{"ann embedded matched credits=0", "bob embedded no_match no_match credits=0", "bob b matched credits=1 request_id=bob received here"},
			map[string]sinks.ResolverTotals{"embedded": {Asked: 2, Matched: 1, Added: 1}, "b": {Asked: 1, Matched: 1, Credits: 1, Added: 1}},
		},
		{
			"a match may add nothing", "ann", "email phone", []string{"a: ann is email=ann@a.example credits=1", "b: ann is email=ann@b.example credits=1"}, "", false,
			[]string{"ann a matched credits=1 request_id=ann received here", "ann b matched credits=1 request_id=ann received here"},
			map[string]sinks.ResolverTotals{"a": {Asked: 1, Matched: 1, Credits: 1, Added: 1}, "b": {Asked: 1, Matched: 1, Credits: 1}},
		},
		{
			"a refusal", "ann", "", []string{"a: ann is refused", "b: ann is email=ann@b.example credits=1"}, "", false,
			[]string{"ann a failed refused credits=0 request_id=ann received here", "ann b matched credits=1 request_id=ann received here"},
			map[string]sinks.ResolverTotals{"a": {Asked: 1}, "b": {Asked: 1, Matched: 1, Credits: 1, Added: 1}},
		},
		{
			"an unknown call stops the key", "ann bob", "", []string{"a: ann is unknown; bob is email=bob@a.example credits=1", "b: ann is email=ann@b.example credits=1"}, "", false,
			[]string{"ann a failed unknown_call max_credits_open=9 here", "bob a matched credits=1 request_id=bob received here"},
			map[string]sinks.ResolverTotals{"a": {Asked: 2, Matched: 1, Credits: 1, Added: 1}},
		},
		{
			"or it is passed", "ann", "", []string{"a else=next: ann is unknown", "b: ann is email=ann@b.example credits=1"}, "", false,
			[]string{"ann a failed unknown_call max_credits_open=9 here", "ann b matched credits=1 request_id=ann received here"},
			map[string]sinks.ResolverTotals{"a": {Asked: 1, Unknown: 1}, "b": {Asked: 1, Matched: 1, Credits: 1, Added: 1}},
		},
		{
			"a verifier says something about each value", "ann", "email",
			[]string{"a: ann is email=one@a.example credits=1", "b: ann is email=two@b.example credits=1", "v verifies=email: one@a.example is status=invalid credits=1; two@b.example is status=valid credits=2"},
			"", false,
			[]string{
				"ann a matched credits=1 request_id=ann received here", "ann b matched credits=1 request_id=ann received here",
				"ann v matched credits=1 request_id=req-one@a.example received here", "ann v matched credits=2 request_id=req-two@b.example received here",
			},
			map[string]sinks.ResolverTotals{"a": {Asked: 1, Matched: 1, Credits: 1}, "b": {Asked: 1, Matched: 1, Credits: 1, Added: 1}, "v": {Asked: 2, Matched: 2, Credits: 3}},
		},
		{
			"a suppressed key has no name", "ann bob", "email", []string{"a: ann is email=ann@a.example credits=1; bob is email=bob@a.example credits=1", "b: cid is none"}, "ann@a.example", false,
			[]string{"<nil> a matched credits=1 received here", "bob a matched credits=1 request_id=bob received here"},
			map[string]sinks.ResolverTotals{"a": {Asked: 2, Matched: 2, Credits: 2, Added: 1}},
		},
		{
			"nobody is asked about a listed key", "ann bob", "email", []string{"a: ann is email=ann@a.example credits=1; bob is email=bob@a.example credits=1", "b: cid is none"}, "linkedin.com/in/ann", false,
			[]string{"bob a matched credits=1 request_id=bob received here"},
			map[string]sinks.ResolverTotals{"a": {Asked: 1, Matched: 1, Credits: 1, Added: 1}},
		},
		{
			"nor has any where identifiers are dropped", "ann", "email", []string{"a: ann is email=ann@a.example credits=1", "b: cid is none"}, "", true,
			[]string{"<nil> a matched credits=1 request_id=ann received here"},
			map[string]sinks.ResolverTotals{"a": {Asked: 1, Matched: 1, Credits: 1, Added: 1}},
		},
		{"of a single resolver nothing is said", "ann bob", "email", []string{"a: ann is email=ann@a.example credits=1; bob is unknown"}, "", false, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				o := ordered{setup: setup{dir: t.TempDir(), op: resolution.Enrichment, batchRows: 2}, want: c.want, resolvers: c.resolvers, drop: c.drop}
				o.input(t, "in.csv", "network_url\nlinkedin.com/in/"+strings.ReplaceAll(c.keys, " ", "\nlinkedin.com/in/")+"\n")
				if c.suppress != "" {
					o.suppress = listOf(t, c.suppress)
				}
				result, err := o.run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				checkDataset(t, o.outDir(), result)
				if got := o.asked(t); !slices.Equal(got, c.asked) {
					t.Errorf("asked\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(c.asked, "\n "))
				}
				requireVerified(t, o.outDir())
				if got := result.Totals.Resolvers; fmt.Sprint(got) != fmt.Sprint(c.totals) {
					t.Errorf("totals %+v, want %+v", got, c.totals)
				}
			})
		})
	}
}

// TestAskedOverRestarts: a run that is interrupted, or whose budget ends, and that goes on later says
// what an undisturbed one says. So does one that is made of the same answers without a call, which
// has paid for none.
func TestAskedOverRestarts(t *testing.T) {
	const keys = 12
	list, facts := "network_url\n", [2][]string{}
	for i := range keys {
		list += fmt.Sprintf("linkedin.com/in/k%d\nlinkedin.com/in/k0\n", i)
		facts[i%2] = append(facts[i%2], fmt.Sprintf("k%d is email=k%d@x.example credits=%d", i, i, i%3))
	}
	made := func(t *testing.T) ordered {
		o := ordered{setup: setup{dir: t.TempDir(), op: resolution.Enrichment, batchRows: 2, rowsPerPart: 5}, want: "email", resolvers: []string{
			"a: " + strings.Join(facts[0], "; "), "b: " + strings.Join(facts[1], "; ") + "; k2 is unknown",
		}}
		o.input(t, "in.csv", list)
		return o
	}
	in(t, func(t *testing.T) {
		whole := made(t)
		want, err := whole.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		same := func(name string, o ordered, result *finish.Result, paysHere bool) {
			t.Helper()
			checkDataset(t, o.outDir(), result)
			requireVerified(t, o.outDir())
			all := whole.asked(t)
			for i := range all {
				if !paysHere {
					all[i] = strings.TrimSuffix(all[i], " here")
				}
			}
			if got := o.asked(t); !slices.Equal(got, all) {
				t.Errorf("%s: asked\n %s\nwant\n %s", name, strings.Join(got, "\n "), strings.Join(all, "\n "))
			}
			if fmt.Sprint(result.Totals) != fmt.Sprint(want.Totals) {
				t.Errorf("%s: totals %+v, want %+v", name, result.Totals, want.Totals)
			}
		}
		for _, stop := range []int64{1, 4, 9, 13} {
			o, calls := made(t), atomic.Int64{}
			ctx, cancel := context.WithCancel(t.Context())
			o.calls = func() {
				if calls.Add(1) == stop {
					cancel()
				}
			}
			if _, err := o.run(ctx); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			cancel()
			o.calls = nil
			result, err := o.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			same(fmt.Sprint("stopped at call ", stop), o, result, true)
			o.offline, o.out = true, "again"
			if result, err = o.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			same("offline", o, result, false)
		}
		o := made(t)
		o.budget = purchase.Budget{MaxCalls: 3, MaxCredits: -1}
		if _, err := o.run(t.Context()); !errors.Is(err, purchase.ErrBudget) {
			t.Fatalf("%v, want %v", err, purchase.ErrBudget)
		}
		o.budget = purchase.NoBudget
		result, err := o.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		same("after a budget", o, result, true)
	})
}

// TestMinMatchOverRestarts: a resolver is judged on the first keys that reach it, also if the run is
// interrupted before their number is reached, and its parts until then are recorded; and if the budget
// of the one before ends, which knows some later keys from another list.
func TestMinMatchOverRestarts(t *testing.T) {
	const keys = 1200
	var list, facts strings.Builder
	list.WriteString("network_url\n")
	later := ""
	for i := range keys {
		if i >= 700 && i < 1100 {
			later += fmt.Sprintf("linkedin.com/in/k%d\n", i)
		}
		fmt.Fprintf(&list, "linkedin.com/in/k%d\n", i)
		if i%3 == 0 || i > 502 && i%3 == 1 { // 334 and 165 of the first 1000
			fmt.Fprintf(&facts, "k%d is email=k%d@x.example credits=1; ", i, i)
		}
	}
	in(t, func(t *testing.T) {
		made := func() ordered {
			o := ordered{setup: setup{dir: t.TempDir(), op: resolution.Enrichment, batchRows: 50, rowsPerPart: 100}, want: "email", resolvers: []string{
				"first: ", "a min_match: " + facts.String(), "b: k1199 is email=k1199@b.example credits=1",
			}}
			o.input(t, "in.csv", list.String()[:len("network_url\n")]+later)
			earlier := o
			earlier.resolvers = o.resolvers[:1]
			if _, err := earlier.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(o.outDir()); err != nil {
				t.Fatal(err)
			}
			o.input(t, "in.csv", list.String())
			return o
		}
		whole := made()
		want, err := whole.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all := whole.asked(t)
		if n := want.Totals.Resolvers["a"].Asked; n != 1000 || want.Totals.Resolvers["b"].Matched != 1 {
			t.Fatalf("%d keys were asked, %+v", n, want.Totals)
		}
		for _, most := range []int64{400, 750} {
			o := made()
			o.budget = purchase.Budget{MaxCalls: most, MaxCredits: -1}
			if _, err := o.run(t.Context()); !errors.Is(err, purchase.ErrBudget) {
				t.Fatal(err)
			}
			o.budget = purchase.NoBudget
			result, err := o.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := o.asked(t); !slices.Equal(got, all) || fmt.Sprint(result.Totals) != fmt.Sprint(want.Totals) {
				t.Errorf("after a budget of %d calls: %+v, want %+v", most, result.Totals, want.Totals)
			}
		}
		for _, stop := range []int64{150, 900, 1500} {
			o, calls := made(), atomic.Int64{}
			ctx, cancel := context.WithCancel(t.Context())
			o.calls = func() {
				if calls.Add(1) == stop {
					cancel()
				}
			}
			if _, err := o.run(ctx); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			cancel()
			result, err := o.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := o.asked(t); !slices.Equal(got, all) || fmt.Sprint(result.Totals) != fmt.Sprint(want.Totals) {
				t.Errorf("stopped at call %d: %+v, want %+v", stop, result.Totals, want.Totals)
			}
		}
	})
}
