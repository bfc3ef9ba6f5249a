package order

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/values"
	"github.com/leadetl/leadetl/transforms/person"
)

// A test of an order is a line for each resolver: its name and settings, what it says, and whether
// that is stored:
//
//	pdl for=email accept=email_status:valid: email=a@x.example status=valid credits=1 stored
//
// It says columns of a match, none, refused, or why it has no answer: unknown, parked, budget,
// no_credits, outage, denied. What is stored may be stale, or mine: bought by this run. Then a call may say
// something else, after a semicolon. One whose name begins with dir is reference data.
type fact struct {
	name  string
	want  string
	lines []string
	asked string // the resolvers that were asked, in order
	row   string // outcome, reason, values with their resolver, credits
	said  string // the rows of _asked: NAME=OUTCOME, ?CREDITS of an open call, * if this run pays
}

// scripted is a resolver that says what a line has.
type scripted struct {
	order   *Order
	step    *Step
	stored  []string // words, none if nothing is stored
	says    []string
	offline bool
	calls   *[]string
}

func (s *scripted) look(_ context.Context, keys []string, says func(int, *purchase.Looked), _ func(func())) error {
	for i, key := range keys {
		l := purchase.Looked{Result: s.answer(s.stored, key), Decision: purchase.UseStored, Stored: true}
		has := func(word string) bool { return slices.Contains(s.stored, word) }
		switch {
		case s.step.Remote == nil:
			l.Result = s.answer(s.says, key)
		case s.stored == nil && s.offline:
			l = purchase.Looked{Result: purchase.Result{Outcome: outcome.Skipped, Reason: outcome.ReasonNotStored}, Decision: purchase.Skip}
		case s.stored == nil, !s.offline && (has("stale") || has("parked") || has("unknown") && s.step.Remote.RetryUnknown || has("refused") && !has("mine")):
			l = purchase.Looked{Decision: purchase.Ask, Stored: s.stored != nil, Stale: has("stale"), Retried: has("unknown")}
			if has("parked") || has("unknown") {
				l.Open, l.Payer = answers.Unknown, s.answer(s.stored, key).Run
			}
		case l.Result.Open:
			l.Decision = purchase.GiveUp
		}
		says(i, &l)
	}
	return nil
}

func (s *scripted) ask(_ context.Context, keys []string, says func(int, purchase.Result)) error {
	for i, key := range keys {
		*s.calls = append(*s.calls, s.step.Name)
		says(i, s.answer(s.says, key))
	}
	return nil
}

func (f fact) check(t *testing.T) {
	t.Helper()
	asked, row, said := f.play(t)
	if asked != f.asked || row != f.row || said != f.said {
		t.Errorf("%s:\n asked %q, row %q, said %q\n want  %q,     %q,      %q", f.name, asked, row, said, f.asked, f.row, f.said)
	}
}

func (f fact) play(t *testing.T) (asked, row, said string) {
	t.Helper()
	want, offline := strings.CutPrefix(f.want, "offline ")
	want, all := strings.CutPrefix(want, "all ")
	o := &Order{AskAll: all, Counters: &stats.CallCounters{}}
	if _, err := fmt.Sscanf(want, "max=%d", &o.PerKey); err == nil {
		_, want, _ = strings.Cut(want, " ")
	}
	o.Want = strings.Fields(want)
	c := &Chain{order: o, run: "run"}
	var calls []string
	var closed []bool
	for _, line := range f.lines {
		head, text, _ := strings.Cut(line, ": ")
		words := strings.Fields(head)
		s := &Step{Name: words[0], Remote: &purchase.Remote{}}
		if strings.HasPrefix(s.Name, "dir") {
			s.Remote = nil
		}
		closed = append(closed, slices.Contains(words, "closed"))
		for _, word := range words[1:] {
			name, value, _ := strings.Cut(word, "=")
			switch name {
			case "for":
				s.For = strings.Split(value, ",")
			case "accept":
				column, accepts, _ := strings.Cut(value, ":")
				s.Accept = map[string][]string{column: strings.Split(accepts, ",")}
			case "price":
				_, _ = fmt.Sscan(value, &s.Remote.Price.Match)
			case "person":
				s.Person = strings.Split(value, ",")
			case "else":
				s.ElseNext = true
			case "retry":
				s.Remote.RetryUnknown = true
			case "verifies":
				s.Verifies = value
			case "fills":
				s.Fills = strings.Split(value, ",")
			case "askable":
				s.Question = func(string) (string, bool) { return "", false }
			}
		}
		is := &scripted{order: o, step: s, offline: offline, calls: &calls}
		stored, now, both := strings.Cut(text, "; ")
		if is.says = strings.Fields(text); both {
			is.says = strings.Fields(now)
		}
		if words := strings.Fields(stored); slices.Contains(words, "stored") || slices.Contains(words, "stale") {
			is.stored = words
		}
		o.Steps, c.askers = append(o.Steps, s), append(c.askers, is)
	}
	if err := o.Check(resolution.Enrichment); err != nil {
		t.Fatal(err)
	}
	w := newBatchWalk(c, []string{"key"}, func(a resolution.AnswerRow) string {
		if a.Lead().Email == "listed" {
			return "listed"
		}
		return ""
	})
	w.closed = closed
	if err := w.advance(t.Context(), places(0, 1)); err != nil {
		t.Fatal(err)
	}
	k, r := &w.keys[0], &w.results[0]
	return strings.Join(calls, " "), rowText(o, k, r), saidText(r.asked(o, k, "run", 0))
}

func rowText(o *Order, k *key, r *result) string {
	got, reason := r.outcome(o, k)
	text := []string{got.String()}
	if reason != "" {
		text = append(text, reason)
	}
	if r.suppressed == "" {
		origin := r.origin(o, k)
		if origin.AnsweredBy != "" {
			text = append(text, "by="+origin.AnsweredBy)
		}
		for g, s := range r.from {
			if s < 0 {
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(values.Wanted)) {
				if v := values.Wanted[name]; v.Group == resolution.Group(g) && (!v.IsList() || name == "emails") && v.Of(k.answers[s].row) != "" && !strings.HasPrefix(name, "phone_") {
					text = append(text, fmt.Sprintf("%s=%s@%s", name, v.Of(k.answers[s].row), o.Steps[s].Name))
				}
			}
		}
		if origin.Skipped != "" {
			text = append(text, "skipped="+origin.Skipped)
		}
	}
	c := r.receipt(k)
	if c.ResolutionID != "" {
		text = append(text, "id="+c.ResolutionID)
	}
	switch {
	case c.Answered() && !c.Priced:
		text = append(text, "credits=?")
	case c.Credits > 0:
		text = append(text, fmt.Sprint("credits=", c.Credits))
	}
	return strings.Join(text, " ")
}

func saidText(all []columns.Asked) string {
	var text []string
	for _, a := range all {
		said := a.Outcome.String()
		if a.Outcome == outcome.Failed {
			said = a.Reason
		}
		if a.Open {
			said += fmt.Sprint("?", a.MaxCredits)
		}
		if a.PaidHere {
			said += "*"
		}
		text = append(text, a.Resolver+"="+said)
	}
	return strings.Join(text, " ")
}

// answer is what some words say about a key, or a value.
func (s *scripted) answer(words []string, about string) purchase.Result {
	a := purchase.Result{Outcome: outcome.Matched, Helpers: map[string]string{}, Run: "run/" + s.step.Name}
	if slices.Contains(words, "stored") || slices.Contains(words, "stale") {
		if !slices.Contains(words, "mine") {
			a.Run = "another run"
		}
	}
	a.Receipt = outcome.Receipt{ResolvedAt: time.Unix(1, 0), Priced: true}
	if s.step.Remote == nil {
		a.Run, a.Receipt = "", outcome.Receipt{}
	}
	open := func(reason string) {
		a.Outcome, a.Reason, a.Receipt, a.Open, a.MaxCredits = outcome.Failed, reason, outcome.Receipt{}, true, 9
	}
	skipped := func(reason string) {
		a = purchase.Result{Outcome: outcome.Skipped, Reason: reason}
	}
	lead := &resolution.Lead{}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "none":
			a.Outcome, a.Reason = outcome.NoMatch, resolution.NoMatch
		case "refused":
			a.Outcome, a.Reason, a.Receipt, a.Refusal = outcome.Failed, outcome.ReasonRefused, outcome.Receipt{}, a.Receipt
		case "denied":
			a = purchase.Result{Outcome: outcome.Failed, Reason: outcome.ReasonRefused + ":forbidden"}
		case "unknown":
			open(outcome.ReasonUnknownCall)
		case "parked":
			open(outcome.ReasonNoCallback)
		case "budget":
			skipped(outcome.ReasonBudget)
		case "no_credits":
			skipped(outcome.ReasonNoCredits)
		case "outage":
			skipped(outcome.ReasonUnavailable)
		case "credits":
			_, err := fmt.Sscan(value, &a.Receipt.Credits)
			a.Receipt.Priced = err == nil
		case "id":
			a.Receipt.ResolutionID = value
		case "email":
			lead.Email = value
		case "phone":
			lead.Phone = value
		case "emails":
			lead.Emails = append(lead.Emails, resolution.ContactEmail{Email: value})
		case "first":
			lead.FirstName = value
		case "knows": // a person by values
			if person.Key(map[string]string{"first_name": value, "company_domain": "x.example"}) != about {
				a.Outcome, a.Reason = outcome.NoMatch, resolution.NoMatch
			}
		case "title":
			lead.JobTitle = value
		case "company", "domain":
			if lead.Company == nil {
				lead.Company = &resolution.Company{}
			}
			if name == "company" {
				lead.Company.Name = value
			} else {
				lead.Company.Domain = value
			}
		case "status":
			a.Helpers["email_status"] = value
		case "valid": // what a verifier knows of values
			if slices.Contains(strings.Split(value, ","), about) {
				a.Helpers["email_status"], a.Helpers["phone_status"] = "valid", "valid"
			}
		}
	}
	all := resolution.NewAnswers()
	if a.Outcome == outcome.Matched {
		all.AddLead(lead)
	} else {
		all.AddMiss("")
	}
	a.Found = rowOf(all, 0)
	return a
}

func TestOrders(t *testing.T) {
	for _, f := range []fact{
		{"the first match ends the order", "", []string{"a: email=1 credits=1", "b: email=2"}, "a", "matched by=a email=1@a credits=1", "a=matched*"},
		{"a miss goes on", "", []string{"a: none credits=1", "b: email=2 credits=2"}, "a b", "matched by=b email=2@b credits=3", "a=no_match* b=matched*"},
		{"all miss", "", []string{"a: none", "b: none"}, "a b", "no_match no_match", "a=no_match* b=no_match*"},
		{"a stored match is not asked for", "", []string{"a: email=1 stored", "b: email=2"}, "", "matched by=a email=1@a", "a=matched"},
		{"a later stored match is enough", "", []string{"a: email=1", "b: email=2 stored"}, "", "matched by=b email=2@b", "b=matched"},
		{"a later stored miss is not", "", []string{"a: email=1", "b: none stored"}, "a", "matched by=a email=1@a", "a=matched*"},
		{"what is missing is asked for", "email phone", []string{"a: email=1", "b: phone=+12025550123"}, "a b", "matched by=a email=1@a phone=+12025550123@b", "a=matched* b=matched*"},
		{"what is there is not asked for", "email", []string{"a: email=1", "b for=email: email=2"}, "a", "matched by=a email=1@a", "a=matched*"},
		{"who is not for it is not asked", "email phone", []string{"a: email=1", "b for=email: email=2", "c: phone=+12025550123"}, "a c", "matched by=a email=1@a phone=+12025550123@c", "a=matched* c=matched*"},
		{"who cannot fill it is not asked", "email phone", []string{"a: email=1", "b fills=email: email=2", "c: none"}, "a c", "matched by=a email=1@a", "a=matched* c=no_match*"},
		{"a refused value fills nothing", "email", []string{"a accept=email_status:valid: email=1 status=risky credits=1", "b: email=2 credits=1"}, "a b", "matched by=a email=2@b credits=2", "a=matched* b=matched*"},
		{"a helper that is missing is not accepted", "email", []string{"a accept=email_status:valid: email=1", "b: none"}, "a b", "matched by=a", "a=matched* b=no_match*"},
		{"an outage keeps the row waiting", "email", []string{"a: outage", "b: email=2"}, "a", "skipped unavailable:a", ""},
		{"a budget keeps the row waiting, with what was found", "email phone", []string{"a: email=1 credits=1", "b: budget", "c: phone=+12025550123"}, "a b", "skipped budget:b by=a email=1@a credits=1", "a=matched*"},
		{"an unknown call ends the key", "", []string{"a: unknown", "b: email=2"}, "a", "failed unknown_call:a", "a=unknown_call?9*"},
		{"else next goes on, and says so", "", []string{"a else=next: unknown", "b: email=2"}, "a b", "matched by=b email=2@b skipped=a:unknown_call", "a=unknown_call?9* b=matched*"},
		{"a stored answer heals an outage", "", []string{"a: outage", "b: email=2 stored"}, "", "matched by=b email=2@b", "b=matched"},
		{"a bad row goes to the next", "", []string{"a: refused", "b: email=2"}, "a b", "matched by=b email=2@b", "a=refused* b=matched*"},
		{"refused by all", "", []string{"a: refused", "b: refused"}, "a b", "failed refused:b", "a=refused* b=refused*"},
		{"refused by some", "", []string{"a: refused", "b: none"}, "a b", "no_match no_match", "a=refused* b=no_match*"},
		{"a group comes whole", "company_domain", []string{"a: company=Bakery", "b: domain=bakery.example"}, "a b", "matched by=a company_domain=bakery.example@b", "a=matched* b=matched*"},
		{"a group of which nothing is wanted is the first's", "email", []string{"a: title=baker", "b: title=cook email=2"}, "a b", "matched by=a email=2@b job_title=baker@a", "a=matched* b=matched*"},
		{"a verified value is taken", "email", []string{"a: email=1", "v verifies=email accept=email_status:valid: valid=1 credits=1", "b: email=2"}, "a v", "matched by=a email=1@a credits=1", "a=matched* v=matched*"},
		{"a refuted value is replaced", "email", []string{"a: email=1", "v verifies=email accept=email_status:valid: none credits=1", "b: email=2"}, "a v b", "matched by=a email=2@b credits=1", "a=matched* v=no_match* b=matched*"},
		{"a verifier looks at all before it", "email", []string{"a: email=1", "b: email=2", "v verifies=email accept=email_status:valid: valid=2 credits=1"}, "a v b v", "matched by=a email=2@b credits=2", "a=matched* b=matched* v=matched* v=matched*"},
		{"nothing found, nothing verified", "email", []string{"a: none", "v verifies=email accept=email_status:valid: valid=1"}, "a", "no_match no_match", "a=no_match*"},
		{"a verifier without budget keeps the row waiting", "email", []string{"a: email=1", "v verifies=email accept=email_status:valid: budget", "b: email=2"}, "a v", "skipped budget:v by=a email=1@a", "a=matched*"},
		{"a refuted value stays refused, whoever has it", "email", []string{"a: email=1", "v verifies=email accept=email_status:valid: none", "b: email=1 title=cook", "c: email=2"}, "a v b c", "matched by=a email=2@c job_title=cook@b", "a=matched* v=no_match* b=matched* c=matched*"},
		{"lists go with a refused value", "email", []string{"a accept=email_status:valid: email=1 emails=1 status=risky", "b: email=2 emails=2"}, "a b", "matched by=a email=2@b emails=2@b", "a=matched* b=matched*"},
		{"also with a refuted one", "email", []string{"a: email=1 emails=1 title=cook", "v verifies=email accept=email_status:valid: none"}, "a v", "matched by=a job_title=cook@a", "a=matched* v=no_match*"},
		{"who may cost too much is left out", "max=5 email", []string{"a price=2: none credits=2", "b price=4: email=1 credits=4", "c price=3: email=2 credits=3"}, "a c", "matched by=c email=2@c skipped=b:max_credits_per_key credits=5", "a=no_match* c=matched*"},
		{"what answers have cost counts, not what they might have", "max=5 email", []string{"a price=4: none credits=1", "b price=4: email=1 credits=4"}, "a b", "matched by=b email=1@b credits=5", "a=no_match* b=matched*"},
		{"one that does not say it counts with its price", "max=5 email", []string{"a price=4: none credits=?", "b price=2: email=1"}, "a", "no_match no_match skipped=b:max_credits_per_key credits=?", "a=no_match*"},
		{"what is stored is left out all the same", "max=5 email", []string{"a price=2: none credits=2 stored", "b price=4: email=1 credits=4 stored"}, "", "no_match no_match skipped=b:max_credits_per_key credits=2", "a=no_match"},
		{"it spares no call either", "max=5 email phone", []string{"a price=2: email=1 credits=2", "b price=4: phone=+12025550123 credits=4 stored", "c price=3: email=2 phone=+12025550124 credits=3 stored"}, "a", "matched by=a email=1@a phone=+12025550124@c skipped=b:max_credits_per_key credits=5", "a=matched* c=matched"},
		{"reference data cost nothing", "max=2 email", []string{"dir: none", "a price=2: none credits=2", "dir2: email=1"}, "a", "matched by=dir2 email=1@dir2 credits=2", "dir=no_match a=no_match* dir2=matched"},
		{"an open call counts with the most that it may cost", "max=12 email", []string{"a else=next price=3: unknown", "b price=4: email=1", "c price=3: email=2 credits=3"}, "a c", "matched by=c email=2@c skipped=a:unknown_call;b:max_credits_per_key credits=3", "a=unknown_call?9* c=matched*"},
		{"a verifier that is left out lets the value pass", "max=5 email", []string{"a price=4: email=1 credits=4", "v price=2 verifies=email accept=email_status:valid: none credits=2", "b: email=2"}, "a", "matched by=a email=1@a skipped=v:max_credits_per_key credits=4", "a=matched*"},
		{"what was in the row stays when a verifier has cost something", "max=9 email phone", []string{"a price=3: email=1 credits=3", "b price=5: phone=+12025550123 credits=3", "v price=3 verifies=email accept=email_status:valid: none credits=3", "c price=1: email=2"}, "a b v", "matched by=a phone=+12025550123@b skipped=c:max_credits_per_key credits=9", "a=matched* b=matched* v=no_match*"},
		{"all are asked, and the row stays the same", "all email", []string{"a: email=1 credits=1", "b: email=2 title=cook credits=2", "c: none credits=1"}, "a b c", "matched by=a email=1@a credits=4", "a=matched* b=matched* c=no_match*"},
		{"all that are not stored", "all email", []string{"a: email=1 credits=1 stored", "b: email=2 credits=2 stored", "c: none credits=1"}, "c", "matched by=a email=1@a credits=4", "a=matched b=matched c=no_match*"},
		{"also for nothing that is wanted", "all email", []string{"a: email=1", "b fills=phone: phone=1"}, "a b", "matched by=a email=1@a", "a=matched* b=matched*"},
		{"all values are verified", "all email", []string{"a: email=1 credits=1", "b: email=2 credits=1", "v verifies=email accept=email_status:valid: valid=1 credits=1"}, "a v b v", "matched by=a email=1@a credits=4", "a=matched* b=matched* v=matched* v=matched*"},
		{"the same value once", "all email", []string{"a: email=1", "b: email=1", "v verifies=email accept=email_status:valid: valid=1"}, "a v b", "matched by=a email=1@a", "a=matched* b=matched* v=matched*"},
		{"the row waits for all", "all email", []string{"a: email=1 credits=1", "b: budget"}, "a b", "skipped budget:b by=a email=1@a credits=1", "a=matched*"},
		{"but not where the next is asked else", "all email", []string{"a: email=1 credits=1", "b else=next: outage", "c: none"}, "a b c", "matched by=a email=1@a credits=1", "a=matched* c=no_match*"},
		{"nor without calls", "offline all email", []string{"a: email=1 credits=1 stored", "b: email=2"}, "", "matched by=a email=1@a credits=1", "a=matched"},
		{"who is listed is asked about no more", "all email", []string{"a: email=listed", "b: email=2"}, "a", "suppressed listed", "a=matched*"},
		{"a person is asked about by what was found", "email", []string{"a: first=ADA domain=https://www.X.example/", "p person=first_name,company_domain: email=1 knows=ada credits=1"}, "a p", "matched by=a email=1@p company_domain=https://www.X.example/@a first_name=ADA@a credits=1", "a=matched* p=matched*"},
		{"and not while a value is missing", "email", []string{"a: first=ADA", "p person=first_name,company_domain: email=1 knows=ada", "b: domain=x.example email=2"}, "a b", "matched by=a email=2@b company_domain=x.example@b first_name=ADA@a", "a=matched* b=matched*"},
		{"all are asked, also about a person", "all email", []string{"a: first=ADA domain=x.example email=1 credits=1", "p person=first_name,company_domain: email=2 knows=ada credits=1", "q person=last_name: email=3 credits=1"}, "a p", "matched by=a email=1@a company_domain=x.example@a first_name=ADA@a credits=2", "a=matched* p=matched*"},
		{"an answer about a person is stored by the person", "email", []string{"a: first=ada domain=x.example stored", "p person=first_name,company_domain: email=1 knows=ada stored"}, "", "matched by=a email=1@p company_domain=x.example@a first_name=ada@a", "a=matched p=matched"},
		{"it spares a call to one before it", "email", []string{"a: first=ada domain=x.example stored", "b: email=2", "p person=first_name,company_domain: email=1 knows=ada stored"}, "", "matched by=a email=1@p company_domain=x.example@a first_name=ada@a", "a=matched p=matched"},
		{"a person's address is verified", "email", []string{"a: first=ada domain=x.example", "p person=first_name,company_domain: email=1 knows=ada", "v verifies=email accept=email_status:valid: none", "b: email=2"}, "a p v b", "matched by=a email=2@b company_domain=x.example@a first_name=ada@a", "a=matched* p=matched* v=no_match* b=matched*"},
		{"one that was found before a value was refused is another person then", "email", []string{"a for=email: email=1 credits=1", "b for=email: first=ada domain=x.example email=1 credits=1", "v verifies=email accept=email_status:valid: none credits=1", "p person=first_name,company_domain: email=3 knows=ada credits=1"}, "a v b p", "matched by=a email=3@p company_domain=x.example@b first_name=ada@b credits=4", "a=matched* b=matched* v=no_match* p=matched*"},
		{"or lets the value pass", "email", []string{"a: email=1", "v else=next verifies=email accept=email_status:valid: budget", "b: email=2"}, "a v", "matched by=a email=1@a skipped=v:budget", "a=matched*"},
	} {
		f.check(t)
	}
}
