package order

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
)

// A test of an order is a line for each resolver: its name and settings, what it says, and whether
// that is stored:
//
//	pdl for=email accept=email_status:valid: email=a@x.example status=valid credits=1 stored
//
// It says columns of a match, none, refused, or why it has no answer: unknown, budget, outage.
type fact struct {
	name  string
	want  string
	lines []string
	asked string // the resolvers that were asked, in order
	row   string // outcome, reason, values with their resolver, credits
}

func (f fact) play(t *testing.T) (asked, row string) {
	t.Helper()
	o := &Order{Want: strings.Fields(f.want)}
	var says []string
	for _, line := range f.lines {
		head, said, _ := strings.Cut(line, ": ")
		words := strings.Fields(head)
		s := &Step{Name: words[0], Remote: &purchase.Remote{}}
		for _, word := range words[1:] {
			name, value, _ := strings.Cut(word, "=")
			switch name {
			case "for":
				s.For = strings.Split(value, ",")
			case "accept":
				column, accepts, _ := strings.Cut(value, ":")
				s.Accept = map[string][]string{column: strings.Split(accepts, ",")}
			case "else":
				s.ElseNext = true
			case "verifies":
				s.Verifies = value
			case "fills":
				s.Fills = strings.Split(value, ",")
			}
		}
		o.Steps, says = append(o.Steps, s), append(says, said)
	}
	if err := o.Check(resolution.Enrichment); err != nil {
		t.Fatal(err)
	}
	k := key{said: make([]said, len(o.Steps)), verdicts: make([]map[string]said, len(o.Steps))}
	var order []string
	for range 100 {
		a, r := o.next(&k, nil, "run")
		if a.kind == finish {
			got, reason := r.outcome(o, &k)
			text := []string{got.String()}
			if reason != "" {
				text = append(text, reason)
			}
			origin := r.origin(o, &k)
			if origin.AnsweredBy != "" {
				text = append(text, "by="+origin.AnsweredBy)
			}
			for g, s := range r.from {
				if s >= 0 {
					for name, v := range values {
						if v.group == resolution.Group(g) && !v.list && v.of(k.said[s].row) != "" && !strings.HasPrefix(name, "phone_") {
							text = append(text, fmt.Sprintf("%s=%s@%s", name, v.of(k.said[s].row), o.Steps[s].Name))
						}
					}
				}
			}
			if origin.Skipped != "" {
				text = append(text, "skipped="+origin.Skipped)
			}
			if c := r.receipt(&k); c.Credits > 0 {
				text = append(text, fmt.Sprint("credits=", c.Credits))
			}
			return strings.Join(order, " "), strings.Join(text, " ")
		}
		s := o.Steps[a.step]
		said, stored := strings.CutSuffix(says[a.step], " stored")
		heard := saidBy(o, s, said, a.value)
		switch {
		case a.kind == look && !stored:
			heard.state = absent
		case a.kind == ask:
			order = append(order, s.Name)
		}
		heard.again = k.said[a.step].state == absent
		if a.value == "" {
			k.said[a.step] = heard
			continue
		}
		if k.verdicts[a.step] == nil {
			k.verdicts[a.step] = map[string]state_{}
		}
		k.verdicts[a.step][a.value] = heard
	}
	t.Fatal("it does not end")
	return "", ""
}

type state_ = said

// saidBy is what the text of a line says.
func saidBy(o *Order, s *Step, text, about string) said {
	a := purchase.Answer{Outcome: outcome.Matched, Helpers: map[string]string{}}
	lead := &resolution.Lead{}
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "none":
			a.Outcome, a.Reason = outcome.NoMatch, resolution.NoMatch
		case "refused":
			a.Outcome, a.Reason = outcome.Failed, outcome.ReasonRefused
		case "unknown":
			a.Outcome, a.Reason = outcome.Failed, outcome.ReasonUnknownCall
		case "budget":
			a.Outcome, a.Reason = outcome.Skipped, outcome.ReasonBudget
		case "outage":
			a.Outcome, a.Reason = outcome.Skipped, outcome.ReasonUnavailable
		case "credits":
			fmt.Sscan(value, &a.Receipt.Credits)
			a.Receipt.Priced = true
		case "email":
			lead.Email = value
		case "phone":
			lead.Phone = value
		case "title":
			lead.JobTitle = value
		case "company":
			lead.Company = &resolution.Company{Name: value}
		case "domain":
			lead.Company = &resolution.Company{Domain: value}
		case "status":
			a.Helpers["email_status"] = value
		case "valid": // what a verifier knows of values
			if strings.Contains(","+value+",", ","+about+",") {
				a.Helpers["email_status"] = "valid"
			}
		}
	}
	all := resolution.NewAnswers()
	if a.Outcome == outcome.Matched {
		all.AddLead(lead)
	} else {
		all.AddMiss("")
	}
	return s.said(o, a, rowOf(all, 0))
}

func TestOrders(t *testing.T) {
	for _, f := range []fact{
		{"the first match ends the order", "", []string{"a: email=1 credits=1", "b: email=2"}, "a", "matched by=a email=1@a credits=1"},
		{"a miss goes on", "", []string{"a: none credits=1", "b: email=2 credits=2"}, "a b", "matched by=b email=2@b credits=3"},
		{"all miss", "", []string{"a: none", "b: none"}, "a b", "no_match no_match"},
		{"a stored match is not asked for", "", []string{"a: email=1 stored", "b: email=2"}, "", "matched by=a email=1@a"},
		{"a later stored match is enough", "", []string{"a: email=1", "b: email=2 stored"}, "", "matched by=b email=2@b"},
		{"a later stored miss is not", "", []string{"a: email=1", "b: none stored"}, "a", "matched by=a email=1@a"},
		{"what is missing is asked for", "email phone", []string{"a: email=1", "b: phone=+12025550123"}, "a b", "matched by=a email=1@a phone=+12025550123@b"},
		{"what is there is not asked for", "email", []string{"a: email=1", "b for=email: email=2"}, "a", "matched by=a email=1@a"},
		{"who is not for it is not asked", "email phone", []string{"a: email=1", "b for=email: email=2", "c: phone=+12025550123"}, "a c", "matched by=a email=1@a phone=+12025550123@c"},
		{"who cannot fill it is not asked", "email phone", []string{"a: email=1", "b fills=email: email=2", "c: none"}, "a c", "matched by=a email=1@a"},
		{"a refused value fills nothing", "email", []string{"a accept=email_status:valid: email=1 status=risky credits=1", "b: email=2 credits=1"}, "a b", "matched by=a email=2@b credits=2"},
		{"a helper that is missing is not accepted", "email", []string{"a accept=email_status:valid: email=1", "b: none"}, "a b", "matched by=a"},
		{"an outage keeps the row waiting", "email", []string{"a: outage", "b: email=2"}, "a", "skipped unavailable:a"},
		{"a budget keeps the row waiting, with what was found", "email phone", []string{"a: email=1 credits=1", "b: budget", "c: phone=+12025550123"}, "a b", "skipped budget:b by=a email=1@a credits=1"},
		{"an unknown call ends the key", "", []string{"a: unknown", "b: email=2"}, "a", "failed unknown_call:a"},
		{"else next goes on, and says so", "", []string{"a else=next: unknown", "b: email=2"}, "a b", "matched by=b email=2@b skipped=a:unknown_call"},
		{"a stored answer heals an outage", "", []string{"a: outage", "b: email=2 stored"}, "", "matched by=b email=2@b"},
		{"a bad row goes to the next", "", []string{"a: refused", "b: email=2"}, "a b", "matched by=b email=2@b"},
		{"refused by all", "", []string{"a: refused", "b: refused"}, "a b", "failed refused:b"},
		{"refused by some", "", []string{"a: refused", "b: none"}, "a b", "no_match no_match"},
		{"a group comes whole", "company_domain", []string{"a: company=Bakery", "b: domain=bakery.example"}, "a b", "matched by=a company_domain=bakery.example@b"},
		{"a group of which nothing is wanted is the first's", "email", []string{"a: title=baker", "b: title=cook email=2"}, "a b", "matched by=a email=2@b job_title=baker@a"},
		{"a verified value is taken", "email", []string{"a: email=1", "v verifies=email accept=email_status:valid: valid=1 credits=1", "b: email=2"}, "a v", "matched by=a email=1@a credits=1"},
		{"a refuted value is replaced", "email", []string{"a: email=1", "v verifies=email accept=email_status:valid: none credits=1", "b: email=2"}, "a v b", "matched by=a email=2@b credits=1"},
		{"a verifier looks at all before it", "email", []string{"a: email=1", "b: email=2", "v verifies=email accept=email_status:valid: valid=2 credits=1"}, "a v b v", "matched by=a email=2@b credits=2"},
		{"nothing found, nothing verified", "email", []string{"a: none", "v verifies=email accept=email_status:valid: valid=1"}, "a", "no_match no_match"},
		{"a verifier without budget keeps the row waiting", "email", []string{"a: email=1", "v verifies=email accept=email_status:valid: budget", "b: email=2"}, "a v", "skipped budget:v by=a email=1@a"},
		{"or lets the value pass", "email", []string{"a: email=1", "v else=next verifies=email accept=email_status:valid: budget", "b: email=2"}, "a v", "matched by=a email=1@a skipped=v:budget"},
	} {
		asked, row := f.play(t)
		if asked != f.asked || row != f.row {
			t.Errorf("%s:\n asked %q, row %q\n want  %q,     %q", f.name, asked, row, f.asked, f.row)
		}
	}
}
