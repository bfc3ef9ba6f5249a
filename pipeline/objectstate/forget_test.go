package objectstate

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/s3test"
	"github.com/leadetl/leadetl/pipeline/answers"
)

// forgetIn forgets from a state with three generations of answers, of which
// "again" has one in each, a call of an answered question, and a process that
// died with an answer in the log. It returns the keys that are left, and those of
// open calls.
func forgetIn(t *testing.T, s *State, c Choice) (done Forgotten, keys, calls []string) {
	t.Helper()
	for n := range 3 {
		some := []answers.Item{answerTo(people, "again", fmt.Sprintf(`{"name":"version %d"}`, n), noon.Add(time.Duration(n)*time.Hour))}
		for k := range 20 {
			some = append(some, answerTo(people, fmt.Sprintf("key-%d-%d", n, k), fmt.Sprintf(`{"name":"person %d"}`, k), noon.Add(time.Duration(n)*time.Hour)))
		}
		_, err := s.Take(t.Context(), people, inOrder(some...), []answers.OpenCall{callTo(people, "key-0-0", answers.Unknown, noon.Add(24*time.Hour)), callTo(people, "open", answers.Unknown, noon)})
		must(t, err)
	}
	dead := takeOver(t, t.Context(), s, t.TempDir(), "night")
	_, err := dead.Answers.Intent(t.Context(), question("logged"), answers.Send{Run: "night", At: noon})
	must(t, err)
	must(t, dead.Answers.Put(t.Context(), question("logged"), answerTo(people, "logged", `{"name":"person 1"}`, noon.Add(72*time.Hour)).Answer))
	must(t, dead.Answers.Close())

	s.Scratch = t.TempDir()
	done, err = s.Forget(t.Context(), people, c)
	must(t, err)
	if left, err := os.ReadDir(s.Scratch); err != nil || len(left) > 0 {
		t.Errorf("working copies are left: %v, %v", left, err)
	}
	left := contentOf(t, t.Context(), s, people)
	for _, i := range left.Items {
		keys = append(keys, i.Key)
	}
	for _, c := range left.Calls {
		calls = append(calls, c.Key)
	}
	slices.Sort(calls)
	return done, keys, calls
}

// What is forgotten is gone from the state, with every object that held it, and
// everything else is there.
func TestForget(t *testing.T) {
	b := newBench(t)
	names := func(text string) func(answers.Item) bool {
		return func(i answers.Item) bool { return strings.Contains(string(i.Body), text) }
	}
	hashes := func(keys ...string) (all []answers.Hash) {
		for _, key := range keys {
			all = append(all, question(key).Hash())
		}
		return all
	}
	for n, c := range []struct {
		name   string
		choice Choice
		want   Forgotten
		gone   []string // keys
		calls  []string // left
	}{
		{"nothing", Choice{Hashes: hashes("no such")}, Forgotten{}, nil, []string{"key-0-0", "open"}},
		{"by hash", Choice{Hashes: hashes("again", "logged", "key-1-7", "no such")}, Forgotten{Questions: 3}, []string{"again", "logged", "key-1-7"}, []string{"key-0-0", "open"}},
		{"with an open call", Choice{Hashes: hashes("key-0-0", "open")}, Forgotten{Kept: hashes("key-0-0", "open")}, nil, []string{"key-0-0", "open"}},
		{"even with an open call", Choice{Hashes: hashes("key-0-0", "open"), EvenOpen: true}, Forgotten{Questions: 2, Open: 2}, []string{"key-0-0"}, nil},
		{"by what answers say", Choice{Answer: names(`"person 1"`)}, Forgotten{Questions: 4}, []string{"key-0-1", "key-1-1", "key-2-1", "logged"}, []string{"key-0-0", "open"}},
		{"what the newest answer says, and not an older one in its place", Choice{Answer: names("version 2")}, Forgotten{Questions: 1}, []string{"again"}, []string{"key-0-0", "open"}},
		{"an open call by its key", Choice{Answer: names("nothing"), Call: func(c answers.OpenCall) bool { return c.Key == "open" }, EvenOpen: true}, Forgotten{Questions: 1, Open: 1}, nil, []string{"key-0-0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := b.state(t, fmt.Sprint("state-", n))
			s.RowsPerFile = 25
			done, keys, calls := forgetIn(t, s, c.choice)
			slices.SortFunc(c.want.Kept, answers.Hash.Compare)
			if done.Questions != c.want.Questions || done.Open != c.want.Open || !slices.Equal(done.Kept, c.want.Kept) {
				t.Errorf("done %+v, want %+v", done, c.want)
			}
			if len(keys) != 62-len(c.gone) || slices.ContainsFunc(c.gone, func(key string) bool { return slices.Contains(keys, key) }) {
				t.Errorf("%d answers are left, want %d without %q", len(keys), 62-len(c.gone), c.gone)
			}
			if !slices.Equal(calls, c.calls) {
				t.Errorf("the open calls are %q, want %q", calls, c.calls)
			}
			requireNothingElse(t, b, s)
			if spent := must2(s.latest(t.Context(), people)).ByRun["night"]; spent.Answers != 1 {
				t.Errorf("spent %+v", spent)
			}
		})
	}
}

func must2[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// requireNothingElse makes sure that a scope has one manifest, what that names,
// and fences.
func requireNothingElse(t *testing.T, b bench, s *State) {
	t.Helper()
	m, err := s.latest(t.Context(), people)
	must(t, err)
	want := []string{manifestName(m.Number)}
	for _, f := range m.Files {
		want = append(want, f.Name)
	}
	if m.Calls != nil {
		want = append(want, m.Calls.Name)
	}
	var got []string
	for info, err := range b.store.List(t.Context(), s.folder(people)) {
		must(t, err)
		if name := strings.TrimPrefix(info.Key, s.folder(people).Key); !strings.HasPrefix(name, "log/") || info.Size > maxFenceBytes {
			got = append(got, name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("there are %q, want %q", got, want)
	}
}

// In a bucket that keeps versions, the earlier ones go too.
func TestForgetVersions(t *testing.T) {
	server := s3test.StartVersioned(t, bucket)
	s3test.Setenv(t)
	store := objects.New(t.Context(), objects.Options{Endpoint: server.URL, PathStyle: true, GiveUpAfter: 20 * time.Second})
	b := bench{server: server, store: store}
	s := b.state(t, "state")
	if keeps, err := s.KeepsVersions(t.Context()); err != nil || !keeps {
		t.Errorf("a bucket with versions: %v, %v", keeps, err)
	}
	done, _, _ := forgetIn(t, s, Choice{Hashes: []answers.Hash{question("again").Hash()}, Versions: true})
	if done.Questions != 1 {
		t.Errorf("done %+v", done)
	}
	requireNothingElse(t, b, s)
	if versions, err := server.Versions(t, bucket); err != nil || len(versions) > len(must2(objectsOf(t.Context(), store, s))) {
		t.Errorf("there are the versions %q, %v", versions, err)
	}
	plain := newBench(t)
	if keeps, err := plain.state(t, "state").KeepsVersions(t.Context()); err != nil || keeps {
		t.Errorf("a bucket without versions: %v, %v", keeps, err)
	}
}

func objectsOf(ctx context.Context, store *objects.Store, s *State) (all []string, err error) {
	for info, err := range store.List(ctx, s.at) {
		if err != nil {
			return nil, err
		}
		all = append(all, info.Key)
	}
	return all, nil
}
