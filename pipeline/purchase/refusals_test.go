package purchase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
)

// byKey is a service that answers by key: by the words of a script, of which the
// last one holds for ever.
type byKey struct {
	mu     sync.Mutex
	script map[string][]string
	keys   map[string][]string // the idempotency keys of each question
}

func (s *byKey) Do(_ context.Context, call resolution.Call) (resolution.Reply, error) {
	s.mu.Lock()
	words := s.script[call.Key]
	if len(words) > 1 {
		s.script[call.Key] = words[1:]
	}
	s.keys[call.Key] = append(s.keys[call.Key], call.IdempotencyKey)
	s.mu.Unlock()
	denied := func(status int) error {
		return &resolution.CallError{Class: resolution.Denied, Status: status, Sent: true}
	}
	switch word := words[0]; word {
	case "match":
		return client.Read(call.Operation, 200, []byte(`{"lead":{"phone":"+12025550100"}}`), nil)
	case "miss":
		return client.Read(call.Operation, 200, []byte(`{"lead":null}`), nil)
	case "429":
		return resolution.Reply{}, &resolution.CallError{Class: resolution.Limited, Status: 429, Sent: true}
	case "500":
		return resolution.Reply{}, &resolution.CallError{Class: resolution.Unavailable, Status: 500, Sent: true}
	case "503":
		return resolution.Reply{}, &resolution.CallError{Class: resolution.Unavailable, Status: 503, Sent: true, Unbilled: true}
	case "told": // that keys are remembered for a minute
		return resolution.Reply{}, &resolution.CallError{Class: resolution.Unavailable, Status: 500, Sent: true, KeyWindow: time.Minute}
	case "slow":
		time.Sleep(20 * time.Second)
		return resolution.Reply{}, &resolution.CallError{Class: resolution.Unavailable, Sent: true}
	case "pause":
		return resolution.Reply{}, &resolution.CallError{Class: resolution.Limited, Status: 429, Sent: true, Pace: resolution.Pace{RetryAfter: time.Hour}}
	case "invalid":
		return resolution.Reply{}, &resolution.CallError{Class: resolution.Invalid, Status: 400, Sent: true}
	case "422":
		return resolution.Reply{}, &resolution.CallError{Class: resolution.Invalid, Status: 422, Sent: true}
	case "general":
		return resolution.Reply{}, &resolution.CallError{Class: resolution.Denied, Status: 400, Sent: true, General: true}
	default:
		status := 0
		_, _ = fmt.Sscan(word, &status)
		return resolution.Reply{}, denied(status)
	}
}

func (*byKey) Start(context.Context, resolution.SearchCall) (resolution.Reply, error) { panic("none") }
func (*byKey) Poll(context.Context, resolution.Operation, string, string) (resolution.Reply, error) {
	panic("none")
}

// TestRefusedQuestions: what becomes of a list of questions of which a service
// refuses some, and how the run ends. Questions are asked one after another.
func TestRefusedQuestions(t *testing.T) {
	const refused403, refused404 = "failed refused", "failed refused"
	always := func(words ...string) []string { return words }
	for _, c := range []struct {
		name     string
		plain404 Plain404
		before   string   // an answer that an earlier run stored
		script   []string // of the keys 0, 1, …: words with + between
		want     []string // of each row: outcome and reason; shorter if the run stops there
		ends     error
	}{
		{"one blip of 401", "", "", always("401+match", "match"), []string{"matched ", "matched "}, nil},
		{"two of 403", "", "", always("403+403+match", "match"), []string{"matched ", "matched "}, nil},
		{"other statuses between", "", "", always("403+401+403+410+match", "match"), []string{"matched ", "matched "}, nil},
		{"one row", "", "", always("match", "403", "match"), []string{"matched ", refused403, "matched "}, nil},
		{"one row, first", "", "", always("405", "match"), []string{refused403, "matched "}, nil},
		{"one row, and a redirect", "", "", always("match", "301", "415", "410", "401", "match"),
			[]string{"matched ", refused403, refused403, refused403, refused403, "matched "}, nil},
		{"wrong key", "", "", always("401", "401", "401", "match"), []string{refused403, refused403}, ErrRefused},
		{"wrong key, of fewer", "", "", always("401", "401"), []string{refused403, refused403}, ErrRefused},
		{"wrong key, of one", "", "", always("403"), []string{refused403}, ErrRefused},
		{"revoked later", "", "", always("match", "401", "401", "401", "401", "401", "match"),
			[]string{"matched ", refused403, refused403, refused403, refused403}, ErrRefused},
		{"every other row", "", "", always("403", "match", "403", "match", "403", "match", "403", "match", "403", "match", "403"),
			[]string{refused403, "matched ", refused403, "matched ", refused403, "matched ", refused403, "matched ", refused403, "matched ", refused403}, nil},
		{"what every call would get", "", "", always("match", "general", "match"), []string{"matched "}, ErrRefused},

		{"404 at a wrong address", "", "", always("404", "404", "404", "404", "404", "match"), []string{refused404, refused404, refused404, refused404}, ErrRefused},
		{"404 at a wrong address, of fewer", "", "", always("404", "404"), []string{refused404, refused404}, ErrRefused},
		{"404 after a match", "", "", always("match", "404", "404", "404", "404", "404", "404"),
			[]string{"matched ", "no_match no_match", "no_match no_match", "no_match no_match", "no_match no_match", "no_match no_match", "no_match no_match"}, nil},
		{"404 after a miss", "", "", always("miss", "404"), []string{"no_match no_match", "no_match no_match"}, nil},
		{"404 after a match of an earlier run", "", "match", always("404", "match"), []string{"no_match no_match", "matched "}, nil},
		{"404 is a miss", Plain404Miss, "", always("404", "404", "404", "404", "404", "404"),
			[]string{"no_match no_match", "no_match no_match", "no_match no_match", "no_match no_match", "no_match no_match", "no_match no_match"}, nil},
		{"all that is known are misses", Plain404Stop, "", always("miss", "slow", "miss"), []string{"no_match no_match", "failed unknown_call", "no_match no_match"}, ErrRefused},
		{"one is a match", Plain404Stop, "", always("miss", "slow", "match"), []string{"no_match no_match", "failed unknown_call", "matched "}, nil},
		{"404 stops", Plain404Stop, "match", always("match", "404", "match"), []string{"matched "}, ErrRefused},

		{"endless 503 of one row", "", "", always("match", "503", "match"), []string{"matched ", "failed unavailable", "matched "}, nil},
		{"endless 429 of one row", "", "", always("match", "429", "match"), []string{"matched ", "failed unavailable", "matched "}, nil},
		{"endless 429 of all", "", "", always("429", "429"), nil, ErrUnreachable},
		{"endless 503 of all", "", "", always("503", "503"), nil, ErrUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				s := &byKey{script: map[string][]string{"before": {"match"}}, keys: map[string][]string{}}
				for i, words := range c.script {
					s.script[fmt.Sprint(i)] = strings.Split(words, "+")
				}
				options := pace.DefaultOptions()
				options.GiveUp = 15 * time.Minute
				open := func() *Buyer {
					return buyerFrom(t, resolution.NetworkToPhone, store, s, func(r *Remote) { r.Plain404, r.Pace = c.plain404, pace.New(options) })
				}
				if c.before != "" {
					if _, err := ask(t, open(), "before"); err != nil {
						t.Fatal(err)
					}
				}
				b := open()
				var got []string
				var ended error
				for i := range c.script {
					a, err := ask(t, b, fmt.Sprint(i))
					if ended = err; err != nil {
						break
					}
					got = append(got, a.Outcome.String()+" "+a.Reason)
				}
				if ended == nil {
					ended = b.Refused()
				}
				if !slices.Equal(got, c.want) || !errors.Is(ended, c.ends) || c.ends == nil && ended != nil {
					t.Errorf("%q, then %v\nwant %q, then %v", got, ended, c.want, c.ends)
				}
				found, err := store.Lookup(t.Context(), b.scope, []string{"0"}, answers.Freshness{}, false, nil)
				if err != nil || found[0].Stored && strings.HasPrefix(got[0], outcome.Failed.String()) {
					t.Errorf("a refusal is stored: %+v, %v", found[0], err)
				}
			})
		})
	}
}

// TestNewKey: a service that repeats a stored failure under its idempotency key is
// asked under another one, if the user says so, once.
func TestNewKey(t *testing.T) {
	for _, c := range []struct {
		name   string
		newKey bool
		then   string // what the service says to it
		want   string // outcome and reason in the end
	}{
		{"the same key", false, "", "failed unknown_call"},
		{"a new key", true, "match", "matched "},
		{"a new key, refused", true, "invalid", "failed refused"}, // which is the last word
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				s := &byKey{script: map[string][]string{"a": {"500"}}, keys: map[string][]string{}}
				repeated := answeringKeys{s, c.then}
				first := buyerFrom(t, resolution.NetworkToPhone, store, repeated, func(r *Remote) { r.Keys = NewKeyWindow(DefaultKeyWindow) })
				if a, err := ask(t, first, "a"); err != nil || a.Reason != outcome.ReasonUnknownCall {
					t.Fatalf("%+v, %v", a, err)
				}
				time.Sleep(time.Hour)
				again := buyerFrom(t, resolution.NetworkToPhone, store, repeated, func(r *Remote) { r.Keys, r.RetryUnknown, r.NewKey = NewKeyWindow(DefaultKeyWindow), true, c.newKey })
				a, err := ask(t, again, "a")
				if got := a.Outcome.String() + " " + a.Reason; err != nil || got != c.want {
					t.Errorf("%q, %v, want %q", got, err, c.want)
				}
				open := 0
				for _, err := range store.Unknown(t.Context()) {
					if err != nil {
						t.Error(err)
					}
					open++
				}
				if listed := !c.newKey; listed != (open == 1) {
					t.Errorf("%d unknown calls", open)
				}
				if keys := slices.Compact(slices.Clone(s.keys["a"])); (len(keys) == 2) != c.newKey {
					t.Errorf("%d idempotency keys", len(keys))
				}
			})
		})
	}
}

// TestSecondRefusal: what is refused when it is sent once more is closed, by a bad row and by what is
// known for a miss. A 422 may be about the key, where the service has any.
func TestSecondRefusal(t *testing.T) {
	for _, c := range []struct {
		name, then      string
		judged, honours bool
		want            string // outcome, reason, and the state of the call
	}{
		{"by the rules of a provider", "422", true, false, "failed refused, closed"},
		{"by a service", "invalid", false, false, "failed refused, closed"},
		{"by one without keys", "422", false, false, "failed refused, closed"},
		{"by one with keys", "422", false, true, "failed unknown_call, unknown"},
		{"a wrong key", "403", false, false, "failed unknown_call, unknown"},
		{"again", "500", true, false, "failed unknown_call, unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				s := &byKey{script: map[string][]string{"a": {"500", c.then}}, keys: map[string][]string{}}
				settings := func(r *Remote) {
					if r.Judged = c.judged; c.honours {
						r.Keys = NewKeyWindow(time.Hour)
					}
				}
				first := buyerFrom(t, resolution.NetworkToPhone, store, s, settings)
				if a, err := ask(t, first, "a"); !c.honours && (err != nil || a.Reason != outcome.ReasonUnknownCall) {
					t.Fatalf("%+v, %v", a, err)
				}
				first.Close()
				time.Sleep(2 * time.Hour)
				again := buyerFrom(t, resolution.NetworkToPhone, store, s, func(r *Remote) { settings(r); r.RetryUnknown = true })
				a, err := ask(t, again, "a")
				if err != nil {
					t.Fatal(err)
				}
				found, err := store.Lookup(t.Context(), again.scope, []string{"a"}, answers.Freshness{}, false, nil)
				if err != nil {
					t.Fatal(err)
				}
				state := "closed"
				if found[0].Open != "" {
					state = string(found[0].Open)
				}
				if got := a.Outcome.String() + " " + a.Reason + ", " + state; got != c.want {
					t.Errorf("%q, want %q", got, c.want)
				}
			})
		})
	}
}

// answeringKeys is a service that repeats what it answered first under an
// idempotency key, and answers another key of the same question.
type answeringKeys struct {
	*byKey
	then string
}

func (s answeringKeys) Do(ctx context.Context, call resolution.Call) (resolution.Reply, error) {
	s.mu.Lock()
	if keys := s.keys[call.Key]; len(keys) > 0 && keys[0] != call.IdempotencyKey {
		s.script[call.Key] = []string{s.then}
	}
	s.mu.Unlock()
	return s.byKey.Do(ctx, call)
}

// TestKeyGrowsOld: a call without an answer is sent again while the service knows its
// key, also by a later process, and not after that. Then it is unknown. What was surely
// not billed has no age.
func TestKeyGrowsOld(t *testing.T) {
	const unknown = "failed unknown_call"
	for _, c := range []struct {
		name   string
		window time.Duration
		script string        // what the service says, in words with + between
		slept  time.Duration // between the first process and the second
		retry  bool          // the second has --retry-unknown
		want   string        // of the first process, and of the second
		calls  int           // that reach the service
	}{
		{"an answer at last", time.Hour, "500+500+match", 0, false, "matched , matched ", 3},
		{"an answer that takes longer than the window", 10 * time.Second, "slow+match", 0, false, unknown + ", " + unknown, 1},
		{"a pause that is longer than the window", 10 * time.Minute, "500+pause+match", 0, false, unknown + ", " + unknown, 2},
		{"a pause before the first answer", 10 * time.Minute, "pause+pause+match", 0, false, "matched , matched ", 3},
		{"a service that remembers for less", 24 * time.Hour, "told+pause+match", 0, false, unknown + ", " + unknown, 2},
		{"a service that still remembers", 24 * time.Hour, "told+match", 0, false, "matched , matched ", 2},
		{"a later process in the window", 24 * time.Hour, strings.Repeat("500+", maxAttempts) + "match", 23 * time.Hour, false, unknown + ", matched ", maxAttempts + 1},
		{"a later process in the margin", 24 * time.Hour, strings.Repeat("500+", maxAttempts) + "match", 23*time.Hour + 40*time.Minute, false, unknown + ", " + unknown, maxAttempts},
		{"a day later", 24 * time.Hour, strings.Repeat("500+", maxAttempts) + "match", 25 * time.Hour, false, unknown + ", " + unknown, maxAttempts},
		{"a day later, which the user wants", 24 * time.Hour, strings.Repeat("500+", maxAttempts) + "match", 25 * time.Hour, true, unknown + ", matched ", maxAttempts + 1},
		{"a day later, once", 24 * time.Hour, "500", 25 * time.Hour, true, unknown + ", " + unknown, maxAttempts + 1},
		{"a day later, refused", 24 * time.Hour, strings.Repeat("500+", maxAttempts) + "403", 25 * time.Hour, true, unknown + ", " + unknown, maxAttempts + 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				s := &byKey{script: map[string][]string{"a": strings.Split(c.script, "+"), "b": {"match"}}, keys: map[string][]string{}}
				var got []string
				for i := range 2 {
					b := buyerFrom(t, resolution.NetworkToPhone, store, s, func(r *Remote) {
						r.Keys, r.RetryUnknown = NewKeyWindow(c.window), c.retry && i == 1
					})
					if _, err := ask(t, b, "b"); err != nil { // so that failures are those of a question
						t.Fatal(err)
					}
					a, err := ask(t, b, "a")
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, a.Outcome.String()+" "+a.Reason)
					time.Sleep(c.slept)
				}
				open, err := store.OpenCalls(t.Context(), answers.Scope{Service: laterService, Operation: resolution.NetworkToPhone})
				if listed := len(open) == 1 && open[0].State == answers.Unknown; err != nil || listed != strings.HasSuffix(c.want, unknown) {
					t.Errorf("open calls: %+v, %v", open, err)
				}
				if all := strings.Join(got, ", "); all != c.want || len(s.keys["a"]) != c.calls {
					t.Errorf("%q after %d calls, want %q after %d", all, len(s.keys["a"]), c.want, c.calls)
				}
			})
		})
	}
}

// TestWrongKeyStopsAnOrder: a service that does not take the key ends the run, also where the next
// resolver is asked when it is out of reach.
func TestWrongKeyStopsAnOrder(t *testing.T) {
	for _, passOver := range []bool{false, true} {
		_, store := laterOf(t)
		b := buyerFrom(t, resolution.NetworkToPhone, store, answering(func(string) (int, string, error) {
			return 0, "", &resolution.CallError{Class: resolution.Denied, Status: 401, Sent: true}
		}), func(r *Remote) {
			r.Total, r.PassOver = NewTotal(NoBudget, 0), passOver
		})
		if got, err := askAll(t, b, people("a b c d e")...); !errors.Is(err, ErrRefused) {
			t.Errorf("pass over %v: %+v, %v; want %v", passOver, got, err, ErrRefused)
		}
	}
}

// A provider to which every row is a bad one stops the run, unless it has answered before. If these are
// few rows it warns. A service of the interface does not: its callers' rows may be bad.
func TestAllRowsAreBad(t *testing.T) {
	for _, f := range []struct {
		name   string
		judged bool
		good   int64 // the first questions, which it answers
		rows   int
		stops  bool
		warns  bool
	}{
		{"a provider", true, 0, badRows + 5, true, true}, {"a provider that has answered", true, 1, badRows + 5, false, false}, {"a service", false, 0, badRows + 5, false, false},
		{"a few rows", true, 0, 7, false, true}, {"one row", true, 0, 1, false, false},
	} {
		t.Run(f.name, func(t *testing.T) {
			_, store := laterOf(t)
			var asked atomic.Int64
			b := buyerFrom(t, resolution.NetworkToPhone, store, answering(func(string) (int, string, error) {
				if asked.Add(1) <= f.good {
					return 200, `{"lead":{"phone":"+12025550100"}}`, nil
				}
				return 0, "", &resolution.CallError{Class: resolution.Invalid, Status: 400, Sent: true}
			}), func(r *Remote) { r.Judged = f.judged })
			var log bytes.Buffer
			b.refusals.log = slog.New(slog.NewTextHandler(&log, nil))
			var keys []string
			for n := range f.rows {
				keys = append(keys, fmt.Sprint("network.example/in/", n))
			}
			_, err := askAll(t, b, keys...)
			if errors.Is(err, ErrRefused) != f.stops || f.stops && asked.Load() < badRows || err != nil && !strings.Contains(err.Error(), "check the request of its entry") {
				t.Errorf("%d asked, %v", asked.Load(), err)
			}
			if err := b.Refused(); err != nil || strings.Contains(log.String(), "each row that the provider") != f.warns {
				t.Errorf("%v, and the log is %q", err, &log)
			}
		})
	}
}

// TestRefusedIdentifiers: the log names refused identifiers only beside answers. If all are refused,
// the error of the run says it.
func TestRefusedIdentifiers(t *testing.T) {
	for _, c := range []struct {
		steps string // d denies another question, a is an answer
		lines int    // of the log
		all   bool
	}{
		{"dd", 0, false}, {"ddd", 0, true}, {"dda", 2, false}, {"ddada", 3, false}, {"addddd", 4, true},
	} {
		var log bytes.Buffer
		r, all := refusals{log: slog.New(slog.NewTextHandler(&log, nil))}, false
		for i, step := range c.steps {
			if step == 'a' {
				r.answer()
			} else {
				all = r.deny(answers.Hash{byte(i)}, &resolution.CallError{Status: 401}, false)
			}
		}
		if lines := strings.Count(log.String(), "\n"); lines != c.lines || all != c.all || strings.Count(log.String(), "refuses an identifier") != lines {
			t.Errorf("%s: all are refused: %t, the log has\n%s", c.steps, all, &log)
		}
	}
}

// sleepy is a store after which the process sleeps, before it sends what it has stored.
type sleepy struct {
	*answers.Store
	sleeps time.Duration
}

func (s sleepy) Intent(ctx context.Context, q answers.Question, send answers.Send) (answers.Call, error) {
	c, err := s.Store.Intent(ctx, q, send)
	time.Sleep(s.sleeps)
	return c, err
}

// TestKeyGrowsOldBehindItsIntent: a call that may have been billed does not leave where its key has
// become too old since its intent was stored.
func TestKeyGrowsOldBehindItsIntent(t *testing.T) {
	for slept, want := range map[time.Duration]struct {
		outcome string
		calls   int
	}{time.Hour: {"matched ", 2}, 23*time.Hour + 45*time.Minute: {"failed unknown_call", 1}} {
		synctest.Test(t, func(t *testing.T) {
			store, err := answers.Open(context.Background(), answers.InFolder(t.TempDir()), answers.Options{})
			must(t, err)
			t.Cleanup(func() { store.Close() })
			s := &byKey{script: map[string][]string{"a": {"500", "match"}, "b": {"match"}}, keys: map[string][]string{}}
			first := buyerFrom(t, resolution.NetworkToPhone, store, s, nil)
			if a, err := ask(t, first, "a"); err != nil || a.Reason != outcome.ReasonUnknownCall {
				t.Fatalf("%+v, %v", a, err)
			}
			time.Sleep(time.Minute)
			b := buyerFrom(t, resolution.NetworkToPhone, store, s, func(r *Remote) {
				r.Answers, r.Keys = sleepy{store, slept}, NewKeyWindow(DefaultKeyWindow)
			})
			a, err := ask(t, b, "a")
			if got := a.Outcome.String() + " " + a.Reason; err != nil || got != want.outcome || len(s.keys["a"]) != want.calls {
				t.Errorf("slept %s: %q after %d calls, %v; want %q after %d", slept, got, len(s.keys["a"]), err, want.outcome, want.calls)
			}
		})
	}
}
