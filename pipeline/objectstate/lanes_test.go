package objectstate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/rapidtest"
	"github.com/leadetl/leadetl/internal/s3test"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// laneKeys are the keys that each lane asks about.
var laneKeys = [][]string{{"a", "c"}, {"b", "d"}}

// takeOverLane starts an attempt in a lane, without asking for the lease.
func takeOverLane(ctx context.Context, s *State, l Lane, dir string) (*attempt, error) {
	x := &Session{state: s.lane(people, l.ID, l.Number), of: people, some: hashesOf(laneKeys[l.Number]...), handsOver: true}
	err := x.takeOverLane(ctx, l, dir)
	if err == nil {
		err = x.Answers.Load(ctx, x.some)
	}
	if err != nil {
		if x.Answers != nil {
			err = errors.Join(err, x.Answers.Close())
		}
		return nil, err
	}
	return &attempt{x, l.Run, laneKeys[l.Number], map[string]bool{}}, nil
}

// laneModel is a scope that processes of a run ask in, in lanes and without. All
// are at work for ever: each may be a process that slept.
type laneModel struct {
	b          bench
	uri, dirs  string
	idempotent bool
	attempts   []*attempt
	opened     []Lane // of number 0
	began      int
	clock      int

	sent     map[string][]string // idempotency keys
	received map[string]bool
	stored   map[string]bool
}

func (m *laneModel) dir() string { m.began++; return filepath.Join(m.dirs, fmt.Sprint(m.began)) }
func (m *laneModel) now() time.Time {
	m.clock++
	return noon.Add(time.Duration(m.clock) * time.Second)
}

func (m *laneModel) takeOver(t *rapid.T) *attempt {
	a := takeOver(t, t.Context(), m.b.state(t, m.uri), m.dir(), "run")
	m.attempts = append(m.attempts, a)
	return a
}

func (m *laneModel) ask(t *rapid.T, a *attempt, key string) {
	if a.keys != nil && !slices.Contains(a.keys, key) {
		return
	}
	f := a.find(t, t.Context(), key)
	again := f.Open == answers.Unknown
	if f.Stored || f.Open == answers.UnderWay || again && !m.idempotent {
		return // as the buyer decides
	}
	call, err := a.Answers.Intent(t.Context(), question(key), answers.Send{Run: a.run, At: m.now(), Again: again})
	if errors.Is(err, objects.ErrLockLost) || errors.Is(err, errLanesOpen) {
		return
	}
	must(t, err)
	if before := m.sent[key]; len(before) > 0 && (!again || before[len(before)-1] != call.IdempotencyKey) {
		t.Fatalf("key %s is called again, open %v: %v, then %s", key, again, before, call.IdempotencyKey)
	}
	if m.stored[key] {
		t.Fatalf("key %s is called again, and has an answer", key)
	}
	m.sent[key] = append(m.sent[key], call.IdempotencyKey)
	a.calls[key] = true
}

func (m *laneModel) answer(t *rapid.T, a *attempt, key string) {
	if !a.calls[key] {
		return
	}
	delete(a.calls, key)
	m.received[key] = true
	switch err := a.Answers.Place(t.Context(), question(key), answerTo(people, key, "{}", m.now()).Answer, nil); {
	case err == nil:
		m.stored[key] = true
	case !errors.Is(err, objects.ErrLockLost):
		t.Fatalf("an answer is not stored: %v", err)
	}
}

func (m *laneModel) fail(t *rapid.T, a *attempt, key string) { // surely not billed
	if !a.calls[key] {
		return
	}
	delete(a.calls, key)
	switch err := a.Answers.Fail(t.Context(), question(key), answers.Failure{Reason: "limited"}); {
	case err == nil && a.find(t, t.Context(), key).Open == "":
		delete(m.sent, key) // it may be called anew
	case err != nil && !errors.Is(err, objects.ErrLockLost):
		t.Fatalf("a failure is not stored: %v", err)
	}
}

// open opens lanes in a session that has taken over, or in one that slept since.
func (m *laneModel) open(t *rapid.T, a *attempt) {
	if a.log == nil || a.state.laneOf != nil || len(a.calls) > 0 {
		return
	}
	id, err := a.OpenLanes(t.Context(), "run", len(laneKeys))
	if err == nil {
		m.opened = append(m.opened, Lane{ID: id, Run: "run"})
	} else if !errors.Is(err, objects.ErrLockLost) && !errors.Is(err, errLanesOpen) {
		t.Fatalf("open lanes: %v", err)
	}
}

func (m *laneModel) enter(t *rapid.T, l Lane) {
	a, err := takeOverLane(t.Context(), m.b.state(t, m.uri), l, m.dir())
	if err == nil {
		m.attempts = append(m.attempts, a)
	} else if !errors.Is(err, objects.ErrLockLost) {
		t.Fatalf("enter a lane: %v", err)
	}
}

// look requires that a reader finds all that is stored, wherever it is.
func (m *laneModel) look(t *rapid.T) {
	s := m.b.state(t, m.uri)
	found := map[string]bool{}
	for i, err := range s.Sorted(t.Context(), people) {
		must(t, err)
		found[i.Key] = true
	}
	for key := range m.stored {
		if !found[key] {
			t.Fatalf("a reader does not find the answer to %s", key)
		}
	}
}

// end requires that the next session has everything, and that it was paid once.
func (m *laneModel) end(t *rapid.T) {
	m.b.proxy.Do(nil)
	last := m.takeOver(t)
	for key := range m.received {
		if f := last.find(t, t.Context(), key); !f.Stored {
			t.Fatalf("the answer to %s is lost: open %q", key, f.Open)
		}
	}
	for key, calls := range m.sent {
		if f := last.find(t, t.Context(), key); len(calls) > 0 && !f.Stored && f.Open != answers.Unknown {
			t.Fatalf("the call of %s is forgotten", key)
		}
	}
	spent, err := last.Answers.SumSpent(t.Context(), "night") // who pays, in answerTo
	must(t, err)
	if spent.Answers != int64(len(m.received)) || spent.Credits != 2*int64(len(m.received)) {
		t.Fatalf("spent %+v on %d answers", spent, len(m.received))
	}
	m.look(t)
	for _, l := range m.opened {
		if _, err := takeOverLane(t.Context(), m.b.state(t, m.uri), l, m.dir()); !errors.Is(err, objects.ErrLockLost) {
			t.Fatalf("a lane that is joined is entered: %v", err)
		}
	}
}

// Whatever processes do in lanes, and beside them, in any order, when they crash,
// sleep and wake up late: no key is called twice, unless its call is open and is
// sent again under its idempotency key; every answer is there in the end, and
// counts once.
func TestLaneModel(t *testing.T) {
	rapidtest.Checks(t, 4)
	b := newBench(t)
	dirs, states := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		states++
		m := &laneModel{
			b: b, uri: fmt.Sprintf("lanes-%d/", states), dirs: filepath.Join(dirs, fmt.Sprint(states)), idempotent: rapid.Bool().Draw(t, "idempotent"),
			sent: map[string][]string{}, received: map[string]bool{}, stored: map[string]bool{},
		}
		must(t, os.MkdirAll(m.dirs, 0o755))
		defer func() {
			for _, a := range m.attempts {
				_ = a.Answers.Close()
			}
			must(t, os.RemoveAll(m.dirs))
		}()
		m.open(t, m.takeOver(t))
		for n := range laneKeys {
			m.enter(t, Lane{m.opened[0].ID, n, "run"})
		}
		// The last attempts do most, since the earlier ones can do no harm by much.
		one := func(t *rapid.T) *attempt {
			back := rapid.IntRange(0, min(5, len(m.attempts)-1)).Draw(t, "attempt")
			return m.attempts[len(m.attempts)-1-back]
		}
		keys := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		ask := func(t *rapid.T) { m.ask(t, one(t), keys.Draw(t, "key")) }
		answer := func(t *rapid.T) {
			for _, a := range m.attempts {
				for key := range a.calls {
					if rapid.Bool().Draw(t, "answered") {
						m.answer(t, a, key)
					}
					return
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"ask": ask, "ask more": ask, "answer": answer,
			"fail": func(t *rapid.T) { m.fail(t, one(t), keys.Draw(t, "key")) },
			"take over": func(t *rapid.T) {
				if len(m.attempts) < 12 {
					m.takeOver(t)
				}
			},
			"open": func(t *rapid.T) { m.open(t, one(t)) },
			"enter": func(t *rapid.T) {
				if len(m.attempts) < 12 {
					l := rapid.SampledFrom(m.opened).Draw(t, "lanes")
					l.Number = rapid.IntRange(0, len(laneKeys)-1).Draw(t, "lane")
					m.enter(t, l)
				}
			},
			"seal": func(t *rapid.T) {
				if a := one(t); a.log.ended == nil {
					if err := a.seal(t.Context()); err != nil && !errors.Is(err, objects.ErrLockLost) {
						t.Fatalf("seal: %v", err)
					}
				}
			},
			"look": m.look,
			"close a lane and crash": func(t *rapid.T) {
				s, l := b.state(t, m.uri), rapid.SampledFrom(m.opened).Draw(t, "lanes")
				if now, err := s.latest(t.Context(), people); err == nil && now.has(l) {
					_, err := s.lane(people, l.ID, 1).sealLog(t.Context(), people, true)
					must(t, err)
				}
			},
			"lose an answer of S3": func(t *rapid.T) {
				after := rapid.IntRange(0, 3).Draw(t, "requests")
				b.proxy.Do(func(r *http.Request) s3test.Fault {
					if after--; after == -1 && s3test.IsWrite(r) {
						return s3test.Fault{Kind: s3test.Lose}
					}
					return s3test.Fault{}
				})
			},
		})
		m.end(t)
	})
}

// At each request of a takeover that joins a lane, another process of the run enters
// the lane and calls. The one that takes over then knows of the call, or there is none.
func TestLaneEnteredWhileItIsJoined(t *testing.T) {
	b := newBench(t)
	direct := objects.New(t.Context(), objects.Options{Endpoint: b.server.URL, PathStyle: true, GiveUpAfter: 20 * time.Second})
	entered, refused := 0, 0
	for at, done := 2, false; !done; at += 4 { // some fifty requests, and each kind lasts for four
		uri := fmt.Sprintf("join-%d/", at)
		x := takeOver(t, t.Context(), b.state(t, uri), t.TempDir(), "run")
		id, err := x.OpenLanes(t.Context(), "run", 1)
		must(t, err)
		l := Lane{id, 0, "run"}
		first, err := takeOverLane(t.Context(), b.state(t, uri), l, t.TempDir())
		must(t, err)
		_, err = first.Answers.Intent(t.Context(), question("a"), answers.Send{Run: "run", At: noon})
		must(t, err)
		requests, called := 0, false
		enter := func() {
			other := bench{b.server, b.proxy, direct}
			a, err := takeOverLane(t.Context(), other.state(t, uri), l, t.TempDir())
			if err != nil {
				if refused++; !errors.Is(err, objects.ErrLockLost) {
					t.Errorf("request %d: %v, want %v", at, err, objects.ErrLockLost)
				}
				return
			}
			_, err = a.Answers.Intent(t.Context(), question("c"), answers.Send{Run: "run", At: noon})
			must(t, err)
			called = true
			entered++
			must(t, a.Answers.Close())
		}
		b.proxy.Do(func(*http.Request) s3test.Fault {
			if requests++; requests == at {
				enter()
			}
			return s3test.Fault{}
		})
		next := takeOver(t, t.Context(), b.state(t, uri), t.TempDir(), "run")
		b.proxy.Do(nil)
		done = requests < at
		if f := next.find(t, t.Context(), "a"); f.Open != answers.Unknown {
			t.Errorf("request %d: the first call is lost", at)
		}
		if f := next.find(t, t.Context(), "c"); called && f.Open != answers.Unknown {
			t.Errorf("request %d: the call of the process that entered is lost", at)
		}
		for _, a := range []*attempt{x, first, next} {
			must(t, a.Answers.Close())
		}
	}
	if entered == 0 || refused == 0 {
		t.Errorf("entered %d times, refused %d times", entered, refused)
	}
	t.Logf("entered %d times, refused %d times", entered, refused)
}

// Lanes find what is stored of their questions, and the open calls. What they did
// is in the scope afterwards, and nothing of them is left but fences.
func TestLanes(t *testing.T) {
	b := newBench(t)
	s := b.state(t, "state")
	_, err := s.Take(t.Context(), people, inOrder(answerTo(people, "a", "{}", noon), answerTo(people, "z", "{}", noon)),
		[]answers.OpenCall{callTo(people, "b", answers.Unknown, noon), callTo(people, "d", answers.Unknown, noon), callTo(people, "y", answers.Unknown, noon)})
	must(t, err)
	x, err := s.WriteFor(t.Context(), people, "night", t.TempDir())
	must(t, err)
	id, err := x.OpenLanes(t.Context(), "night", 2)
	must(t, err)
	must(t, x.Close(t.Context()))
	if _, err := b.state(t, "state").Claim(t.Context(), people.Service); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("another run beside lanes that are open: %v, want %v", err, filelock.ErrLocked)
	}
	var lanes []*attempt
	for n := range laneKeys {
		lane, err := b.state(t, "state").WriteLane(t.Context(), people, Lane{id, n, "night"}, hashesOf(laneKeys[n]...), t.TempDir())
		must(t, err)
		must(t, lane.Answers.Load(t.Context(), hashesOf(append(laneKeys[n], "y", "z")...)))
		lanes = append(lanes, &attempt{Session: lane})
	}
	for n, want := range []map[string]answers.Found{
		{"a": {Stored: true}, "c": {}, "z": {Stored: true}, "y": {}}, {"b": {Open: answers.Unknown}, "d": {Open: answers.Unknown}, "y": {}},
	} {
		for key, want := range want {
			if got := lanes[n].find(t, t.Context(), key); got.Stored != want.Stored || got.Open != want.Open {
				t.Errorf("%s in lane %d: found %+v, want %+v", key, n, got, want)
			}
		}
	}
	if open := lanes[1].Inherited(); len(open) != 2 || len(lanes[0].Inherited()) != 0 {
		t.Errorf("inherited %+v", open)
	}
	for n, key := range []string{"c", "b"} {
		_, err := lanes[n].Answers.Intent(t.Context(), question(key), answers.Send{Run: "night", At: noon.Add(time.Hour), Again: key == "b"})
		must(t, err)
		must(t, lanes[n].Answers.Put(t.Context(), question(key), answerTo(people, key, "{}", noon.Add(2*time.Hour)).Answer))
		must(t, lanes[n].Close(t.Context()))
	}
	before := contentOf(t, t.Context(), s, people)
	if m, err := s.latest(t.Context(), people); err != nil || m.Lanes == nil || m.Format != formatNumber {
		t.Errorf("with open lanes the manifest is %+v, %v", m, err)
	}
	last, err := b.state(t, "state").WriteFor(t.Context(), people, "night", t.TempDir())
	must(t, err)
	spent, err := last.Answers.SumSpent(t.Context(), "night")
	if want := (answers.Spending{Answers: 2, Credits: 4, Unknown: 2}); err != nil || spent != want {
		t.Errorf("spent %+v, %v, want %+v", spent, err, want)
	}
	must(t, last.Close(t.Context()))
	after := contentOf(t, t.Context(), s, people)
	if len(before.Items) != 4 || len(before.Calls) != 2 || len(after.Items) != 4 || len(after.Calls) != 2 {
		t.Errorf("%d answers and %d open calls with open lanes, %d and %d after, want 4 and 2", len(before.Items), len(before.Calls), len(after.Items), len(after.Calls))
	}
	if m, err := s.latest(t.Context(), people); err != nil || m.Lanes != nil || m.Format != formatWithoutLanes {
		t.Errorf("the manifest is %+v, %v", m, err)
	}
	must(t, filepath.WalkDir(filepath.Join(b.folder(s, people), "lanes"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			data, err := os.ReadFile(path)
			must(t, err)
			if !strings.Contains(string(data), `"fence":true`) {
				t.Errorf("%s is left", path)
			}
		}
		return err
	}))
	if lease, err := b.state(t, "state").Claim(t.Context(), people.Service); err != nil {
		t.Errorf("the lease is left: %v", err)
	} else {
		must(t, lease.Release(t.Context()))
	}
}
