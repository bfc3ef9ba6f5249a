package answers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// exportOf is what is exported of a store, in no order.
func exportOf(t *testing.T, s *Store) []string {
	t.Helper()
	c := contents(t, s)
	var out strings.Builder
	must(t, Export(&out, func(yield func(Line, error) bool) {
		calls, err := c.Calls(t.Context())
		must(t, err)
		for i, err := range c.List(t.Context(), Filter{Bodies: true}) {
			if !yield(Line{Item: i}, err) {
				return
			}
		}
		for i := range calls {
			if !yield(Line{Call: &calls[i]}, nil) {
				return
			}
		}
	}))
	return slices.Sorted(strings.Lines(out.String()))
}

func importFile(t *testing.T, lines ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "answers.jsonl")
	must(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600))
	return path
}

func importInto(t *testing.T, s *Store, lines ...string) (Taken, error) {
	t.Helper()
	m, err := OpenImport(t.Context(), importFile(t, lines...), t.TempDir())
	if err != nil {
		return Taken{}, err
	}
	defer func() { must(t, m.Close()) }()
	if err := m.Check(t.Context(), s); err != nil {
		return Taken{}, err
	}
	return m.Take(t.Context(), s)
}

// bought fills a store with answers and open calls of two scopes.
func bought(t *testing.T, s *Store) {
	t.Helper()
	for n := range 700 { // more than are taken at a time
		q := person(fmt.Sprint(n))
		if n%2 == 0 {
			q.Scope.Service = "https://other.example"
		}
		intent(t, s, q, Send{Run: "night", At: noon, Address: "https://" + q.Key})
		switch n % 5 {
		case 0:
			must(t, s.Fail(t.Context(), q, Failure{Reason: "timeout", MayBeBilled: true, Body: []byte("cut off"), Request: "req"}))
		case 1:
			must(t, s.Park(t.Context(), q, Parking{Resolution: fmt.Sprint("res-", n), Deadline: noon.Add(time.Hour)}))
		case 2:
			must(t, s.Put(t.Context(), q, Answer{Run: "night", Outcome: NoMatch, Status: 404, Credits: credits(0), Body: []byte("<p>"), Received: noon}))
			intent(t, s, q, Send{Run: "next", At: noon.Add(time.Hour), KeyWindow: time.Hour}) // stays under way
		default:
			must(t, s.Put(t.Context(), q, Answer{Run: "night", Outcome: Matched, Status: 200, Credits: credits(2), Body: []byte(`{ "n": 1 }`), Received: noon}))
		}
	}
}

// TestImport: what is exported and imported is exported as the same, and open calls are as they were.
func TestImport(t *testing.T) {
	from := open(t, t.TempDir())
	bought(t, from)
	lines := exportOf(t, from)
	if len(lines) != 700+140 {
		t.Fatalf("%d lines", len(lines))
	}
	dir := t.TempDir()
	to := open(t, dir)
	for _, want := range []Taken{{Answers: 420, Calls: 420}, {}} {
		if taken, err := importInto(t, to, lines...); err != nil || taken != want {
			t.Fatalf("%+v, %v, want %+v", taken, err, want)
		}
		if got := exportOf(t, to); !slices.Equal(got, lines) {
			t.Fatalf("%d lines, or others than %d were imported", len(got), len(lines))
		}
	}
	if taken, err := importInto(t, from, lines...); err != nil || taken.Answers != 0 {
		t.Errorf("into the state that they are from: %+v, %v", taken, err)
	}
	for _, name := range []string{"0", "1", "2"} {
		q := person(name)
		if name != "1" {
			q.Scope.Service = "https://other.example"
		}
		here, err := from.Find(t.Context(), q.Hash())
		there, other := to.Find(t.Context(), q.Hash())
		if here.State == UnderWay {
			here.State, here.MaybeBilled = Unknown, true
		}
		if err != nil || other != nil || !reflect.DeepEqual(here, there) || there.FirstSent() != here.FirstSent() {
			t.Errorf("%s: %+v, %v, was %+v, %v", name, there, other, here, err)
		}
		if _, err := to.Intent(t.Context(), q, Send{Run: "next", At: noon}); !errors.Is(err, ErrOpen) {
			t.Errorf("%s: %v, want ErrOpen", name, err)
		}
	}
	if c, err := to.FindByResolution(t.Context(), people.Service, "res-1"); err != nil || c.Key != person("1").Key {
		t.Errorf("%+v, %v", c, err)
	}
	if spent, open, err := to.SumSpent(t.Context(), "night"); err != nil || spent != (Spending{}) {
		t.Errorf("%+v, %+v, %v", spent, open, err)
	}
}

// TestImportRefused: a line that is none of an export, or contradicts another or what is stored, is
// named, and nothing is written.
func TestImportRefused(t *testing.T) {
	at := func(l Line) string {
		text, err := l.text()
		must(t, err)
		return text
	}
	answer := func(name string, a Answer) string {
		a.Outcome, a.Received = Matched, noon
		return at(Line{Item: Item{person(name).Hash(), person(name), a}})
	}
	call := func(name, key string, sent time.Time) string {
		return at(Line{Call: &OpenCall{Hash: person(name).Hash(), Question: person(name), State: Unknown, IdempotencyKey: key, Attempts: 1, Sent: sent}})
	}
	priced := Answer{Credits: credits(2)}
	for _, c := range []struct {
		name  string
		lines []string
		want  string // "" if they are imported
		taken Taken
	}{
		{"an empty file", nil, "", Taken{}},
		{"no line of an export", []string{answer("x", priced), "{}\n"}, ":2: service, operation and key must not be empty", Taken{}},
		{"an empty line", []string{answer("x", priced), "\n", answer("y", priced)}, ":2: it is not a JSON object", Taken{}},
		{"a line that is cut off", []string{answer("x", priced), answer("y", priced)[:50]}, ":2: it does not end with a line feed", Taken{}},
		{"the last line without its end", []string{strings.TrimSuffix(answer("x", priced), "\n")}, ":1: it does not end with a line feed", Taken{}},
		{"the same line twice", []string{answer("x", priced), answer("y", priced), answer("x", priced)}, "", Taken{Answers: 2}},
		{"two answers to a question", []string{answer("x", priced), answer("y", priced), answer("x", Answer{})}, ":3: line 1 says something else about the same question", Taken{}},
		{"two open calls of a question", []string{call("x", "i", noon), call("x", "j", noon)}, ":2: line 1 says something else about the same question", Taken{}},
		{"an answer and an open call of a question", []string{answer("x", priced), call("x", "i", noon.Add(time.Hour))}, "", Taken{Answers: 1, Calls: 1}},
		{"an answer that came after the call", []string{call("x", "i", noon.Add(-time.Hour)), answer("x", priced)}, "", Taken{Answers: 1}},
		{"the stored answer", []string{answer("stored", priced), answer("x", priced)}, "", Taken{Answers: 1}},
		{"another answer than is stored", []string{answer("x", priced), answer("stored", Answer{})}, ":2: the state has another answer to this question", Taken{}},
		{"an answer that differs in its body", []string{answer("stored", Answer{Credits: credits(2), Body: []byte("no")})}, ":1: the state has another answer to this question", Taken{}},
		{"a call that was answered", []string{call("stored", "i", noon.Add(-time.Hour))}, "", Taken{}},
		{"another open call", []string{answer("x", priced), call("open", "other", noon)}, ":2: the state has another open call of this question", Taken{}},
		{"an answer to an open call", []string{answer("open", priced)}, "", Taken{Answers: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, t.TempDir())
			must(t, s.Put(t.Context(), person("stored"), Answer{Outcome: Matched, Received: noon, Credits: credits(2)}))
			intent(t, s, person("open"), Send{Run: "night", At: noon})
			must(t, s.Fail(t.Context(), person("open"), Failure{Reason: "timeout", MayBeBilled: true}))
			before := exportOf(t, s)
			taken, err := importInto(t, s, c.lines...)
			if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), "answers.jsonl"+c.want) || strings.Contains(err.Error(), "network.example")) || taken != c.taken {
				t.Errorf("%+v, %v; want %+v, %q", taken, err, c.taken, c.want)
			}
			if _, line := errors.AsType[*LineError](err); line != (c.want != "") {
				t.Errorf("%v is or is not a LineError", err)
			}
			if after := exportOf(t, s); c.want != "" && !slices.Equal(after, before) {
				t.Errorf("it was refused, and the store has\n%s\nand had\n%s", after, before)
			}
		})
	}
	if _, err := OpenImport(t.Context(), filepath.Join(t.TempDir(), "none"), t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
