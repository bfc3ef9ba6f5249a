package answers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/internal/appendlog"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/format"
	"github.com/leadetl/leadetl/resolution"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 123_000_000, time.UTC)

var people = Scope{Service: "https://leads.example", Operation: resolution.Enrichment}

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), InFolder(dir), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// forget forgets questions, also those with an open call.
func forget(ctx context.Context, s *Store, questions ...Hash) (int, error) {
	done, err := s.Forget(ctx, Choice{Hashes: questions, EvenOpen: true})
	return done.Questions, err
}

// prune forgets answers received before a time, and bodies kept of calls sent before it.
func prune(ctx context.Context, s *Store, before time.Time) (int, error) {
	done, err := s.Forget(ctx, Choice{
		Answer: func(i *Item) bool { return i.Received.Before(before) }, Body: func(c *OpenCall) bool { return c.Sent.Before(before) },
	})
	return done.Questions, err
}

func credits(n int64) *int64 { return &n }

func person(name string) Question { return Question{people, "network.example/in/" + name} }

func all[T any](t *testing.T, seq iter.Seq2[T, error]) (found []T) {
	t.Helper()
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, v)
	}
	return found
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func intent(t *testing.T, s *Store, q Question, send Send) Call {
	t.Helper()
	c, err := s.Intent(t.Context(), q, send)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func look(t *testing.T, s *Store, q Question, f Freshness) Found {
	t.Helper()
	found, err := s.Lookup(t.Context(), q.Scope, []string{q.Key}, f, true, nil)
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	return found[0]
}

// What is put comes back as it was, also from the next process.
func TestAnswerComesBack(t *testing.T) {
	dir := t.TempDir()
	full := Answer{Run: "night", Outcome: Matched, Status: 200, Body: []byte(`{"lead":{"name":"Zoë"}}`), Resolution: "res_1", Request: "req_1",
		Credits: credits(2), Received: noon}
	for _, c := range []struct {
		name   string
		change func(*Answer)
	}{
		{"matched", func(a *Answer) {}},
		{"no match", func(a *Answer) { a.Outcome, a.Reason, a.Status, a.Credits = NoMatch, "not_found", 404, credits(0) }},
		{"refused", func(a *Answer) { a.Outcome, a.Reason, a.Status = Refused, "invalid", 422 }},
		{"price not said", func(a *Answer) { a.Credits = nil }},
		{"names not given", func(a *Answer) { a.Resolution, a.Request = "", "" }},
		{"no body", func(a *Answer) { a.Body = nil }},
		{"a letter", func(a *Answer) { a.Body = []byte("x") }},
		{"HTML", func(a *Answer) { a.Body = []byte("<html>") }},
		{"not UTF-8", func(a *Answer) { a.Body = []byte{0xff, 0, 1} }},
		{"NUL in it", func(a *Answer) { a.Body = []byte("a\x00b") }},
		{"a megabyte", func(a *Answer) { a.Body = bytes.Repeat([]byte("x"), 1<<20) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := full
			c.change(&want)
			s, err := Open(t.Context(), InFolder(dir), Options{})
			must(t, err)
			intent(t, s, person(c.name), Send{Run: "night", At: noon})
			must(t, s.Put(t.Context(), person(c.name), want), s.Close())
			s, err = Open(t.Context(), InFolder(dir), Options{})
			must(t, err)
			defer s.Close()
			got := look(t, s, person(c.name), Freshness{Now: noon})
			if len(want.Body) == 0 {
				got.Answer.Body, want.Body = nil, nil
			}
			if !got.Stored || got.Open != "" || !reflect.DeepEqual(got.Answer, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// A question is its service, operation and key; where one part ends and the
// next begins counts.
func TestQuestionsDiffer(t *testing.T) {
	const want = "1dab0001b930e70395ba3c077ab8338cb8af426ace39a854a1dd3d7e6560eb4e" // stored answers are found by it
	if got := (Question{Scope{"a.example", resolution.Enrichment}, "key"}).Hash().String(); got != want {
		t.Errorf("the hash is %s, want %s", got, want)
	}
	seen := map[Hash]string{}
	for _, q := range []Question{
		{Scope{"a", "b"}, "d"},
		{Scope{"a2", "b"}, "d"},
		{Scope{"a", "b2"}, "d"},
		{Scope{"a", "b"}, "d2"},
		{Scope{"ab", ""}, "d"},
		{Scope{"a", "bd"}, ""},
		{Scope{"a", ""}, "bd"},
	} {
		h := q.Hash()
		if other, ok := seen[h]; ok {
			t.Errorf("%v and %s are one", q, other)
		}
		seen[h] = fmt.Sprint(q)
		hash := q.Hasher()
		if another, again := hash([]byte("another key")), hash([]byte(q.Key)); again != h || another == h {
			t.Errorf("a hasher gives %v for %v, and %v for another key", again, h, another)
		}
		if back, err := ParseHash(h.String()); back != h || err != nil {
			t.Errorf("ParseHash(%s) = %v, %v", h, back, err)
		}
	}
	for _, bad := range []string{"", "ab", strings.Repeat("g", 64), strings.Repeat("a", 66)} {
		if _, err := ParseHash(bad); !errors.Is(err, resolution.ErrInvalid) || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("ParseHash(%q): %v", bad, err)
		}
	}
}

// By hash questions of any scope are found together, and say all but their
// bodies; an open call says whose it is.
func TestLookupHashes(t *testing.T) {
	s := open(t, t.TempDir())
	other := Question{Scope{"https://other.example", resolution.EmailToHEM}, "a@example.com"}
	const many = batchSize + 10
	a := Answer{Run: "night", Outcome: Matched, Body: []byte("{}"), Received: noon}
	must(t, s.Put(t.Context(), person("answered"), a), s.Put(t.Context(), other, a))
	intent(t, s, other, Send{Run: "night", At: noon})
	intent(t, s, other, Send{Run: "morning", At: noon.Add(time.Hour), Again: true})
	intent(t, s, person("sent"), Send{Run: "night", At: noon})
	hashes := make([]Hash, many) // all zero: no question's
	answered := Answer{Run: "night", Outcome: Matched, Received: noon}
	want := map[int]Found{
		0:        {Stored: true, Fresh: true, Answer: answered},
		7:        {Open: UnderWay, Run: "night", Sent: noon, FirstSent: noon},
		many - 1: {Stored: true, Fresh: true, Answer: answered, Open: UnderWay, Run: "morning", Sent: noon.Add(time.Hour), FirstSent: noon},
	}
	hashes[0], hashes[7], hashes[many-1] = person("answered").Hash(), person("sent").Hash(), other.Hash()
	before := Found{Open: Parked}
	found, err := s.LookupHashes(t.Context(), hashes, Freshness{Now: noon}, []Found{before})
	must(t, err)
	if len(found) != 1+many || !reflect.DeepEqual(found[0], before) {
		t.Fatalf("%d found after %+v", len(found), found[0])
	}
	for i, f := range found[1:] {
		if !reflect.DeepEqual(f, want[i]) {
			t.Errorf("hash %d: got %+v, want %+v", i, f, want[i])
		}
	}
}

// A look-up is of one moment: an answer that is being replaced is there, the
// one or the other, and its parts belong together.
func TestLookupWhileReplaced(t *testing.T) {
	s := open(t, t.TempDir())
	const n = 300
	var keys []string
	put := func(i, status int) error {
		return s.Put(t.Context(), person(fmt.Sprint(i)), Answer{Run: "night", Outcome: Matched, Status: status, Body: []byte(fmt.Sprint(i, status)), Received: noon})
	}
	for i := range n {
		keys = append(keys, person(fmt.Sprint(i)).Key)
		must(t, put(i, 0))
	}
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range 2 * n {
			if err := put(i%n, 1+i/n); err != nil {
				t.Error(err)
			}
		}
	})
	for last := 0; last < 2*n; {
		found, err := s.Lookup(t.Context(), people, keys, Freshness{}, true, nil)
		must(t, err)
		last = 0
		for i, f := range found {
			if !f.Stored || string(f.Answer.Body) != fmt.Sprint(i, f.Answer.Status) {
				t.Fatalf("%d: %+v", i, f)
			}
			last += f.Answer.Status
		}
	}
	writer.Wait()
}

func TestFreshness(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		outcome        Outcome
		age            time.Duration
		match, noMatch time.Duration
		want           bool
	}{
		{Matched, 1000 * day, 0, day, true},
		{Matched, 90 * day, 90 * day, 0, true},
		{Matched, 90*day + 1, 90 * day, 0, false},
		{NoMatch, 1000 * day, day, 0, true},
		{NoMatch, 7 * day, day, 7 * day, true},
		{NoMatch, 7*day + 1, 90 * day, 7 * day, false},
		{Refused, 0, 0, 0, false},
	} {
		if got := (Freshness{noon, c.match, c.noMatch}).Of(c.outcome, noon.Add(-c.age)); got != c.want {
			t.Errorf("%s of age %s with %s, %s: %t", c.outcome, c.age, c.match, c.noMatch, got)
		}
	}
}

// Each line is what becomes of one question, from nothing; the letters are
// steps, and then how it stands.
func TestCalls(t *testing.T) {
	send := func(again bool) func(*Store, Question) error {
		return func(s *Store, q Question) error {
			_, err := s.Intent(context.Background(), q, Send{Run: "night", At: noon, Again: again})
			return err
		}
	}
	fail := func(billed bool) func(*Store, Question) error {
		return func(s *Store, q Question) error {
			return s.Fail(context.Background(), q, Failure{Reason: "timeout", MayBeBilled: billed})
		}
	}
	steps := map[string]func(*Store, Question) error{
		"intent": send(false), "again": send(true), "billed?": fail(true), "free": fail(false),
		"park": func(s *Store, q Question) error {
			return s.Park(context.Background(), q, Parking{Resolution: "res_" + q.Key, Deadline: noon})
		},
		"put": func(s *Store, q Question) error {
			return s.Put(context.Background(), q, Answer{Run: "night", Outcome: Matched, Received: noon})
		},
		"settle": func(s *Store, q Question) error {
			return s.Place(context.Background(), q, Answer{Run: "night", Outcome: Matched, Received: noon}, nil)
		},
	}
	for _, c := range []struct {
		steps  string
		err    error // of the last step
		stored bool
		open   State
		next   State // after a restart
	}{
		{"intent", nil, false, UnderWay, Unknown},
		{"intent put", nil, true, "", ""},
		{"put", nil, true, "", ""},
		{"put intent", nil, true, UnderWay, Unknown},
		{"intent intent", ErrOpen, false, UnderWay, Unknown},
		{"intent free", nil, false, "", ""},
		{"intent free intent", nil, false, UnderWay, Unknown},
		{"intent billed?", nil, false, Unknown, Unknown},
		{"intent billed? intent", ErrOpen, false, Unknown, Unknown},
		{"intent billed? again", nil, false, UnderWay, Unknown},
		{"intent billed? again free", nil, false, Unknown, Unknown},
		{"intent billed? again put", nil, true, "", ""},
		{"intent billed? settle again", ErrNoCall, true, "", ""},
		{"again", ErrNoCall, false, "", ""},
		{"intent billed? free", nil, false, Unknown, Unknown},
		{"intent park", nil, false, Parked, Parked},
		{"intent park intent", ErrOpen, false, Parked, Parked},
		{"intent park put", nil, true, "", ""},
		{"intent park billed?", nil, false, Unknown, Unknown},
		{"intent park again free", nil, false, Unknown, Unknown},
		{"intent park free", nil, false, "", ""},
		{"intent billed? again park free", nil, false, Unknown, Unknown},
		{"intent settle", nil, true, "", ""},
		{"intent park settle", nil, true, "", ""},
		{"intent settle settle", ErrNoCall, true, "", ""},
		{"settle", ErrNoCall, false, "", ""},
		{"intent put park", ErrNoCall, true, "", ""},
		{"intent put free", ErrNoCall, true, "", ""},
		{"billed?", ErrNoCall, false, "", ""},
		{"free", ErrNoCall, false, "", ""},
	} {
		t.Run(c.steps, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(t.Context(), InFolder(dir), Options{})
			must(t, err)
			q := person("one")
			words := strings.Fields(c.steps)
			for i, word := range words {
				var want error
				if i == len(words)-1 {
					want = c.err
				}
				if err := steps[word](s, q); !errors.Is(err, want) || want == nil && err != nil {
					t.Fatalf("%s: %v, want %v", word, err, want)
				}
			}
			check := func(when string, open State) {
				f := look(t, s, q, Freshness{Now: noon})
				if f.Stored != c.stored || f.Open != open {
					t.Errorf("%s: stored %t, open %q; want %t, %q", when, f.Stored, f.Open, c.stored, open)
				}
				unknown, parked := all(t, s.Unknown(t.Context())), all(t, s.Parked(t.Context()))
				if (len(unknown) == 1) != (open == Unknown) || (len(parked) == 1) != (open == Parked) {
					t.Errorf("%s: unknown %v, parked %v", when, unknown, parked)
				}
			}
			check("at once", c.open)
			must(t, s.Close())
			s = open(t, dir)
			check("after a restart", c.next)
		})
	}
}

// A call keeps its idempotency key and its address for as long as it is open, in whichever
// process; the next call of the question has others.
func TestIdempotencyKey(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), InFolder(dir), Options{})
	must(t, err)
	q := person("one")
	const typed = "https://x.example/v?b=2&a=1"
	first := intent(t, s, q, Send{Run: "night", At: noon, Address: typed})
	if id, err := uuid.Parse(first.IdempotencyKey); err != nil || id.Version() != 7 || first.Attempt != 1 {
		t.Errorf("%+v: %v", first, err)
	}
	must(t, s.Fail(t.Context(), q, Failure{Reason: "reset", Status: 0, Request: "req_1", MayBeBilled: true}), s.Close())
	s, err = Open(t.Context(), InFolder(dir), Options{})
	must(t, err)
	unknown := all(t, s.Unknown(t.Context()))
	want := []OpenCall{{Hash: q.Hash(), Question: q, Address: typed, Run: "night", IdempotencyKey: first.IdempotencyKey, Attempts: 1, Sent: noon, State: Unknown, MaybeBilled: true,
		Reason: "reset", Request: "req_1"}}
	if !reflect.DeepEqual(unknown, want) {
		t.Errorf("got %+v, want %+v", unknown, want)
	}
	must(t, s.Close()) // the call is in the database by now
	s = open(t, dir)
	second := intent(t, s, q, Send{Run: "morning", At: noon, Again: true, Address: "https://x.example/v?a=1&b=2"})
	if second != (Call{IdempotencyKey: first.IdempotencyKey, FirstSent: noon, Address: typed, Attempt: 2}) {
		t.Errorf("sent again: %+v, want the key of %+v", second, first)
	}
	renewed := intent(t, s, q, Send{Run: "morning", At: noon, Again: true, NewKey: true})
	if again := intent(t, s, q, Send{Run: "morning", At: noon, Again: true}); !renewed.Rekeyed || !again.Rekeyed || again.IdempotencyKey != renewed.IdempotencyKey {
		t.Errorf("under a new key: %+v, and then %+v", renewed, again)
	}
	must(t, s.Put(t.Context(), q, Answer{Run: "morning", Outcome: NoMatch, Received: noon}))
	if third := intent(t, s, q, Send{Run: "morning", At: noon}); third.IdempotencyKey == first.IdempotencyKey || third.Address != "" || third.Attempt != 1 {
		t.Errorf("after the answer: %+v", third)
	}
}

// An answer that comes later finds its question by the service's name for it,
// or by its hash, and after its deadline too.
func TestParked(t *testing.T) {
	s := open(t, t.TempDir())
	q := person("one")
	c := intent(t, s, q, Send{Run: "night", At: noon})
	must(t, s.Park(t.Context(), q, Parking{Resolution: "res_1", Request: "req_1", Deadline: noon.Add(time.Hour)}))
	want := OpenCall{Hash: q.Hash(), Question: q, Run: "night", IdempotencyKey: c.IdempotencyKey, Attempts: 1, Sent: noon, State: Parked,
		Resolution: "res_1", Request: "req_1", Deadline: noon.Add(time.Hour)}
	if parked := all(t, s.Parked(t.Context())); !reflect.DeepEqual(parked, []OpenCall{want}) {
		t.Errorf("got %+v, want %+v", parked, want)
	}
	if f := look(t, s, q, Freshness{Now: noon}); f.Open != Parked || f.Run != "night" || !f.Sent.Equal(noon) || !f.Deadline.Equal(noon.Add(time.Hour)) {
		t.Errorf("looked up: %+v, want it parked by night at noon, for an hour", f)
	}
	find := func(name string, f func() (OpenCall, error), state State, want error) {
		t.Helper()
		c, err := f()
		if !errors.Is(err, want) || want == nil && err != nil || c.State != state {
			t.Errorf("%s: %q, %v; want %q, %v", name, c.State, err, state, want)
		}
	}
	by := func(service, id string) func() (OpenCall, error) {
		return func() (OpenCall, error) { return s.FindByResolution(t.Context(), service, id) }
	}
	find("by its name", by(people.Service, "res_1"), Parked, nil)
	find("by its hash", func() (OpenCall, error) { return s.Find(t.Context(), q.Hash()) }, Parked, nil)
	find("another name", by(people.Service, "res_2"), "", ErrNoCall)
	find("no name", by(people.Service, ""), "", ErrNoCall)
	find("another service's", by("https://other.example", "res_1"), "", ErrNoCall)
	if err := s.Fail(t.Context(), q, Failure{Resolution: "res_2"}); !errors.Is(err, ErrNoCall) {
		t.Errorf("the failure of another request: %v", err)
	}
	find("after the failure of another request", by(people.Service, "res_1"), Parked, nil)
	must(t, s.Fail(t.Context(), q, Failure{Reason: "deadline", MayBeBilled: true}))
	find("too late", by(people.Service, "res_1"), Unknown, nil)
	must(t, s.Put(t.Context(), q, Answer{Run: "night", Outcome: Matched, Received: noon}))
	find("answered", by(people.Service, "res_1"), "", ErrNoCall)
}

// What a run has spent is exact under concurrency, is not lowered by
// forgetting, and survives the process.
func TestSpent(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), InFolder(dir), Options{})
	must(t, err)
	var workers sync.WaitGroup
	for w := range 16 {
		workers.Go(func() {
			for i := range 20 {
				q := person(fmt.Sprintf("%d-%d", w, i))
				_, err := s.Intent(t.Context(), q, Send{Run: "night", At: noon})
				a := Answer{Run: "night", Outcome: Matched, Credits: credits(int64(i)), Received: noon}
				switch i {
				case 0:
					a.Credits = nil
				case 1:
					err = errors.Join(err, s.Fail(t.Context(), q, Failure{MayBeBilled: true}))
				case 2:
					err = errors.Join(err, s.Park(t.Context(), q, Parking{Resolution: q.Key}))
				case 3:
					err = errors.Join(err, s.Fail(t.Context(), q, Failure{}))
				}
				if i == 0 || i > 4 {
					err = errors.Join(err, s.Put(t.Context(), q, a))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	want := Spending{Answers: 16 * 16, Unpriced: 16, Credits: 16 * (190 - 1 - 2 - 3 - 4)}
	check := func(run string, want Spending) {
		t.Helper()
		if got, _, err := s.SumSpent(t.Context(), run); err != nil || got != want {
			t.Errorf("%s: got %+v, %v; want %+v", run, got, err, want)
		}
	}
	checkOpen := func(want map[State]int) {
		t.Helper()
		if got := s.openOf("night"); !maps.Equal(got, want) {
			t.Errorf("open calls %v, want %v", got, want)
		}
	}
	check("night", want)
	checkOpen(map[State]int{Unknown: 16, Parked: 16, UnderWay: 16})
	check("morning", Spending{})
	if n, err := forget(t.Context(), s, person("0-7").Hash(), person("never").Hash()); n != 1 || err != nil {
		t.Errorf("forgot %d, %v", n, err)
	}
	check("night", want)
	must(t, s.Close())
	s = open(t, dir)
	check("night", want)
	checkOpen(map[State]int{Unknown: 32, Parked: 16})
}

// openOf counts the open calls whose last attempt a run made.
func (s *Store) openOf(run string) map[State]int {
	open := map[State]int{}
	for _, state := range []State{Unknown, Parked, UnderWay} {
		for _, c := range s.memtable.callsOf(inState(state)) {
			if c.Run == run {
				open[state]++
			}
		}
	}
	return open
}

// Of a question there is one answer: the last.
func TestReplaced(t *testing.T) {
	s := open(t, t.TempDir())
	for i, o := range []Outcome{Matched, NoMatch, Refused, Matched} {
		must(t, s.Put(t.Context(), person("one"), Answer{Run: "night", Outcome: o, Status: i, Received: noon}))
		if found := look(t, s, person("one"), Freshness{Now: noon}); found.Answer.Outcome != o || found.Fresh != (o != Refused) {
			t.Errorf("%+v, want %s", found, o)
		}
	}
	// Also within one group.
	held, free := make(chan struct{}), make(chan struct{})
	var callers sync.WaitGroup
	callers.Go(func() {
		_ = s.queue.Do(t.Context(), func(*changeSet) error { close(held); <-free; return nil })
	})
	<-held
	for i := range 10 {
		callers.Go(func() {
			if err := s.Put(t.Context(), person("one"), Answer{Run: "night", Outcome: Matched, Status: 100 + i, Received: noon}); err != nil {
				t.Error(err)
			}
		})
	}
	for s.queue.Waiting() < 10 {
		runtime.Gosched()
	}
	close(free)
	callers.Wait()
	if items := all(t, s.List(t.Context(), Filter{})); len(items) != 1 || items[0].Status < 100 {
		t.Errorf("%+v", items)
	}
}

func TestListAndExport(t *testing.T) {
	s := open(t, t.TempDir())
	other := Question{Scope{"https://other.example", resolution.EmailToHEM}, "a@example.com"}
	must(t,
		s.Put(t.Context(), person("one"), Answer{Run: "night", Outcome: Matched, Status: 200, Credits: credits(2), Resolution: "res_1", Request: "req_1",
			Body: []byte("{ \"lead\": \"<Ann>\" }\n"), Received: noon}),
		s.Put(t.Context(), other, Answer{Run: "night", Outcome: Refused, Reason: "html", Status: 422, Body: []byte("<p>no</p>"), Received: noon}),
		s.Put(t.Context(), person("two"), Answer{Run: "night", Outcome: NoMatch, Reason: "not_found", Status: 404, Credits: credits(0), Body: []byte{0xff}, Received: noon}),
	)
	var out strings.Builder
	must(t, Export(&out, linesOf(s.List(t.Context(), Filter{Bodies: true}))))
	want := `{"key_hash":"` + person("one").Hash().String() + `","key":"network.example/in/one","service":"https://leads.example","operation":"enrichment","received_at":"2026-11-20T12:00:00.123Z","outcome":"matched","status":200,"credits":2,"run":"night","resolution_id":"res_1","request_id":"req_1","body":{"lead":"<Ann>"}}
{"key_hash":"` + other.Hash().String() + `","key":"a@example.com","service":"https://other.example","operation":"email_to_hem","received_at":"2026-11-20T12:00:00.123Z","outcome":"refused","reason":"html","status":422,"run":"night","body_text":"<p>no</p>"}
{"key_hash":"` + person("two").Hash().String() + `","key":"network.example/in/two","service":"https://leads.example","operation":"enrichment","received_at":"2026-11-20T12:00:00.123Z","outcome":"no_match","reason":"not_found","status":404,"credits":0,"run":"night","body_base64":"/w=="}
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
	for _, c := range []struct {
		filter Filter
		want   int
	}{
		{Filter{}, 3},
		{Filter{Service: people.Service}, 2},
		{Filter{Operation: resolution.EmailToHEM}, 1},
		{Filter{Service: people.Service, Operation: resolution.EmailToHEM}, 0},
	} {
		if items := all(t, s.List(t.Context(), c.filter)); len(items) != c.want {
			t.Errorf("%+v lists %d, want %d", c.filter, len(items), c.want)
		}
	}
	st, err := contents(t, s).Stat(t.Context())
	wantStat := Stat{Tallies: []Tally{
		{people, Matched, Spending{1, 0, 2}, noon, noon}, {people, NoMatch, Spending{1, 0, 0}, noon, noon}, {other.Scope, Refused, Spending{1, 1, 0}, noon, noon}}}
	if err != nil || !reflect.DeepEqual(st, wantStat) {
		t.Errorf("got %+v, %v; want %+v", st, err, wantStat)
	}
	if scopes, err := s.Scopes(t.Context()); err != nil || !reflect.DeepEqual(scopes, []Scope{people, other.Scope}) {
		t.Errorf("%v, %v", scopes, err)
	}
}

// More than a page of answers, a batch of keys, and a group of deletions.
func TestMany(t *testing.T) {
	const n = 5000
	s := open(t, t.TempDir())
	var keys []string
	var callers sync.WaitGroup
	for w := range 50 {
		callers.Go(func() {
			for i := w; i < n; i += 50 {
				err := s.Put(context.Background(), person(fmt.Sprint(i)), Answer{Run: "night", Outcome: Matched, Status: i, Received: noon.Add(time.Duration(i) * time.Second)})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	for i := range 2 * n {
		keys = append(keys, person(fmt.Sprint(i)).Key)
	}
	check := func(from, to int) {
		t.Helper()
		found, err := s.Lookup(t.Context(), people, keys, Freshness{Now: noon}, false, nil)
		if err != nil || len(found) != len(keys) {
			t.Fatal(len(found), err)
		}
		for i, f := range found {
			if want := i >= from && i < to; f.Stored != want || want && f.Answer.Status != i {
				t.Fatalf("key %d: %+v", i, f)
			}
		}
		if items := all(t, s.List(t.Context(), Filter{})); len(items) != to-from {
			t.Errorf("%d listed, want %d", len(items), to-from)
		}
	}
	check(0, n)
	if pruned, err := prune(t.Context(), s, noon.Add(1000*time.Second)); pruned != 1000 || err != nil {
		t.Errorf("pruned %d, %v", pruned, err)
	}
	check(1000, n)
	var gone []Hash
	for i := 4000; i < n; i++ {
		gone = append(gone, person(fmt.Sprint(i)).Hash())
	}
	if forgotten, err := forget(t.Context(), s, gone...); forgotten != 1000 || err != nil {
		t.Errorf("forgot %d, %v", forgotten, err)
	}
	check(1000, 4000)
}

// Of what is forgotten no byte is left, in none of the files.
func TestForgotten(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	const secret = "only-this-person"
	for _, size := range []int{10, 3000, 100_000} {
		q := person(fmt.Sprint(secret, size))
		body := bytes.Repeat([]byte(secret+" "), size/len(secret)+1)
		must(t, s.Put(t.Context(), q, Answer{Run: "night", Outcome: Matched, Body: body, Received: noon}))
		intent(t, s, q, Send{Run: "night", At: noon})
		must(t, s.Put(t.Context(), q, Answer{Run: "night", Outcome: Matched, Body: body, Received: noon}))
		intent(t, s, q, Send{Run: "night", At: noon})
		must(t, s.Put(t.Context(), person(fmt.Sprint("other", size)), Answer{Run: "night", Outcome: Matched, Body: []byte("other"), Received: noon}))
		if n, err := forget(t.Context(), s, q.Hash()); n != 1 || err != nil {
			t.Errorf("forgot %d, %v", n, err)
		}
		if f := look(t, s, q, Freshness{}); f.Stored || f.Open != "" {
			t.Errorf("still there: %+v", f)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		must(t, err)
		for _, name := range files {
			text, err := os.ReadFile(name)
			must(t, err)
			if n := bytes.Count(text, []byte(secret)); n > 0 {
				t.Errorf("%s holds it %d times", filepath.Base(name), n)
			}
		}
	}
	if items := all(t, s.List(t.Context(), Filter{})); len(items) != 3 {
		t.Errorf("%d others, want 3", len(items))
	}
}

// TestKeptBody: the body of a 2xx that is no answer is there as long as its call is
// open, also after a kill, in a copy, and beside the run.
func TestKeptBody(t *testing.T) {
	const body = `{"lead":"only-this-person"}`
	noise := make([]byte, maxKeptBody+1)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	ctx, q := t.Context(), person("ann")
	paid := func(body string) Failure {
		return Failure{Reason: "protocol", Status: 200, MayBeBilled: true, Body: []byte(body)}
	}
	again := Send{Run: "night", At: noon, Again: true}
	put := func(s *Store) error {
		return s.Put(ctx, q, Answer{Run: "night", Outcome: NoMatch, Received: noon})
	}
	for _, f := range []struct {
		name string
		then func(*Store) error // after a call that failed with body
		want string
		none bool // no call is open
	}{
		{"kept", func(s *Store) error { return nil }, body, false},
		{"sent again", func(s *Store) error { intent(t, s, q, again); return nil }, body, false},
		{"failed again, with nothing", func(s *Store) error {
			intent(t, s, q, again)
			return s.Fail(ctx, q, Failure{Reason: "unavailable", Status: 500, MayBeBilled: true})
		}, body, false},
		{"failed again, with another", func(s *Store) error { intent(t, s, q, again); return s.Fail(ctx, q, paid("other")) }, "other", false},
		{"failed again, with too much", func(s *Store) error { intent(t, s, q, again); return s.Fail(ctx, q, paid(string(noise))) }, body, false},
		{"followed by another", func(s *Store) error { return s.Keep(ctx, q, []byte("other")) }, "other", false},
		{"followed by a letter", func(s *Store) error { return s.Keep(ctx, q, []byte("x")) }, "x", false},
		{"followed by nothing", func(s *Store) error { return s.Keep(ctx, q, nil) }, body, false},
		{"answered", put, "", true},
		{"answered and asked again", func(s *Store) error { must(t, put(s)); intent(t, s, q, Send{Run: "night", At: noon}); return nil }, "", false},
		{"answered, and read again as none", func(s *Store) error {
			must(t, put(s))
			return s.Reopen(ctx, q, Answer{Body: []byte("other"), Received: noon})
		}, "other", false},
		{"forgotten", func(s *Store) error { _, err := forget(ctx, s, q.Hash()); return err }, "", true},
		{"older than is kept", func(s *Store) error { _, err := prune(ctx, s, noon.Add(time.Hour)); return err }, "", false},
		{"not so old", func(s *Store) error { _, err := prune(ctx, s, noon); return err }, body, false},
	} {
		for name, between := range map[string]func(*Store) error{"in the log": func(*Store) error { return nil }, "in files": (*Store).flush} {
			t.Run(f.name+" "+name, func(t *testing.T) {
				dir := t.TempDir()
				s := open(t, dir)
				intent(t, s, q, Send{Run: "night", At: noon})
				must(t, s.Fail(ctx, q, paid(body)), between(s), f.then(s))
				beside, err := OpenContents(ctx, InFolder(dir))
				must(t, err)
				defer beside.Close()
				there := open(t, t.TempDir())
				calls, err := s.OpenCalls(ctx, q.Scope)
				must(t, err)
				_, err = there.Take(ctx, q.Scope, s.Sorted(ctx, q.Scope), calls)
				must(t, err)
				within, err := s.Contents()
				must(t, err)
				copied, err := there.Contents()
				must(t, err)
				for name, c := range map[string]*Contents{"beside the run": beside, "in the run": within, "in a copy": copied} {
					open, err := c.Calls(ctx)
					must(t, err)
					if f.none && len(open) == 0 {
						continue
					}
					if name == "in a copy" && len(open) == 0 { // a call under way is not copied
						continue
					}
					if len(open) != 1 || f.none {
						t.Fatalf("%s: %d open calls", name, len(open))
					}
					if got, err := open[0].Body.Plain(); string(got) != f.want || err != nil {
						t.Errorf("%s: %q, %v; want %q", name, got, err, f.want)
					}
				}
				if f.want == "" {
					must(t, s.flush())
					left, err := contents(t, s).Calls(ctx)
					must(t, err)
					for _, c := range left {
						if len(c.Body) > 0 {
							t.Error("a body is left")
						}
					}
				}
			})
		}
	}
}

func TestOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if Exist(t.Context(), InFolder(dir)) {
		t.Error("there are answers before any")
	}
	s, err := Open(t.Context(), InFolder(dir), Options{})
	must(t, err)
	if _, err := Open(t.Context(), InFolder(dir), Options{}); !errors.Is(err, filelock.ErrLocked) || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("while it is open: %v, want ErrLocked", err)
	}
	must(t, s.Put(t.Context(), person("one"), Answer{Run: "night", Outcome: Matched, Received: noon}), s.flush())
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v; want 0600", e.Name(), info.Mode(), err)
		}
	}
	must(t, s.Close())
	later := s.manifest.clone()
	later.Format = 99
	must(t, later.write(t.Context(), InFolder(dir)))
	for name, open := range map[string]func() error{
		"open": func() error { _, err := Open(t.Context(), InFolder(dir), Options{}); return err },
		"look": func() error { _, err := OpenContents(t.Context(), InFolder(dir)); return err },
	} {
		err := open()
		if _, other := errors.AsType[*format.Error](err); !other || !strings.Contains(err.Error(), "has format 99") {
			t.Errorf("%s what another program wrote: %v, want a format.Error", name, err)
		}
	}
	if err := s.Put(t.Context(), person("one"), Answer{Outcome: Matched}); !errors.Is(err, resolution.ErrUnavailable) {
		t.Errorf("closed: %v, want ErrUnavailable", err)
	}
	if _, err := s.Lookup(t.Context(), people, []string{"a"}, Freshness{}, false, nil); !errors.Is(err, resolution.ErrUnavailable) {
		t.Errorf("closed: %v, want ErrUnavailable", err)
	}
}

// small is a folder whose files have so much space each, those of answers and calls none if it is full.
type small struct {
	disk.Folder
	space atomic.Int64 // read by the move of a log, which may still run
	full  atomic.Bool
}

// In is the folder itself: it has none below it.
func (s *small) In(string) disk.Folder { return s }

func (s *small) Create(name string, perm fs.FileMode) (disk.File, error) {
	if s.full.Load() && strings.Contains(name, dataSuffix) {
		return nil, syscall.ENOSPC
	}
	f, err := s.Folder.Create(name, perm)
	return &inSmall{f, s}, err
}

type inSmall struct {
	disk.File
	in *small
}

func (o *inSmall) WriteAt(p []byte, at int64) (int, error) {
	fit := min(int64(len(p)), max(o.in.space.Load()-at, 0))
	n, err := o.File.WriteAt(p[:fit], at)
	if n < len(p) {
		err = errors.Join(err, syscall.ENOSPC)
	}
	return n, err
}

// On a full disk each change says so and leaves nothing; once there is space
// the store continues, and what it had is there. So it is where files
// have no space, and where the log has none.
func TestFull(t *testing.T) {
	dir := t.TempDir()
	small := &small{Folder: disk.Dir(dir)}
	small.space.Store(1_100_000)
	s, err := Open(t.Context(), On(small), Options{LogBytes: 100})
	must(t, err)
	must(t, s.Put(t.Context(), person("before"), Answer{Run: "night", Outcome: Matched, Received: noon}))
	intent(t, s, person("waiting"), Send{Run: "night", At: noon})
	big := Answer{Run: "night", Outcome: Matched, Body: make([]byte, 1_400_000), Received: noon}
	refused := func() {
		t.Helper()
		for range 3 {
			err := s.Put(t.Context(), person("waiting"), big)
			if !errors.Is(err, ErrFull) || !errors.Is(err, resolution.ErrUnavailable) {
				t.Errorf("got %v, want ErrFull", err)
			}
		}
		if f := look(t, s, person("waiting"), Freshness{}); f.Stored || f.Open != UnderWay {
			t.Errorf("meanwhile %t, %s", f.Stored, f.Open)
		}
		if f := look(t, s, person("before"), Freshness{}); !f.Stored {
			t.Error("what was there is gone")
		}
	}
	refused()
	small.space.Store(10_000_000)
	must(t, s.Put(t.Context(), person("large"), big))
	must(t, s.flush())
	small.full.Store(true)
	for i := range 2 {
		must(t, s.Put(t.Context(), person(fmt.Sprint("log ", i)), big))
	}
	refused() // there is a log that cannot be brought in, and one that is full
	if _, err := s.Contents(); !errors.Is(err, ErrFull) {
		t.Errorf("got %v, want ErrFull", err)
	}
	if err := s.Close(); !errors.Is(err, ErrFull) {
		t.Errorf("closed: %v, want ErrFull", err)
	}
	if s, err = Open(t.Context(), InFolder(dir), Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	must(t, s.Put(t.Context(), person("waiting"), big))
	if p, _, err := s.SumSpent(t.Context(), "night"); p != (Spending{Answers: 5, Unpriced: 5}) || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
	if logs, err := logsIn(disk.Dir(dir)); len(logs) != 1 || err != nil {
		t.Errorf("logs %v, %v, want the one that is open", logs, err)
	}
}

// Errors are printed and logged: they name no key and no body.
func TestErrorsAreDiscreet(t *testing.T) {
	s, err := Open(t.Context(), InFolder(t.TempDir()), Options{})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() }) // its log is closed
	q := person("canary")
	_, first := s.Intent(t.Context(), q, Send{Run: "night", At: noon})
	_, second := s.Intent(t.Context(), q, Send{Run: "night", At: noon})
	must(t, first, s.log.(*fileLog).now.Close())
	put := s.Put(t.Context(), q, Answer{Run: "night", Outcome: Matched, Body: []byte("canary"), Received: noon})
	for _, err := range []error{second, put, s.Put(t.Context(), q, Answer{Outcome: "odd"}), s.Fail(t.Context(), person("canary2"), Failure{})} {
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v", err)
		}
	}
}

// TestFirstSent: the age of an idempotency key counts from its first intent, also
// after a restart and in another store.
func TestFirstSent(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(t.Context(), InFolder(dir), Options{})
	must(t, err)
	first, later := noon, noon.Add(3*time.Hour)
	q := person("a")
	fails := func(s *Store, send Send) Call {
		t.Helper()
		send.Run = "night"
		c := intent(t, s, q, send)
		must(t, s.Fail(t.Context(), q, Failure{MayBeBilled: true}))
		return c
	}
	firstIs := func(s *Store, want time.Time) {
		t.Helper()
		if f := look(t, s, q, Freshness{}); !f.FirstSent.Equal(want) {
			t.Errorf("first sent at %s, want %s", f.FirstSent, want)
		}
	}
	if c := fails(s, Send{At: first}); !c.FirstSent.Equal(first) {
		t.Errorf("the first intent says %s", c.FirstSent)
	}
	if c := fails(s, Send{At: later, Again: true}); !c.FirstSent.Equal(first) {
		t.Errorf("the second intent says %s", c.FirstSent)
	}
	firstIs(s, first)
	must(t, s.Close())
	s = open(t, dir)
	firstIs(s, first)
	calls, err := s.OpenCalls(t.Context(), q.Scope)
	copied := open(t, t.TempDir())
	_, taken := copied.Take(t.Context(), q.Scope, func(func(Item, error) bool) {}, calls)
	must(t, err, taken)
	firstIs(copied, first)
	if f := look(t, copied, q, Freshness{}); !f.Deadline.IsZero() {
		t.Errorf("nothing is said of the key, and it is forgotten at %s", f.Deadline)
	}
	fails(s, Send{At: later, Again: true, NewKey: true})
	firstIs(s, later)
	for what, c := range map[string]OpenCall{
		"a key of another form": {IdempotencyKey: "leadetl-29db0c6782dbd5000559ef4d9e953e30", Sent: noon},
		"a random UUID":         {IdempotencyKey: "8e03978e-40d5-43dd-bc93-6894a57f9324", Sent: noon},
		"no key":                {Sent: noon},
	} {
		if at := c.FirstSent(); !at.IsZero() {
			t.Errorf("%s has the time %s", what, at)
		}
	}
}

// TestKeyWindow: what a service says about its memory for keys is noted with every open
// call, until another key or a promised answer.
func TestKeyWindow(t *testing.T) {
	s := open(t, t.TempDir())
	other := Question{Scope{"https://other.example", resolution.Enrichment}, "a"}
	forgotten := noon.Add(10 * time.Minute)
	for _, q := range []Question{person("sent"), person("unknown"), person("parked"), other} {
		intent(t, s, q, Send{Run: "night", At: noon})
	}
	must(t, s.Fail(t.Context(), person("unknown"), Failure{MayBeBilled: true}), s.Park(t.Context(), person("parked"), Parking{Resolution: "res_1", Deadline: noon}),
		s.SetKeyWindow(t.Context(), people, 10*time.Minute))
	requireDeadlines := func(want map[Question]time.Time) {
		t.Helper()
		for q, at := range want {
			if f := look(t, s, q, Freshness{}); !f.Deadline.Equal(at) {
				t.Errorf("%s: %s, want %s", q.Key, f.Deadline, at)
			}
		}
	}
	requireDeadlines(map[Question]time.Time{person("sent"): forgotten, person("unknown"): forgotten, person("parked"): noon, other: {}})
	must(t, s.Fail(t.Context(), person("sent"), Failure{MayBeBilled: true}), s.Fail(t.Context(), person("parked"), Failure{MayBeBilled: true}))
	later := Send{Run: "night", At: noon.Add(time.Hour), Again: true}
	again := intent(t, s, person("sent"), later)
	later.KeyWindow = time.Hour
	told := intent(t, s, other, later)
	later.KeyWindow, later.NewKey = 0, true
	intent(t, s, person("unknown"), later)
	requireDeadlines(map[Question]time.Time{person("sent"): forgotten, person("unknown"): {}, person("parked"): {}, other: noon.Add(time.Hour)})
	if !again.Deadline.Equal(forgotten) || !told.Deadline.Equal(noon.Add(time.Hour)) {
		t.Errorf("intents: %s and %s", again.Deadline, told.Deadline)
	}
}

// TestSumSpentWhileAnswersCome: each call of a run is open or paid, and not neither, however
// the answers come while that is read.
func TestSumSpentWhileAnswersCome(t *testing.T) {
	const calls = 300
	s := open(t, t.TempDir())
	for i := range calls {
		q := person(fmt.Sprint(i))
		intent(t, s, q, Send{Run: "night", At: noon})
		must(t, s.Park(t.Context(), q, Parking{Resolution: fmt.Sprint(i), Deadline: noon}))
	}
	var deliveries sync.WaitGroup
	deliveries.Go(func() {
		for i := range calls {
			if err := s.Place(t.Context(), person(fmt.Sprint(i)), Answer{Run: "night", Outcome: Matched, Credits: credits(1), Received: noon}, nil); err != nil {
				t.Error(err)
			}
		}
	})
	for {
		paid, open, err := s.SumSpent(t.Context(), "night")
		if err != nil || int(paid.Answers)+len(open) != calls {
			t.Fatalf("%d answers and %d open calls of %d, %v", paid.Answers, len(open), calls, err)
		}
		if len(open) == 0 {
			break
		}
	}
	deliveries.Wait()
}

// What cannot be read of a file is an error of each operation that needs it, never nothing.
func TestUnreadablePage(t *testing.T) {
	drain := func(items iter.Seq2[Item, error]) (err error) {
		for _, failed := range items {
			err = errors.Join(err, failed)
		}
		return err
	}
	one := person("one") // the first in the file
	for i := range 300 {
		if q := person(fmt.Sprint(i)); q.Hash().Compare(one.Hash()) < 0 {
			one = q
		}
	}
	newer := Item{one.Hash(), one, Answer{Run: "night", Outcome: Matched, Received: noon.Add(time.Hour)}}
	for name, do := range map[string]func(context.Context, *Store) error{
		"list":   func(ctx context.Context, s *Store) error { return drain(s.List(ctx, Filter{})) },
		"prune":  func(ctx context.Context, s *Store) error { _, err := prune(ctx, s, noon.Add(time.Hour)); return err },
		"forget": func(ctx context.Context, s *Store) error { _, err := forget(ctx, s, one.Hash()); return err },
		"sorted": func(ctx context.Context, s *Store) error { return drain(s.Sorted(ctx, people)) },
		"take": func(ctx context.Context, s *Store) error {
			_, err := s.Take(ctx, people, func(yield func(Item, error) bool) { yield(newer, nil) }, nil)
			return err
		},
		"take a call": func(ctx context.Context, s *Store) error {
			_, err := s.Take(ctx, people, func(func(Item, error) bool) {}, []OpenCall{{Hash: one.Hash(), Question: one, Run: "later", State: Unknown}})
			return err
		},
		"look up": func(ctx context.Context, s *Store) error {
			_, err := s.Lookup(ctx, people, []string{one.Key}, Freshness{}, true, nil)
			return err
		},
		"count": func(ctx context.Context, s *Store) error { _, err := contents(t, s).Stat(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(t.Context(), InFolder(dir), Options{})
			must(t, err)
			g := newGeneration(0)
			for i := range 300 {
				q := person(fmt.Sprint(i))
				g.addAnswer(&Item{q.Hash(), q, Answer{Run: "night", Outcome: Matched, Received: noon, Body: make([]byte, 1000)}})
			}
			g.end = s.manifest.Log.position()
			must(t, s.seal(t.Context(), g, true), s.Close())
			files, err := filepath.Glob(filepath.Join(dir, "answers-*"+dataSuffix))
			must(t, err)
			text, err := os.ReadFile(files[0])
			must(t, err)
			text[100] ^= 1
			must(t, os.WriteFile(files[0], text, 0o600))
			s, err = Open(t.Context(), InFolder(dir), Options{})
			must(t, err)
			defer s.Close()
			if err := do(t.Context(), s); !errors.Is(err, appendlog.ErrDamaged) || !strings.Contains(err.Error(), filepath.Base(files[0])) {
				t.Errorf("got %v, want damage of %s", err, files[0])
			}
		})
	}
}
