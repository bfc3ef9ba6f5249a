package answers

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// modelled is what is known of one question, in plain Go.
type modelled struct {
	stored  int // the answer's status, 0 without one
	at      time.Time
	open    State
	doubt   bool
	tries   int
	callKey string
	by      string    // the run of the open call
	first   time.Time // of its intents
	sent    time.Time // the last one
}

// Whatever is done in whatever order, also across restarts, the store says the
// same as a map.
func TestModel(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine, in which there are no races, and minutes of it")
	}
	dir := t.TempDir()
	folders := 0
	rapid.Check(t, func(t *rapid.T) {
		folders++
		folder := fmt.Sprintf("%s/%d", dir, folders)
		o := Options{LogBytes: rapid.Int64Range(1, 2000).Draw(t, "size of a log")}
		s, err := Open(t.Context(), InFolder(folder), o)
		fatal(t, err)
		defer func() { fatal(t, s.Close()) }()
		model := map[string]*modelled{}
		spent, days := map[string]*Spending{"a": {}, "b": {}}, map[string]*Spending{}
		questions := rapid.SampledFrom([]string{"one", "two", "three", "four"})
		runs := rapid.SampledFrom([]string{"a", "b"})
		of := func(name string) *modelled {
			if model[name] == nil {
				model[name] = &modelled{}
			}
			return model[name]
		}
		agree := func(what string, err, want error) {
			if err != want {
				t.Fatalf("%s: %v, want %v", what, err, want)
			}
		}
		ctx := t.Context()
		step := 0
		t.Repeat(map[string]func(*rapid.T){
			"intent": func(t *rapid.T) {
				name, run, again := questions.Draw(t, "question"), runs.Draw(t, "run"), rapid.Bool().Draw(t, "again")
				m := of(name)
				step++
				at := noon.Add(time.Duration(step) * time.Second)
				c, err := s.Intent(ctx, person(name), Send{Run: run, At: at, Again: again})
				if m.open != "" && !again {
					agree("intent", err, ErrOpen)
					return
				}
				if m.open == "" && again {
					agree("intent", err, ErrNoCall)
					return
				}
				agree("intent", err, nil)
				if m.open == "" {
					*m = modelled{stored: m.stored, at: m.at, callKey: c.IdempotencyKey, first: at}
				} else {
					m.doubt = true
				}
				m.open, m.by, m.sent = UnderWay, run, at
				m.tries++
				if c != (Call{IdempotencyKey: m.callKey, FirstSent: m.first, Attempt: m.tries}) {
					t.Fatalf("intent: %+v, want %+v", c, m)
				}
			},
			"put": func(t *rapid.T) {
				name, run, price := questions.Draw(t, "question"), runs.Draw(t, "run"), rapid.Int64Range(-1, 3).Draw(t, "price")
				step++
				a := Answer{Run: run, Outcome: Matched, Status: step, Credits: &price, Received: noon.Add(time.Duration(step) * time.Hour)}
				if price < 0 {
					a.Credits = nil
				}
				count(spent, run, a)
				count(days, DayOf(a.Received), a)
				agree("put", s.Put(ctx, person(name), a), nil)
				*of(name) = modelled{stored: step, at: a.Received}
			},
			"fail": func(t *rapid.T) {
				name, billed := questions.Draw(t, "question"), rapid.Bool().Draw(t, "billed")
				m := of(name)
				err := s.Fail(ctx, person(name), Failure{Reason: "reset", MayBeBilled: billed})
				if m.open == "" {
					agree("fail", err, ErrNoCall)
					return
				}
				agree("fail", err, nil)
				if m.doubt = m.doubt || billed; m.doubt {
					m.open = Unknown
				} else {
					*m = modelled{stored: m.stored, at: m.at}
				}
			},
			"park": func(t *rapid.T) {
				name := questions.Draw(t, "question")
				m := of(name)
				err := s.Park(ctx, person(name), Parking{Resolution: "res_" + name, Deadline: noon})
				if m.open == "" {
					agree("park", err, ErrNoCall)
					return
				}
				agree("park", err, nil)
				m.open = Parked
			},
			"forget": func(t *rapid.T) {
				name := questions.Draw(t, "question")
				n, err := forget(ctx, s, person(name).Hash())
				agree("forget", err, nil)
				if m := of(name); (n == 1) != (m.stored > 0 || m.open != "") {
					t.Fatalf("forgot %d of %+v", n, m)
				}
				delete(model, name)
			},
			"prune": func(t *rapid.T) {
				before := noon.Add(time.Duration(rapid.IntRange(0, step+1).Draw(t, "before")) * time.Second)
				want := 0
				for _, m := range model {
					if m.stored > 0 && m.open == "" && m.at.Before(before) {
						m.stored = 0
						want++
					}
				}
				if n, err := prune(ctx, s, before); n != want || err != nil {
					t.Fatalf("pruned %d, %v; want %d", n, err, want)
				}
			},
			"spent": func(t *rapid.T) {
				open := map[string]map[State]int{"a": {}, "b": {}}
				for _, m := range model {
					if m.open != "" {
						open[m.by][m.open]++
					}
				}
				for run, want := range spent {
					if got, _, err := s.SumSpent(ctx, run); got != *want || err != nil {
						t.Fatalf("run %s: %+v, %v; want %+v", run, got, err, *want)
					}
					if got := s.openOf(run); !maps.Equal(got, open[run]) {
						t.Fatalf("run %s: open calls %v, want %v", run, got, open[run])
					}
				}
				since := DayOf(noon.Add(time.Duration(rapid.IntRange(0, step).Draw(t, "hours")) * time.Hour))
				got, err := s.SpentSince(ctx, since)
				var want []DaySpending
				for _, day := range slices.Sorted(maps.Keys(days)) {
					if day >= since {
						want = append(want, DaySpending{day, people, *days[day]})
					}
				}
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("since %s: %+v, %v; want %+v", since, got, err, want)
				}
			},
			"restart": func(t *rapid.T) {
				if rapid.Bool().Draw(t, "killed") { // what is on disk is all there is
					folders++
					next := fmt.Sprintf("%s/%d", dir, folders)
					s.logMu.Lock()
					fatal(t, errors.Join(s.awaitMove(), os.CopyFS(next, os.DirFS(folder))))
					s.logMu.Unlock()
					folder = next
				}
				fatal(t, s.Close())
				s, err = Open(t.Context(), InFolder(folder), o)
				fatal(t, err)
				for _, m := range model {
					if m.open == UnderWay {
						m.open, m.doubt = Unknown, true
					}
				}
			},
			"": func(t *rapid.T) {
				var unknown, parked []string
				for name, m := range model {
					found, err := s.Lookup(ctx, people, []string{"absent", person(name).Key}, Freshness{Now: noon}, false, nil)
					fatal(t, err)
					if f := found[1]; f.Stored != (m.stored > 0) || f.Answer.Status != m.stored || f.Open != m.open || f.Run != m.by || !f.Sent.Equal(m.sent) || !f.FirstSent.Equal(m.first) || found[0].Stored {
						t.Fatalf("%s: %+v, want %+v", name, f, m)
					}
					switch m.open {
					case Unknown:
						unknown = append(unknown, person(name).Key)
					case Parked:
						parked = append(parked, person(name).Key)
					}
				}
				for _, list := range []struct {
					state State
					want  []string
				}{{Unknown, unknown}, {Parked, parked}} {
					var got []string
					for c, err := range s.openCalls(ctx, list.state) {
						fatal(t, err)
						got = append(got, c.Key)
					}
					slices.Sort(got)
					slices.Sort(list.want)
					if !slices.Equal(got, list.want) {
						t.Fatalf("%s: %s, want %s", list.state, strings.Join(got, " "), strings.Join(list.want, " "))
					}
				}
			},
		})
	})
}

func fatal(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// count adds an answer to what is spent under a key.
func count(spent map[string]*Spending, key string, a Answer) {
	if spent[key] == nil {
		spent[key] = &Spending{}
	}
	spent[key].add(a)
}
