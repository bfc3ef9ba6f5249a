package objectstate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// hashesOf yields the hashes of keys in order.
func hashesOf(keys ...string) Hashes {
	var hashes []answers.Hash
	for _, key := range keys {
		hashes = append(hashes, question(key).Hash())
	}
	slices.SortFunc(hashes, answers.Hash.Compare)
	return func(yield func(answers.Hash, error) bool) {
		for _, h := range hashes {
			if !yield(h, nil) {
				return
			}
		}
	}
}

func collect(t *testing.T, from iter.Seq2[answers.Item, error]) (all []answers.Item) {
	t.Helper()
	for i, err := range from {
		must(t, err)
		all = append(all, i)
	}
	return all
}

// Whichever questions are chosen, their answers are those that reading
// everything finds, and files and row groups without them are not read.
func TestAmong(t *testing.T) {
	b := newBench(t)
	s := b.state(t, "state")
	s.RowsPerFile = 40
	random := rand.New(rand.NewPCG(3, 4))
	for generation := range 3 {
		var some []answers.Item
		for n := range 120 {
			if random.IntN(3) == 0 {
				some = append(some, answerTo(people, fmt.Sprint("key-", n), strings.Repeat("x", generation+1), noon.Add(time.Duration(random.IntN(50))*time.Minute)))
			}
		}
		_, err := s.Take(t.Context(), people, inOrder(some...), nil)
		must(t, err)
	}
	m, err := s.latest(t.Context(), people)
	must(t, err)
	if len(m.generations()) != 3 {
		t.Fatalf("%d generations", len(m.generations()))
	}
	all := collect(t, s.sorted(t.Context(), people, m.Files, true))
	for _, share := range []int{0, 1, 10, 60, 100} {
		chosen, keys := map[answers.Hash]bool{}, []string{"no-key", "none"}
		for n := range 130 {
			if random.IntN(100) < share {
				keys = append(keys, fmt.Sprint("key-", n))
				chosen[question(keys[len(keys)-1]).Hash()] = true
			}
		}
		want := slices.DeleteFunc(slices.Clone(all), func(i answers.Item) bool { return !chosen[i.Hash] })
		if got := collect(t, s.lookupSorted(t.Context(), people, m, hashesOf(keys...))); !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
			t.Errorf("%d of 100: got %d answers, want %d", share, len(got), len(want))
		}
	}
	before := b.proxy.Seen()
	if got := collect(t, s.lookupSorted(t.Context(), people, m, hashesOf())); len(got) > 0 || b.proxy.Seen() != before {
		t.Errorf("no question: %d answers, %d requests", len(got), b.proxy.Seen()-before)
	}
	wrong := func(yield func(answers.Hash, error) bool) {
		for _, h := range []answers.Hash{{1}, {0}} {
			if !yield(h, nil) {
				return
			}
		}
	}
	err = nil
	for _, err = range s.lookupSorted(t.Context(), people, m, wrong) {
	}
	if err == nil || !strings.Contains(err.Error(), "order") {
		t.Errorf("questions without order: %v", err)
	}
}

// A session with some of the answers loses none of the others, nor their open
// calls, nor what runs have spent, and finds what the log has of its questions.
func TestLoadSome(t *testing.T) {
	b := newBench(t)
	s := b.state(t, "state")
	var some []answers.Item
	for n := range 30 {
		some = append(some, answerTo(people, fmt.Sprint("key-", n), "{}", noon))
	}
	_, err := s.Take(t.Context(), people, inOrder(some...), []answers.OpenCall{callTo(people, "open", answers.Unknown, noon)})
	must(t, err)
	// A process dies with an answer, and two open calls, in the log.
	dead := takeOver(t, t.Context(), s, t.TempDir(), "night")
	for _, key := range []string{"bought", "lost", "other"} {
		_, err := dead.Answers.Intent(t.Context(), question(key), answers.Send{Run: "night", At: noon})
		must(t, err)
	}
	must(t, dead.Answers.Put(t.Context(), question("bought"), answerTo(people, "bought", "{}", noon).Answer))
	must(t, dead.Answers.Close())

	x, err := s.Write(t.Context(), people, t.TempDir())
	must(t, err)
	a := &attempt{Session: x}
	requireRefused := func(keys ...string) {
		t.Helper()
		for _, key := range keys {
			if _, err := x.Answers.Lookup(t.Context(), people, []string{"bought", key}, answers.Freshness{}, false, nil); !errors.Is(err, ErrNotLoaded) {
				t.Errorf("%s: %v, want %v", key, err, ErrNotLoaded)
			}
			if _, err := x.Answers.LookupHashes(t.Context(), []answers.Hash{question(key).Hash()}, answers.Freshness{}, nil); !errors.Is(err, ErrNotLoaded) {
				t.Errorf("hash of %s: %v, want %v", key, err, ErrNotLoaded)
			}
		}
	}
	requireRefused("key-3", "key-4", "lost", "new")
	if n := x.Answers.Unloaded(); n != 31 {
		t.Errorf("%d answers are not loaded, want 31", n)
	}
	must(t, x.Answers.Load(t.Context(), hashesOf("key-3", "bought", "lost", "new")))
	requireRefused("key-4", "other", "open", "none")
	if n := x.Answers.Unloaded(); n != 0 {
		t.Errorf("%d answers are not loaded, want 0", n)
	}
	for key, want := range map[string]answers.Found{"key-3": {Stored: true}, "bought": {Stored: true}, "lost": {Open: answers.Unknown}, "new": {}} {
		if got := a.find(t, t.Context(), key); got.Stored != want.Stored || got.Open != want.Open {
			t.Errorf("%s: found %+v, want %+v", key, got, want)
		}
	}
	spent, _, err := x.Answers.SumSpent(t.Context(), "night")
	if want := (answers.Spending{Answers: 1, Credits: 2}); err != nil || spent != want || unknownOf(t, x, "night") != 3 {
		t.Errorf("spent %+v, %v; want %+v", spent, err, want)
	}
	_, err = x.Answers.Intent(t.Context(), question("new"), answers.Send{Run: "night", At: noon})
	must(t, err)
	must(t, x.Answers.Put(t.Context(), question("new"), answerTo(people, "new", "{}", noon).Answer))
	must(t, x.Close(t.Context()))
	left := contentOf(t, t.Context(), s, people)
	if len(left.Items) != 32 || len(left.Calls) != 3 {
		t.Errorf("%d answers and %d open calls are left, want 32 and 3", len(left.Items), len(left.Calls))
	}
}

// Whoever only looks, slowly, finds the answers although a writer has merged the files
// that it looked at in the meantime, and removed them.
func TestLoadAfterAMerge(t *testing.T) {
	b := newBench(t)
	s := b.state(t, "state")
	take := func(keys ...string) {
		t.Helper()
		var some []answers.Item
		for _, key := range keys {
			some = append(some, answerTo(people, key, "{}", noon))
		}
		_, err := s.Take(t.Context(), people, inOrder(some...), nil)
		must(t, err)
	}
	take("a", "b", "c")
	looks := func() *Session {
		t.Helper()
		x, err := b.state(t, "state").Look(t.Context(), people, t.TempDir())
		must(t, err)
		return x
	}
	x, gone := looks(), looks()
	take("d")
	_, _, err := s.Compact(t.Context(), people)
	must(t, err)
	m, err := s.latest(t.Context(), people)
	must(t, err)
	must(t, s.removeFiles(t.Context(), people, m, time.Now().Add(time.Hour)))
	must(t, x.Answers.Load(t.Context(), hashesOf("a", "c", "d", "e")))
	for key, want := range map[string]bool{"a": true, "c": true, "d": true, "e": false} {
		if got := (&attempt{Session: x}).find(t, t.Context(), key); got.Stored != want {
			t.Errorf("%s: found %+v", key, got)
		}
	}
	must(t, x.Close(t.Context()))
	must(t, s.store.Remove(t.Context(), s.folder(people).Below(m.Files[0].Name)))
	gone.state.impatient = true
	if err := gone.Answers.Load(t.Context(), nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("without the files of the newest manifest: %v, want %v", err, ErrDamaged)
	}
	must(t, gone.Close(t.Context()))
}

// Answers are loaded before the first change, and once.
func TestLoadTooLate(t *testing.T) {
	b := newBench(t)
	x, err := b.state(t, "state").Write(t.Context(), people, t.TempDir())
	must(t, err)
	_, err = x.Answers.Intent(t.Context(), question("a"), answers.Send{Run: "night", At: noon})
	must(t, err)
	if err := x.Answers.Load(t.Context(), nil); err == nil {
		t.Error("loaded after a change")
	}
	must(t, x.Close(t.Context()))
	x, err = b.state(t, "state").Write(t.Context(), people, t.TempDir())
	must(t, err)
	must(t, x.Answers.Load(t.Context(), hashesOf("a")))
	if err := x.Answers.Load(t.Context(), hashesOf("b")); err == nil {
		t.Error("loaded twice")
	}
	must(t, x.Close(t.Context()))
}

// A worker takes over from one before it at once, and that one does nothing any more,
// not even calls whose intents it has. One with a lower term, which has slept since
// it was started, does not take over, and another run is locked out.
func TestTakeOverByTerm(t *testing.T) {
	b := newBench(t)
	const lostAfter = 30 * time.Second
	seen := time.Now().Add(-lostAfter / 3)
	worker := func(term int64) *State {
		s := b.state(t, "state")
		s.HeldBy(Turn{Holder: objects.Holder{Name: "run night", Term: term, LostAfter: lostAfter}, Confirmed: func() time.Time { return seen }})
		return s
	}
	first, err := worker(1).Write(t.Context(), people, t.TempDir())
	must(t, err)
	call, err := first.Answers.Intent(t.Context(), question("a"), answers.Send{Run: "night", At: noon})
	must(t, err)
	if left := call.LeaveBefore.Sub(seen); left != lostAfter/2 {
		t.Errorf("a call must leave within %v of the last sign of life, want %v", left, lostAfter/2)
	}
	second, err := worker(3).Write(t.Context(), people, t.TempDir())
	must(t, err)
	must(t, second.Answers.Load(t.Context(), hashesOf("a", "b")))
	if f := (&attempt{Session: second}).find(t, t.Context(), "a"); f.Open != answers.Unknown {
		t.Errorf("found %+v", f)
	}
	if _, err := first.Answers.Intent(t.Context(), question("b"), answers.Send{Run: "night", At: noon}); !errors.Is(err, objects.ErrLockLost) {
		t.Errorf("the first continues: %v, want %v", err, objects.ErrLockLost)
	}
	for name, late := range map[string]*State{"one that is late": worker(2), "another run": b.state(t, "state")} {
		if _, err := late.Claim(t.Context(), people.Service); !errors.Is(err, filelock.ErrLocked) {
			t.Errorf("%s: %v, want %v", name, err, filelock.ErrLocked)
		}
	}
	must(t, first.Close(t.Context())) // it is not its lease
	must(t, second.Close(t.Context()))
}

// A working copy that is renewed has the answers that are loaded then, those that were
// bought before among them, and no others. Open calls and what runs have spent stay.
func TestRenew(t *testing.T) {
	b := newBench(t)
	s := b.state(t, "state")
	_, err := s.Take(t.Context(), people, inOrder(answerTo(people, "a", "{}", noon), answerTo(people, "b", "{}", noon)), []answers.OpenCall{callTo(people, "x", answers.Unknown, noon)})
	must(t, err)
	first, err := s.Write(t.Context(), people, t.TempDir())
	must(t, err)
	a := &attempt{Session: first}
	hurries := 0
	first.DelayWrites(func() bool { hurries++; return true })
	must(t, first.Answers.Load(t.Context(), hashesOf("a", "c", "d")))
	buy := func(key string) {
		t.Helper()
		_, err := a.Answers.Intent(t.Context(), question(key), answers.Send{Run: "night", At: noon})
		must(t, err)
		must(t, a.Answers.Put(t.Context(), question(key), answerTo(people, key, "{}", noon.Add(time.Hour)).Answer))
	}
	buy("c")
	_, err = a.Answers.Intent(t.Context(), question("d"), answers.Send{Run: "night", At: noon})
	must(t, err)
	must(t, a.Answers.Fail(t.Context(), question("d"), answers.Failure{MayBeBilled: true}))

	copied := first.Answers
	must(t, copied.Renew(t.Context()))
	if first.Answers != copied || copied.Unloaded() != 3 {
		t.Errorf("%d answers to load from", copied.Unloaded())
	}
	must(t, copied.Load(t.Context(), hashesOf("b", "c", "e", "x")))
	for key, want := range map[string]answers.Found{"b": {Stored: true}, "c": {Stored: true}, "e": {}, "x": {Open: answers.Unknown}} {
		if got := a.find(t, t.Context(), key); got.Stored != want.Stored || got.Open != want.Open {
			t.Errorf("%s: found %+v, want %+v", key, got, want)
		}
	}
	if _, err := copied.Lookup(t.Context(), people, []string{"a"}, answers.Freshness{}, false, nil); !errors.Is(err, ErrNotLoaded) {
		t.Errorf("an answer of before: %v, want %v", err, ErrNotLoaded)
	}
	before := hurries
	buy("e")
	if hurries == before {
		t.Error("changes are sent without asking whether there is hurry")
	}
	spent, _, err := copied.SumSpent(t.Context(), "night")
	if want := (answers.Spending{Answers: 2, Credits: 4}); err != nil || spent != want || unknownOf(t, copied.session, "night") != 2 {
		t.Errorf("spent %+v, %v, want %+v", spent, err, want)
	}
	must(t, first.Close(t.Context()))
	if got := contentOf(t, t.Context(), s, people); len(got.Items) != 4 || len(got.Calls) != 2 {
		t.Errorf("%d answers and %d open calls in the end, want 4 and 2", len(got.Items), len(got.Calls))
	}
	look, err := s.Look(t.Context(), people, t.TempDir())
	must(t, err)
	must(t, look.Answers.Load(t.Context(), hashesOf("a")))
	must(t, look.Answers.Renew(t.Context()))
	must(t, look.Answers.Load(t.Context(), hashesOf("e")))
	if got := (&attempt{Session: look}).find(t, t.Context(), "e"); !got.Stored {
		t.Errorf("a session that writes nothing: found %+v", got)
	}
	must(t, look.Close(t.Context()))
}

// A renewal that is interrupted leaves everything as it was: what runs have spent, and open calls. No
// manifest is made of a copy that lacks them.
func TestRenewalInterrupted(t *testing.T) {
	b := newBench(t)
	s := b.state(t, "state")
	first, err := s.Write(t.Context(), people, t.TempDir())
	must(t, err)
	must(t, first.Answers.Load(t.Context(), nil))
	_, err = first.Answers.Intent(t.Context(), question("a"), answers.Send{Run: "night", At: noon})
	must(t, err)
	must(t, first.Answers.Put(t.Context(), question("a"), answerTo(people, "a", "{}", noon).Answer))
	_, err = first.Answers.Intent(t.Context(), question("b"), answers.Send{Run: "night", At: noon})
	must(t, err)
	must(t, first.Answers.Fail(t.Context(), question("b"), answers.Failure{MayBeBilled: true}))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := first.Answers.Renew(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want %v", err, context.Canceled)
	}
	must(t, first.Close(t.Context()))
	second, err := s.Write(t.Context(), people, t.TempDir())
	must(t, err)
	spent, open, err := second.Answers.SumSpent(t.Context(), "night")
	if want := (answers.Spending{Answers: 1, Credits: 2}); err != nil || spent != want || len(open) != 1 {
		t.Errorf("spent %+v with %d open calls, %v; want %+v with 1", spent, len(open), err, want)
	}
	must(t, second.Close(t.Context()))
}
