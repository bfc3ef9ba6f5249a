//go:build unix

package resolvers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
)

// known is a resolver as the model of these tests knows it.
type known struct {
	name string
	says func(key string) (email, phone string, matched bool)
	cost func(matched bool) int64
	free bool // its answers are neither bought nor listed with credits
}

// expected is a row of the model.
type expected struct {
	answeredBy, emailBy, phoneBy, email, phone string
	credits                                    int64
	asked                                      []string // NAME outcome
	suppressed                                 string   // the kind of a listed value
}

func provides(name string, p *badservice.Provider, match, miss int64) known {
	return known{name: name, says: p.Says, cost: func(matched bool) int64 {
		if matched {
			return match
		}
		return miss
	}}
}

func serves(name string, s *badservice.Service) known {
	return known{name: name, cost: func(matched bool) int64 {
		if matched {
			return 2
		}
		return 0
	}, says: func(key string) (email, phone string, matched bool) {
		lead := s.Lead("enrichment", key)
		if lead == nil {
			return "", "", false
		}
		return lead["email"].(string), lead["phone"].(string), true
	}}
}

// ownsSome is the directory of order.owns.
func ownsSome(numbers ...int) known {
	return known{name: "embedded", free: true, cost: func(bool) int64 { return 0 }, says: func(key string) (email, phone string, matched bool) {
		n, err := strconv.Atoi(key[strings.LastIndex(key, "-")+1:])
		if err != nil || !slices.Contains(numbers, n) {
			return "", "", false
		}
		return fmt.Sprintf("own%d@own.example", n), "", true
	}}
}

// asks is the rule of an order that wants an email and a phone: the next resolver is asked while one
// of them is missing, and a value is that of the first that has it. An answer with a listed value ends
// the order, and nothing is known of the row.
func asks(key string, of []known, listed ...string) (row expected) {
	for _, r := range of {
		if row.email != "" && row.phone != "" {
			break
		}
		email, phone, matched := r.says(key)
		row.credits += r.cost(matched)
		outcome := "no_match"
		if matched {
			outcome = "matched"
		}
		row.asked = append(row.asked, r.name+" "+outcome)
		for kind, value := range map[string]string{"email": email, "phone": phone} {
			if slices.Contains(listed, value) && value != "" {
				return expected{credits: row.credits, asked: row.asked, suppressed: kind}
			}
		}
		if matched && row.answeredBy == "" {
			row.answeredBy = r.name
		}
		if row.email == "" && email != "" {
			row.email, row.emailBy = email, r.name
		}
		if row.phone == "" && phone != "" {
			row.phone, row.phoneBy = phone, r.name
		}
	}
	return row
}

// passes reports whether what is stored leaves nothing missing without a resolver whose answers do not
// count any more.
func passes(key string, of []known, without string) bool {
	asked := asks(key, of).asked
	row := asks(key, slices.DeleteFunc(slices.Clone(of), func(r known) bool {
		return r.name == without || !slices.ContainsFunc(asked, func(said string) bool { return strings.HasPrefix(said, r.name+" ") })
	}))
	return row.email != "" && row.phone != ""
}

// requireRows holds a dataset to the model, row for row, with what it says was asked. of are the
// resolvers that a key is asked of.
func requireRows(t *testing.T, out string, of func(key string) []known) {
	t.Helper()
	d := clitest.ReadDataset(t, out)
	cell := func(row []string, name string) string { return row[d.Column(t, name)] }
	var listed []string
	seen, complete := map[string]bool{}, int64(0)
	for i, row := range d.Rows {
		key := cell(row, "key")
		if cell(row, "outcome") == "rejected" {
			continue
		}
		want := asks(key, of(key))
		got := expected{credits: want.credits, asked: want.asked}
		for name, to := range map[string]*string{"answered_by": &got.answeredBy, "email_answered_by": &got.emailBy, "phone_answered_by": &got.phoneBy, "email": &got.email, "phone": &got.phone} {
			if *to = cell(row, name); *to == "null" {
				*to = ""
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("row %d: %+v, want %+v", i+1, got, want)
		}
		if want.emailBy != "" && want.phoneBy != "" {
			complete++
		}
		paid := slices.ContainsFunc(want.asked, func(said string) bool { return !strings.HasPrefix(said, "embedded ") })
		if credits := cell(row, "credits"); credits != strconv.FormatInt(want.credits, 10) && (paid || credits != "null" && credits != "0") {
			t.Errorf("row %d costs %s, want %d", i+1, credits, want.credits)
		}
		if !seen[key] {
			seen[key] = true
			for _, said := range want.asked {
				listed = append(listed, key+" "+said)
			}
		}
	}
	if counted := clitest.LastReport(t, out).Totals.Complete; counted != complete {
		t.Errorf("%d rows are counted as complete, want %d", counted, complete)
	}
	var asked []string
	a := clitest.ReadAsked(t, out)
	for _, row := range a.Rows {
		asked = append(asked, row[a.Column(t, "key")]+" "+row[a.Column(t, "resolver")]+" "+row[a.Column(t, "outcome")])
	}
	if !slices.Equal(asked, listed) {
		t.Errorf("%d rows of what was asked, want %d", len(asked), len(listed))
		for i := range min(len(asked), len(listed)) {
			if asked[i] != listed[i] {
				t.Errorf("of what was asked row %d is %s, want %s", i+1, asked[i], listed[i])
				break
			}
		}
	}
}

// requireAccounts: each resolver's books say what its ledger says, to the unit, and no key was billed
// twice.
func requireAccounts(t *testing.T, out string, ledgers map[string][]badservice.Asked) {
	t.Helper()
	said := map[string]int64{}
	for _, r := range clitest.LastReport(t, out).Resolvers {
		said[r.Name] = r.Credits
	}
	of, asked := clitest.ReadAsked(t, out), map[string]int64{}
	for _, row := range of.Rows {
		n, _ := strconv.ParseInt(row[of.Column(t, "credits")], 10, 64)
		asked[row[of.Column(t, "resolver")]] += n
	}
	for name, ledger := range ledgers {
		if spent := badservice.SpentOf(ledger); said[name] != spent || asked[name] != spent {
			t.Errorf("%s has billed %d credits; the report says %d, _asked %d", name, spent, said[name], asked[name])
		}
		requireOnce(t, name, ledger)
	}
}

func requireOnce(t testing.TB, name string, ledger []badservice.Asked) {
	t.Helper()
	for key, times := range badservice.Bills(ledger) {
		if times > 1 {
			t.Errorf("%s has billed %s %d times", name, key, times)
		}
	}
}

// ledgerOf is the ledger of a service as that of a provider.
func ledgerOf(s *badservice.Service) (ledger []badservice.Asked) {
	for _, e := range s.Ledger() {
		ledger = append(ledger, badservice.Asked{Key: e.Key, Billed: true, Credits: e.Credits, Fate: badservice.Answered})
	}
	return ledger
}
