package pipeline_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/report"
)

// ends runs and returns how it ended.
func (s *several) ends(t tb) (result *finish.Result, err error) {
	s.with(t, func() { result, err = s.do(t.(*testing.T).Context()) })
	return result, err
}

// readReport reads _report.json as others do.
func (s *several) readReport(t tb) (r report.Report) {
	data, err := os.ReadFile(filepath.Join(s.outDir(), "_report.json"))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// lines is what a report says of each resolver, and of all.
func lines(r report.Report) string {
	var all []string
	for _, of := range r.Resolvers {
		line := fmt.Sprintf("%s asked %d matched %d added %d credits %d", of.Name, of.Asked, of.Matched, of.Added, of.Credits)
		if of.CreditsPerAdded != nil {
			line += fmt.Sprintf(" each %g", *of.CreditsPerAdded)
		}
		if s := of.Service; s != nil {
			line += fmt.Sprintf(", now %d stored %d calls %d credits", s.Calls.Stored, s.Calls.Calls, s.Calls.Credits)
		}
		all = append(all, line)
	}
	c := r.Total.Calls
	return strings.Join(append(all, fmt.Sprintf("all: %d keys %d closed %d matched %d stored %d calls %d credits %d before", c.Asked, c.Closed, c.Matched, c.Stored, c.Calls, c.Credits, c.EarlierCredits)), "\n")
}

// The report says of each resolver what it has done for the rows of the dataset and what this run
// asked it; the manifest has the credits of all.
func TestReportOfSeveral(t *testing.T) {
	nth := func(most int, words string) func(string) string {
		return func(key string) string {
			n := 0
			fmt.Sscanf(key[strings.LastIndex(key, "person"):], "person%d", &n)
			if n < most {
				return words
			}
			return ""
		}
	}
	says := map[string]func(string) string{"dir": nth(4, "email=d@mail.example"), "a": nth(10, "email=a@mail.example"), "b": nth(15, "email=b@mail.example")}
	s := newSeveral(t, "email", says, "dir", "a", "b")
	s.people(t, 0, 20) // and two duplicates
	if _, err := s.ends(t); err != nil {
		t.Fatal(err)
	}
	const first = `dir asked 20 matched 4 added 5 credits 0 each 0
a asked 16 matched 6 added 6 credits 12 each 2, now 0 stored 16 calls 12 credits
b asked 10 matched 5 added 6 credits 10 each 1.6667, now 0 stored 10 calls 10 credits
all: 20 keys 20 closed 15 matched 4 stored 26 calls 22 credits 0 before`
	if got := lines(s.readReport(t)); got != first {
		t.Errorf("the first run:\n%s\nwant\n%s", got, first)
	}
	if m := readManifest(t, s.outDir()); m.CreditsTotal == nil || *m.CreditsTotal != 22 || *m.CreditsThisRun != 22 || m.Run == "" {
		t.Errorf("manifest: %+v", m)
	}
	s.overwrite = true
	s.people(t, 0, 22)
	if _, err := s.ends(t); err != nil {
		t.Fatal(err)
	}
	const second = `dir asked 22 matched 4 added 5 credits 0 each 0
a asked 18 matched 6 added 6 credits 12 each 2, now 16 stored 2 calls 0 credits
b asked 12 matched 5 added 6 credits 10 each 1.6667, now 10 stored 2 calls 0 credits
all: 22 keys 22 closed 15 matched 20 stored 4 calls 0 credits 0 before`
	if got := lines(s.readReport(t)); got != second {
		t.Errorf("the second run:\n%s\nwant\n%s", got, second)
	}
}

// A run that stops names each resolver that stopped it, and its report has the same.
func TestReportOfSeveralThatStop(t *testing.T) {
	none := share("", 0, "")
	s := newSeveral(t, "", map[string]func(string) string{"a": none, "b": none}, "a", "b")
	s.limit = func(o *order.Order) { o.Steps[1].Remote.Budget.MaxCredits = 1 }
	s.people(t, 0, 5)
	_, err := s.ends(t)
	var of *order.StepError
	if !errors.Is(err, purchase.ErrBudget) || !errors.As(err, &of) || of.Resolver != "b" {
		t.Fatalf("it ends with %v", err)
	}
	r := s.readReport(t)
	if r.Stop.Reason != report.StopBudget || !strings.HasPrefix(r.Stop.Detail, "b: the budget is too small for one more call: max_credits of b 1") {
		t.Errorf("stop: %+v", r.Stop)
	}
	if most := r.Resolvers[1].Service.Budget.MaxCredits; most == nil || *most != 1 || r.Resolvers[0].Service.Budget.MaxCredits != nil || r.Total.Budget.MaxCredits != nil {
		t.Errorf("budgets: %+v", r.Resolvers)
	}
}

// What a dataset has cost counts on when a lost part is bought again, also if the state that knew is
// lost too: in the manifest, and against the budget of the job.
func TestSeveralCountOn(t *testing.T) {
	says := map[string]func(string) string{"none": share("", 0, ""), "all": share("", 100, "email=a@mail.example")}
	for _, c := range []struct {
		name         string
		first, last  string // resolvers
		loseState    bool
		total, spent int64
	}{
		{"the state is there, and the last was paid", "none", "all", false, 20, 20}, {"the state is there, and the first was paid", "all", "none", false, 20, 20},
		{"the state is lost", "none", "all", true, 30, 30},
	} {
		s := newSeveral(t, "", says, c.first, c.last)
		s.people(t, 0, 10)
		s.rowsPerPart = 6 // 5 people, the first of them twice
		if _, err := s.ends(t); err != nil {
			t.Fatal(err)
		}
		payer := readManifest(t, s.outDir()).Run
		lost := os.Remove(filepath.Join(s.outDir(), "part-00000.parquet"))
		if c.loseState {
			lost = errors.Join(lost, os.RemoveAll(filepath.Join(s.stateDir(), "answers")))
		}
		if lost != nil {
			t.Fatal(lost)
		}
		if _, err := s.ends(t); err != nil {
			t.Fatal(err)
		}
		m, r := readManifest(t, s.outDir()), s.readReport(t)
		if *m.CreditsTotal != c.total || r.Total.Budget.Credits != c.spent {
			t.Errorf("%s: %d credits in the manifest, %d against the budget; want %d and %d", c.name, *m.CreditsTotal, r.Total.Budget.Credits, c.total, c.spent)
		}
		if same := m.Run == payer; same == c.loseState {
			t.Errorf("%s: the repair counts as the same run: %v", c.name, same)
		}
	}
}
