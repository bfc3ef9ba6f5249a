package pipeline_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/testkit/rapidtest"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
)

// teller is a resolver whose answers are words such as email=a@x.example; "" is no match.
type teller struct {
	purchase.Service
	says  func(key string) string
	mu    sync.Mutex
	asked map[string]int
	spent int64
}

func (s *teller) Do(_ context.Context, call resolution.Call) (resolution.Reply, error) {
	text := s.says(call.Key)
	switch text {
	case "down":
		return resolution.Reply{}, &resolution.CallError{Class: resolution.Unavailable}
	case "bad row":
		return resolution.Reply{}, &resolution.CallError{Class: resolution.Invalid, Status: 400, Code: "bad", Sent: true}
	}
	cost := int64(0)
	if text != "" {
		cost = 2
	}
	s.mu.Lock()
	s.asked[call.Key]++
	s.spent += cost
	s.mu.Unlock()
	r, err := readWords(call.Operation, 200, []byte(text), nil)
	r.Spent = &cost
	return r, err
}

func readWords(_ resolution.Operation, status int, body []byte, into *resolution.Answers) (resolution.Reply, error) {
	r := resolution.Reply{About: resolution.About{Status: status, Body: body}}
	if len(body) == 0 {
		r.Reason = resolution.NoMatch
		return r, nil
	}
	if into == nil {
		into = resolution.NewAnswers()
	}
	l := &resolution.Lead{}
	r.Helpers = map[string]string{}
	for _, word := range strings.Fields(string(body)) {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "email":
			l.Email = value
		case "phone":
			l.Phone = value
		default:
			r.Helpers[name] = value
		}
	}
	into.AddLead(l)
	r.Found = resolution.AnswerRow{Of: into, I: into.Len() - 1}
	return r, nil
}

// several is a run of enrichment with several resolvers, who share a store.
type several struct {
	setup
	tellers map[string]*teller
	limit   func(*order.Order)                  // after the resolvers are made; may be nil
	store   func(*answers.Store) purchase.Store // what a resolver has in place of the store; may be nil
}

// newSeveral makes the resolvers of lines such as "a accept=email_status:valid max_credits=4"; one
// whose name begins with dir is reference data.
func newSeveral(t testing.TB, want string, says map[string]func(key string) string, lines ...string) *several {
	s := &several{setup: setup{dir: t.TempDir(), op: resolution.Enrichment, answers: "several"}, tellers: map[string]*teller{}}
	s.order = &order.Order{Want: strings.Fields(want), Budget: purchase.NoBudget}
	for _, line := range lines {
		words := strings.Fields(line)
		step := &order.Step{Name: words[0]}
		for _, word := range words[1:] {
			switch name, value, _ := strings.Cut(word, "="); name {
			case "for":
				step.For = strings.Split(value, ",")
			case "accept":
				column, accepted, _ := strings.Cut(value, ":")
				step.Accept = map[string][]string{column: {accepted}}
			case "verifies":
				step.Verifies = value
			case "else":
				step.ElseNext = value == "next"
			}
		}
		s.order.Steps = append(s.order.Steps, step)
		if strings.HasPrefix(words[0], "dir") {
			step.Directory = resolutiontest.Singly(func(_ context.Context, r resolution.Request) (resolution.Answer, error) {
				if text := says[words[0]](r.Key); text != "" {
					return resolution.Answer{Lead: &resolution.Lead{Contact: resolution.Contact{Email: strings.TrimPrefix(text, "email=")}}}, nil
				}
				return resolution.Answer{Reason: resolution.NoMatch}, nil
			})
			continue
		}
		s.tellers[words[0]] = &teller{says: says[words[0]], asked: map[string]int{}}
	}
	return s
}

// with opens the store and the resolvers for use.
func (s *several) with(t tb, use func()) {
	store, err := answers.Open(context.Background(), answers.InFolder(filepath.Join(s.stateDir(), "answers")), answers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.order.Counters = &stats.CallCounters{}
	for _, step := range s.order.Steps {
		if step.Directory != nil {
			continue
		}
		var from purchase.Store = store
		if s.store != nil {
			from = s.store(store)
		}
		o := pace.DefaultOptions()
		step.Remote = &purchase.Remote{
			Service: s.tellers[step.Name], Read: readWords, Name: step.Name, Question: "person", Judged: true, Answers: from, Pace: pace.New(o), Concurrency: o.Concurrency,
			Budget: purchase.NoBudget, Price: purchase.Price{Match: 2}, Counters: &stats.CallCounters{},
		}
	}
	if s.limit != nil {
		s.limit(s.order)
	}
	use()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

func (s *several) planned(t tb) (p *pipeline.Plan) {
	s.with(t, func() { p = s.mustPlan(t) })
	return p
}

// runs runs, and returns what each resolver was asked and paid.
func (s *several) runs(t tb) (calls map[string]int, spent map[string]int64) {
	calls, spent = map[string]int{}, map[string]int64{}
	for _, teller := range s.tellers {
		teller.asked, teller.spent = map[string]int{}, 0
	}
	s.with(t, func() {
		if _, err := s.do(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
	for name, teller := range s.tellers {
		calls[name], spent[name] = len(teller.asked), teller.spent
	}
	return calls, spent
}

// people is a list with a row for each number, some twice.
func (s *several) people(t tb, first, n int) {
	var b strings.Builder
	b.WriteString("network_url\n")
	for i := first; i < first+n; i++ {
		fmt.Fprintf(&b, "linkedin.com/in/person%d\n", i)
		if i%10 == 0 {
			fmt.Fprintf(&b, "linkedin.com/in/person%d/\n", i)
		}
	}
	s.input(t, "a.csv", b.String())
}

// share says some words about a share of keys, by chance.
func share(seed string, percent uint32, words string) func(string) string {
	return func(key string) string {
		if sum := sha256.Sum256([]byte(seed + key)); binary.BigEndian.Uint32(sum[:])%100 < percent {
			return words
		}
		return ""
	}
}

// shown is the lines of a plan.
func shown(p *pipeline.Plan) string {
	var lines []string
	for _, r := range p.Resolvers {
		line := fmt.Sprintf("%s %d", r.Name, r.Keys)
		if r.AtMost {
			line += "-"
		}
		if c := r.Calls; c != nil {
			line += fmt.Sprintf(" stored %d calls %d credits %d", c.Stored, c.Calls, c.Credits)
			if c.Failed > 0 {
				line += fmt.Sprintf(" failed %d", c.Failed)
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

// A plan says of each resolver what the run asks: exactly of the first, at most of later ones.
func TestPlanOfSeveral(t *testing.T) {
	all := func(words string) func(string) string { return share("", 100, words) }
	none := all("")
	half := share("half", 50, "email=a@mail.example")
	for _, c := range []struct {
		name, want string
		says       map[string]func(string) string
		lines      []string
		before     int // keys that an earlier run has asked about
		plan       string
	}{
		{"nothing stored", "", map[string]func(string) string{"a": all("email=a@mail.example"), "b": none}, []string{"a", "b"}, 0,
			"a 20 stored 0 calls 20 credits 40; b 20- stored 0 calls 20 credits 40"},
		{"half stored, by the first", "", map[string]func(string) string{"a": all("email=a@mail.example"), "b": none}, []string{"a", "b"}, 10,
			"a 20 stored 10 calls 10 credits 20; b 10- stored 0 calls 10 credits 20"},
		{"all stored", "", map[string]func(string) string{"a": none, "b": all("email=a@mail.example")}, []string{"a", "b"}, 20,
			"a 20 stored 20 calls 0 credits 0; b 20 stored 20 calls 0 credits 0"},
		{"misses are stored", "", map[string]func(string) string{"a": none, "b": none}, []string{"a", "b"}, 10,
			"a 20 stored 10 calls 10 credits 20; b 20- stored 10 calls 10 credits 20"},
		{"reference data first", "", map[string]func(string) string{"dir": half, "a": none}, []string{"dir", "a"}, 0,
			"dir 20; a 6 stored 0 calls 6 credits 12"},
		{"what is there is not asked for", "email phone", map[string]func(string) string{"a": all("email=a@mail.example"), "b": none, "c": none}, []string{"a", "b for=email", "c"}, 10,
			"a 20 stored 10 calls 10 credits 20; b 10- stored 0 calls 10 credits 20; c 20- stored 10 calls 10 credits 20"},
		{"a value is verified once", "email", map[string]func(string) string{"a": all("email=a@mail.example"), "v": all("email_status=valid"), "b": none}, []string{"a", "v verifies=email accept=email_status:valid", "b"}, 10,
			"a 20 stored 10 calls 10 credits 20; v 11- stored 1 calls 10 credits 20; b 10- stored 0 calls 10 credits 20"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSeveral(t, c.want, c.says, c.lines...)
			if c.before > 0 {
				s.people(t, 0, c.before)
				s.runs(t)
				s.overwrite = true
			}
			s.people(t, 0, 20)
			p := s.planned(t)
			if got := shown(p); got != c.plan || p.Keys != 20 || p.Duplicates != 2 {
				t.Errorf("planned %s of %d keys and %d duplicates\nwant    %s", got, p.Keys, p.Duplicates, c.plan)
			}
			calls, spent := s.runs(t)
			if stored := s.order.Counters.Snapshot().Stored; p.Calls.Stored != stored {
				t.Errorf("%d keys are planned to need no call; %d needed none", p.Calls.Stored, stored)
			}
			for _, r := range p.Resolvers {
				if r.Calls == nil {
					continue
				}
				if int64(calls[r.Name]) > r.Calls.Calls || !r.AtMost && int64(calls[r.Name]) != r.Calls.Calls || spent[r.Name] > r.Calls.Credits {
					t.Errorf("%s was asked %d times for %d credits; planned %+v", r.Name, calls[r.Name], spent[r.Name], r)
				}
			}
		})
	}
}

// What a plan expects of the keys of a list is what the run asks and pays, within some percent, once
// some keys are stored.
func TestPlanExpects(t *testing.T) {
	says := map[string]func(string) string{
		"a": share("a", 60, "email=a@mail.example"), "b": share("b", 50, "phone=+12025550123"), "c": share("c", 40, "email=c@mail.example phone=+12025550199"), "d": share("d", 90, "email=d@mail.example"),
	}
	s := newSeveral(t, "email phone", says, "a for=email", "b for=phone", "c", "d for=email")
	keys, before := 100_000, 20_000
	if testing.Short() {
		keys, before = 10_000, 3_000
	}
	s.people(t, 0, before)
	s.runs(t)
	s.overwrite = true
	s.people(t, 0, keys)
	p := s.planned(t)
	calls, spent := s.runs(t)
	for _, r := range p.Resolvers {
		e := r.Expected
		if e == nil || e.Answers == 0 || e.Answers > int64(before) {
			t.Fatalf("%s: %+v", r.Name, e)
		}
		if off := float64(e.Calls)/float64(calls[r.Name]) - 1; off < -0.05 || off > 0.05 {
			t.Errorf("%s: %d calls expected, %d made", r.Name, e.Calls, calls[r.Name])
		}
		if off := float64(e.Credits)/float64(spent[r.Name]) - 1; off < -0.05 || off > 0.05 {
			t.Errorf("%s: %d credits expected, %d spent", r.Name, e.Credits, spent[r.Name])
		}
		if r.Name == "a" && (r.AtMost || r.Calls.Calls != int64(keys-before)) {
			t.Errorf("the first: %+v", r)
		}
	}
}

// A key that one resolver answers from the store, and that needs a call of another, is not answered
// without a call.
func TestPlanOfKeysWithoutACall(t *testing.T) {
	says := map[string]func(string) string{"a": share("", 100, ""), "b": share("", 100, "")}
	s := newSeveral(t, "", says, "a", "b")
	s.people(t, 0, 20)
	s.runs(t)
	s.overwrite = true
	for _, c := range []struct {
		question    string // to b
		free, calls int64
	}{{"person", 20, 0}, {"another", 0, 20}} {
		s.limit = func(o *order.Order) { o.Steps[1].Remote.Question = c.question }
		if p := s.planned(t); p.Calls.Stored != c.free || p.Calls.Calls != c.calls || p.Calls.New != 0 || p.Resolvers[0].Calls.Stored != 20 {
			t.Errorf("%s: %+v of %s, want %d without a call", c.question, p.Calls, shown(p), c.free)
		}
	}
}

// Without a stored answer of a resolver nothing is expected of it, nor of those after it.
func TestPlanExpectsNothingWithoutAnswers(t *testing.T) {
	s := newSeveral(t, "", map[string]func(string) string{"a": share("a", 60, "email=a@mail.example"), "b": share("b", 50, "email=b@mail.example")}, "a", "b")
	s.people(t, 0, 50)
	p := s.planned(t)
	if slices.ContainsFunc(p.Resolvers, func(r pipeline.PlannedResolver) bool { return r.Expected != nil }) {
		t.Errorf("expected %+v", p.Resolvers)
	}
}

// Each resolver has a budget, and the job has one for all.
func TestPlanOfSeveralBudgets(t *testing.T) {
	says := map[string]func(string) string{"a": share("a", 50, "email=a@mail.example"), "b": share("b", 50, "email=b@mail.example")}
	for _, c := range []struct {
		name      string
		a, b, all int64
		want      string
	}{
		{"enough", 40, 40, 80, "[] [] [] / [] [] []"},
		{"the first may not be", 39, 40, 80, "[max_credits] [] [] / [] [] []"},
		{"the first is not", 1, 40, 80, "[max_credits] [] [] / [max_credits] [] []"},
		{"the second may not be", 40, 1, 80, "[] [max_credits] [] / [] [] []"},
		{"that of all may not be", 40, 40, 79, "[] [] [max_credits] / [] [] []"},
	} {
		s := newSeveral(t, "", says, "a", "b")
		s.limit = func(o *order.Order) {
			o.Steps[0].Remote.Budget.MaxCredits, o.Steps[1].Remote.Budget.MaxCredits, o.Budget.MaxCredits = c.a, c.b, c.all
		}
		s.people(t, 0, 20)
		p := s.planned(t)
		a, b := p.Resolvers[0].Calls, p.Resolvers[1].Calls
		if got := fmt.Sprint(a.Short, b.Short, p.Calls.Short, "/", a.NotEnough, b.NotEnough, p.Calls.NotEnough); strings.Join(strings.Fields(strings.ReplaceAll(got, "][", "] [")), "") != strings.Join(strings.Fields(c.want), "") {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if p.Calls.Calls != 40 || p.Calls.Credits != 80 || p.Calls.New != 20 || p.Calls.Stored != 0 {
			t.Errorf("%s: %+v", c.name, p.Calls)
		}
	}
}

// A list that is not what it was stops the run before the first call, whoever would be asked.
func TestSeveralNewKeys(t *testing.T) {
	says := map[string]func(string) string{"dir": share("dir", 50, "email=d@mail.example"), "a": share("a", 50, "email=a@mail.example"), "b": share("b", 50, "email=b@mail.example")}
	s := newSeveral(t, "", says, "dir", "a", "b")
	s.overwrite = true
	do := func(people int, most float64) (err error) {
		s.people(t, 0, people)
		s.with(t, func() {
			err = s.open(t.Context(), func(run *job.Run) (err error) {
				if run.Nights, err = journal.InFolder(disk.Dir(s.stateDir())).Nights(t.Context(), "people", s.outDir()); err != nil {
					return err
				}
				run.MaxNewKeys = &most
				_, err = pipeline.Do(t.Context(), run)
				return err
			})
		})
		return err
	}
	if err := do(40, 0); err != nil {
		t.Fatal("the first night: ", err)
	}
	if err := do(44, 0.2); err != nil {
		t.Error("some new people: ", err)
	}
	for _, teller := range s.tellers {
		teller.asked = map[string]int{}
	}
	var stopped *purchase.NewKeysError
	if err := do(80, 0.2); !errors.As(err, &stopped) || len(s.tellers["a"].asked)+len(s.tellers["b"].asked) > 0 {
		t.Errorf("another list: %v, %d and %d calls", err, len(s.tellers["a"].asked), len(s.tellers["b"].asked))
	}
}

// Whatever the order, what is wanted and what is stored: no resolver is asked about more than
// planned, and where the plan is exact, it is asked about just that.
func TestPlanOfSeveralHolds(t *testing.T) {
	top, n := t.TempDir(), 0
	rapidtest.Checks(t, 25) // each is two runs on disk
	rapid.Check(t, func(rt *rapid.T) {
		n++
		words := []string{"email=%s@mail.example", "phone=+12025550123", "email=%s@mail.example phone=+12025550199", "email=%s@mail.example email_status=risky"}
		says := map[string]func(string) string{"v": share("v", 60, "email_status=valid")}
		var lines []string
		want := rapid.SampledFrom([]string{"", "email", "email phone"}).Draw(rt, "want")
		for _, name := range []string{"a", "b", "c"} {
			line := name
			if want != "" {
				line += rapid.SampledFrom([]string{"", "", " for=email", " accept=email_status:valid"}).Draw(rt, "settings")
			}
			lines = append(lines, line)
			says[name] = share(name, uint32(rapid.IntRange(0, 100).Draw(rt, "share")), strings.ReplaceAll(rapid.SampledFrom(words).Draw(rt, "words"), "%s", name))
		}
		if want != "" && rapid.Bool().Draw(rt, "verified") {
			lines = append(lines[:2:2], append([]string{"v verifies=email accept=email_status:valid"}, lines[2:]...)...)
		}
		lines = rapid.Permutation(lines).Draw(rt, "order")
		again := rapid.Permutation(lines).Draw(rt, "order of the plan")
		s := newSeveral(t, want, says, lines...)
		s.dir, s.overwrite = fmt.Sprint(top, "/", n), true
		defer os.RemoveAll(s.dir)
		if before := rapid.IntRange(0, 25).Draw(rt, "before"); before > 0 {
			s.people(rt, 0, before)
			s.runs(rt)
		}
		later := newSeveral(t, want, says, again...)
		later.dir, later.overwrite, later.batchRows, later.workers = s.dir, true, rapid.IntRange(1, 30).Draw(rt, "batch rows"), 2
		later.people(rt, 0, 25)
		p := later.planned(rt)
		calls, spent := later.runs(rt)
		for _, r := range p.Resolvers {
			if made := int64(calls[r.Name]); made > r.Calls.Calls || !r.AtMost && made != r.Calls.Calls || spent[r.Name] > r.Calls.Credits {
				rt.Errorf("%s was asked %d times for %d credits; planned %+v", r.Name, made, spent[r.Name], *r.Calls)
			}
			if e := r.Expected; e != nil && e.Calls > r.Calls.Calls {
				rt.Errorf("%s: %d calls are expected, of %d at most", r.Name, e.Calls, r.Calls.Calls)
			}
		}
	})
}

// A resolver that rows went on without is asked again by the same command, and the plan says so,
// although a later one has answered.
func TestPlanAsksAgainWhoWasPassedOver(t *testing.T) {
	down := true
	s := newSeveral(t, "", map[string]func(string) string{
		"a": func(string) string {
			if down {
				return "down"
			}
			return "email=a@mail.example"
		}, "b": share("", 100, "email=b@mail.example"),
	}, "a else=next", "b")
	s.people(t, 0, 5)
	s.runs(t)
	if got, want := shown(s.planned(t)), "a 5 stored 0 calls 5 credits 10; b 5- stored 5 calls 0 credits 0"; got != want {
		t.Errorf("planned %s, want %s", got, want)
	}
	down = false
	if calls, _ := s.runs(t); calls["a"] != 5 || calls["b"] != 0 {
		t.Errorf("asked %v", calls)
	}
}

// TestPlanOfFewMatches: what a resolver with a min_match is asked is at most its keys, once they are
// more than decide about it. A bad row that it refused before decides, too, where another has answered since.
func TestPlanOfFewMatches(t *testing.T) {
	says := map[string]func(string) string{
		"a": func(key string) string {
			if strings.HasSuffix(key, "person0") {
				return "bad row"
			}
			return ""
		}, "b": share("", 100, "email=b@mail.example"),
	}
	for _, c := range []struct {
		first, keys, before int // before: those that an earlier run has asked about
		of                  int64
		atMost              bool
		calls               int // to a
	}{
		{1, 1000, 0, 1000, false, 1000},
		{1, 1001, 0, 1001, true, 1000},
		{0, 1000, 1, 999, false, 999},
		{0, 1001, 1, 1000, true, 999},
	} {
		s := newSeveral(t, "", says, "a", "b")
		s.order.Steps[0].MinMatch = 0.5
		if c.before > 0 {
			s.people(t, c.first, c.before)
			s.runs(t)
			s.overwrite = true
		}
		s.people(t, c.first, c.keys)
		p := s.planned(t)
		calls, _ := s.runs(t)
		if a := p.Resolvers[0]; a.Keys != c.of || a.AtMost != c.atMost || calls["a"] != c.calls {
			t.Errorf("%d keys: %+v, at most %t; %d calls, want %d", c.keys, a, a.AtMost, calls["a"], c.calls)
		}
	}
}
