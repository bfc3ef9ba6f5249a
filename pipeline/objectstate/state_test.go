package objectstate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
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
	"github.com/leadetl/leadetl/resolution"
)

const bucket = "leads"

var update = flag.Bool("update", false, "rewrite testdata")

var (
	noon   = time.Date(2026, 11, 20, 12, 0, 0, 123_000_000, time.UTC)
	people = answers.Scope{Service: "https://leads.example", Operation: resolution.Enrichment}
	others = answers.Scope{Service: "https://leads.example", Operation: resolution.IPToCompany}
)

type bench struct {
	server *s3test.Server
	proxy  *s3test.Proxy
	store  *objects.Store
}

func newBench(t *testing.T) bench {
	t.Helper()
	server := s3test.Start(t, bucket)
	s3test.Setenv(t)
	proxy := s3test.NewProxy(t, server)
	return bench{server, proxy, objects.New(t.Context(), objects.Options{Endpoint: proxy.URL, PathStyle: true, GiveUpAfter: 20 * time.Second})}
}

// state is a state of its own in the bucket, with small files.
func (b bench) state(t interface{ Fatal(...any) }, prefix string) *State {
	s, err := Open(b.store, "s3://"+bucket+"/"+prefix)
	if err != nil {
		t.Fatal(err)
	}
	s.RowsPerFile, s.groupBytes = 7, 300
	return s
}

// folder is where the server keeps the objects of a scope.
func (b bench) folder(s *State, of answers.Scope) string {
	return filepath.Join(b.server.Dir, bucket, s.folder(of).Key)
}

func openFolder(t *testing.T) *answers.Store {
	t.Helper()
	s, err := answers.Open(t.TempDir(), answers.Options{})
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

func must(t interface{ Fatal(...any) }, err error) {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func answerTo(of answers.Scope, key, body string, at time.Time) answers.Item {
	q := answers.Question{Scope: of, Key: key}
	price := int64(len(body))
	i := answers.Item{Hash: q.Hash(), Question: q, Answer: answers.Answer{
		Run: "night", Outcome: answers.Matched, Status: 200, Body: []byte(body), Resolution: "resolution", Request: "request-" + key, Credits: &price, Received: at,
	}}
	if len(body)%3 == 0 {
		i.Outcome, i.Reason, i.Credits = answers.NoMatch, "no_match", nil
	}
	return i
}

func callTo(of answers.Scope, key string, state answers.State, at time.Time) answers.OpenCall {
	q := answers.Question{Scope: of, Key: key}
	c := answers.OpenCall{Hash: q.Hash(), Question: q, Address: "https://x.example/" + key, Run: "night", IdempotencyKey: "key-" + key, Attempts: 2, Sent: at, State: state, MaybeBilled: true, Reason: "timeout", Status: 504}
	if len(key)%2 == 1 {
		c.Body = answers.KeptBody("body of " + key)
	}
	if state == answers.Parked {
		c.Deadline, c.Resolution, c.Request, c.MaybeBilled = at.Add(time.Hour), "resolution-"+key, "request", false
	}
	return c
}

// inOrder yields items as a store would.
func inOrder(some ...answers.Item) iter.Seq2[answers.Item, error] {
	some = slices.SortedFunc(slices.Values(some), func(a, b answers.Item) int { return a.Hash.Compare(b.Hash) })
	return func(yield func(answers.Item, error) bool) {
		for _, i := range some {
			if !yield(i, nil) {
				return
			}
		}
	}
}

// keeper is a folder or a State.
type keeper interface {
	Sorted(ctx context.Context, of answers.Scope) iter.Seq2[answers.Item, error]
	OpenCalls(ctx context.Context, of answers.Scope) ([]answers.OpenCall, error)
	Take(ctx context.Context, of answers.Scope, items iter.Seq2[answers.Item, error], calls []answers.OpenCall) (answers.Taken, error)
	Scopes(ctx context.Context) ([]answers.Scope, error)
}

// content is all that a keeper has of a scope.
type content struct {
	Items []answers.Item
	Calls []answers.OpenCall
}

func contentOf(t interface{ Fatal(...any) }, ctx context.Context, k keeper, of answers.Scope) (c content) {
	for i, err := range k.Sorted(ctx, of) {
		must(t, err)
		if len(i.Body) == 0 {
			i.Body = nil
		}
		c.Items = append(c.Items, i)
	}
	var err error
	c.Calls, err = k.OpenCalls(ctx, of)
	must(t, err)
	return c
}

func copyScope(t interface{ Fatal(...any) }, ctx context.Context, from, to keeper, of answers.Scope) answers.Taken {
	calls, err := from.OpenCalls(ctx, of)
	must(t, err)
	taken, err := to.Take(ctx, of, from.Sorted(ctx, of), calls)
	must(t, err)
	return taken
}

// Whatever comes in whatever order, a folder and S3 hold the same as a map, and
// a copy of either in the other holds the same again.
func TestBothKeepTheSame(t *testing.T) {
	rapidtest.Checks(t, 10)
	b := newBench(t)
	prefixes := 0
	rapid.Check(t, func(t *rapid.T) {
		prefixes++
		dir, err := os.MkdirTemp("", "objectstate")
		must(t, err)
		defer os.RemoveAll(dir)
		local, err := answers.Open(filepath.Join(dir, "local"), answers.Options{})
		must(t, err)
		defer local.Close()
		remote := b.state(t, fmt.Sprintf("model-%d-%d", os.Getpid(), prefixes))
		remote.RowsPerFile = rapid.IntRange(1, 20).Draw(t, "rows in a file")
		items, calls := map[string]answers.Item{}, map[string]answers.OpenCall{}
		keys := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"})
		bodies := rapid.SampledFrom([]string{"", "{}", `{"lead":{"name":"Ann"}}`, "\xff\x00binary", "text\x00", strings.Repeat("long ", 100)})
		states := rapid.SampledFrom([]answers.State{answers.Unknown, answers.Parked})
		at := func() time.Time {
			return noon.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "minute")) * time.Minute)
		}
		for range rapid.IntRange(1, 4).Draw(t, "copies") {
			bring, sent := map[string]answers.Item{}, map[string]answers.OpenCall{}
			for range rapid.IntRange(0, 8).Draw(t, "answers") {
				key := keys.Draw(t, "key")
				bring[key] = answerTo(people, key, bodies.Draw(t, "body"), at())
			}
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				key := keys.Draw(t, "key")
				sent[key] = callTo(people, key, states.Draw(t, "state"), at())
			}
			open := slices.SortedFunc(maps.Values(sent), func(a, b answers.OpenCall) int { return a.Hash.Compare(b.Hash) })
			some := slices.Collect(maps.Values(bring))
			want := answers.Taken{}
			for key, i := range bring {
				if c, found := calls[key]; found && !i.Received.Before(c.Sent) {
					delete(calls, key)
				}
				if there, found := items[key]; !found || there.Received.Before(i.Received) {
					items[key] = i
					want.Answers++
				}
			}
			for key, c := range sent {
				other, found := calls[key]
				i, answered := items[key]
				if found && !other.Sent.Before(c.Sent) || answered && !i.Received.Before(c.Sent) {
					continue
				}
				calls[key] = c
				want.Calls++
			}
			for _, k := range []keeper{local, remote} {
				if taken, err := k.Take(t.Context(), people, inOrder(some...), open); err != nil || taken != want {
					t.Fatalf("%T took %+v, %v; want %+v", k, taken, err, want)
				}
			}
		}
		var model content
		for _, i := range slices.SortedFunc(maps.Values(items), func(a, b answers.Item) int { return a.Hash.Compare(b.Hash) }) {
			if len(i.Body) == 0 {
				i.Body = nil
			}
			model.Items = append(model.Items, i)
		}
		model.Calls = slices.SortedFunc(maps.Values(calls), func(a, b answers.OpenCall) int { return a.Hash.Compare(b.Hash) })
		there, err := answers.Open(filepath.Join(dir, "there"), answers.Options{})
		must(t, err)
		defer there.Close()
		back := b.state(t, fmt.Sprintf("back-%d-%d", os.Getpid(), prefixes))
		copyScope(t, t.Context(), remote, there, people)
		copyScope(t, t.Context(), local, back, people)
		if again := copyScope(t, t.Context(), there, back, people); again != (answers.Taken{}) {
			t.Fatalf("a second copy took %+v", again)
		}
		for name, k := range map[string]keeper{"the folder": local, "S3": remote, "the copy of S3": there, "the copy of the folder": back} {
			if got := contentOf(t, t.Context(), k, people); !reflect.DeepEqual(got, model) {
				t.Fatalf("%s has\n%+v\nwant\n%+v", name, got, model)
			}
		}
		held, err := local.Contents()
		must(t, err)
		one, err := held.Stat(t.Context())
		must(t, err)
		other, err := remote.Stat(t.Context())
		must(t, err)
		if !reflect.DeepEqual(one, other) {
			t.Fatalf("S3 counts %+v, the folder %+v", other, one)
		}
	})
}

// However many copies come one after another, few generations remain, and each
// answer is there once.
func TestGenerationsAreMerged(t *testing.T) {
	b := newBench(t)
	s := b.state(t, "state")
	want := map[string]bool{}
	const copies = 20
	for n := range copies {
		var some []answers.Item
		for k := range 5 {
			key := fmt.Sprintf("key-%d-%d", n, k)
			want[key] = true
			some = append(some, answerTo(people, key, "{}", noon))
		}
		some = append(some, answerTo(people, "again", fmt.Sprint(n), noon.Add(time.Duration(n)*time.Second)))
		taken, err := s.Take(t.Context(), people, inOrder(some...), nil)
		must(t, err)
		if taken.Answers != 6 {
			t.Fatalf("copy %d took %d answers, want 6", n, taken.Answers)
		}
		m, err := s.latest(t.Context(), people)
		must(t, err)
		if got := len(m.generations()); got > maxGenerations {
			t.Fatalf("%d generations after %d copies", got, n+1)
		}
	}
	check := func() {
		t.Helper()
		got := contentOf(t, t.Context(), s, people)
		if len(got.Items) != len(want)+1 {
			t.Fatalf("%d answers, want %d", len(got.Items), len(want)+1)
		}
		for _, i := range got.Items {
			if i.Key == "again" && string(i.Body) != fmt.Sprint(copies-1) || i.Key != "again" && !want[i.Key] {
				t.Errorf("%s has body %s", i.Key, i.Body)
			}
		}
	}
	check()
	before, after, err := s.Compact(t.Context(), people)
	must(t, err)
	if before < 2 || after != (len(want)+1+6)/7 {
		t.Errorf("compacting made %d files of %d", after, before)
	}
	check()
	if again, same, err := s.Compact(t.Context(), people); err != nil || again != same {
		t.Errorf("compacting twice: %d files, then %d, %v", again, same, err)
	}

	// What does not count any more is deleted a day later, and not before.
	files := func() int {
		found, err := os.ReadDir(filepath.Join(b.folder(s, people), "f"))
		must(t, err)
		return len(found)
	}
	if files() <= after {
		t.Fatalf("%d files: those that were merged are gone already", files())
	}
	past := time.Now().Add(-garbageAge - time.Minute)
	must(t, filepath.WalkDir(b.folder(s, people), func(path string, e fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, past, past))
	}))
	if _, err := s.Take(t.Context(), people, inOrder(answerTo(people, "last", "{}", noon)), nil); err != nil {
		t.Fatal(err)
	}
	want["last"] = true
	if files() != after+1 {
		t.Errorf("%d files, want the %d that count", files(), after+1)
	}
	check()
}

// However requests go wrong, a copy is whole.
func TestCopyUnderFaults(t *testing.T) {
	b := newBench(t)
	s := b.state(t, "state")
	var some []answers.Item
	for n := range 30 {
		some = append(some, answerTo(people, fmt.Sprint("key-", n), strings.Repeat("x", n), noon))
	}
	open := []answers.OpenCall{callTo(people, "open", answers.Unknown, noon)}
	random := rand.New(rand.NewPCG(1, 2))
	b.proxy.Do(func(*http.Request) s3test.Fault {
		if random.IntN(4) > 0 {
			return s3test.Fault{}
		}
		return []s3test.Fault{{Kind: s3test.Lose}, {Kind: s3test.Reset}, {Kind: s3test.Cut}, {Kind: s3test.Refuse, Status: 503, Code: "SlowDown"}}[random.IntN(4)]
	})
	lease, err := s.Claim(t.Context(), people.Service)
	must(t, err)
	taken, err := s.Take(t.Context(), people, inOrder(some...), open)
	must(t, err)
	if want := (answers.Taken{Answers: 30, Calls: 1}); taken != want {
		t.Errorf("took %+v, want %+v", taken, want)
	}
	local := openFolder(t)
	copyScope(t, t.Context(), s, local, people)
	must(t, lease.Release())
	b.proxy.Do(nil)
	got := contentOf(t, t.Context(), local, people)
	want := slices.SortedFunc(slices.Values(some), func(a, b answers.Item) int { return a.Hash.Compare(b.Hash) })
	want[slices.IndexFunc(want, func(i answers.Item) bool { return i.Key == "key-0" })].Body = nil
	if !reflect.DeepEqual(got.Items, want) || !reflect.DeepEqual(got.Calls, open) {
		t.Errorf("got %+v", got)
	}
	if c := b.proxy.Counts(); c[s3test.Lose] == 0 || c[s3test.Refuse] == 0 {
		t.Errorf("faults: %v", c)
	}
}

// Two processes do not write about a service at a time; one that slept through
// the loss of its lease publishes nothing.
func TestLease(t *testing.T) {
	b := newBench(t)
	mine, theirs := b.state(t, "state"), b.state(t, "state")
	lease, err := mine.Claim(t.Context(), people.Service, "https://other.example", people.Service)
	must(t, err)
	if _, err := theirs.Claim(t.Context(), people.Service); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("a second claim: %v, want %v", err, filelock.ErrLocked)
	}
	free, err := theirs.Claim(t.Context(), "https://third.example")
	must(t, err)
	must(t, free.Release())
	must(t, lease.Renew(t.Context()))

	// In the middle of a copy, the other one publishes.
	between := func(yield func(answers.Item, error) bool) {
		_, err := theirs.Take(t.Context(), people, inOrder(answerTo(people, "theirs", "{}", noon)), nil)
		must(t, err)
		yield(answerTo(people, "mine", "{}", noon), nil)
	}
	if _, err := mine.Take(t.Context(), people, between, nil); !errors.Is(err, objects.ErrLockLost) {
		t.Errorf("published after another: %v, want %v", err, objects.ErrLockLost)
	}
	if got := contentOf(t, t.Context(), mine, people); len(got.Items) != 1 || got.Items[0].Key != "theirs" {
		t.Errorf("got %+v", got)
	}
	must(t, lease.Release())
	lease, err = theirs.Claim(t.Context(), people.Service)
	must(t, err)
	must(t, lease.Release())
}

// A store that knows no conditional writes is refused, whether it says so or
// not.
func TestConditionalWritesAreNeeded(t *testing.T) {
	written := 0
	for name, decide := range map[string]func(r *http.Request) s3test.Fault{
		"says so": func(r *http.Request) s3test.Fault {
			if r.Header.Get("If-None-Match") != "" || r.Method == http.MethodPut && r.Header.Get("If-Match") != "" {
				return s3test.Fault{Kind: s3test.Refuse, Status: 501, Code: "NotImplemented"}
			}
			return s3test.Fault{}
		},
		"ignores them": func(r *http.Request) s3test.Fault {
			if r.Header.Get("If-None-Match") == "" {
				return s3test.Fault{}
			}
			if written++; written == 1 {
				return s3test.Fault{}
			}
			return s3test.Fault{Kind: s3test.Swallow} // as if it had written over what is there
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.proxy.Do(decide)
			_, err := b.state(t, "state").Claim(t.Context(), people.Service)
			var refused *objects.RefusedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), "does not support conditional writes") {
				t.Errorf("claimed with %v", err)
			}
		})
	}
}

// The same open calls have another file in each manifest: the removal of an earlier one that had
// them may still be on its way.
func TestFilesOfCallsHaveNewNames(t *testing.T) {
	s := newBench(t).state(t, "calls")
	names := map[string]bool{}
	for _, key := range []string{"one", "two"} {
		_, err := s.Take(t.Context(), people, inOrder(answerTo(people, key, "{}", noon)), []answers.OpenCall{callTo(people, "open", answers.Unknown, noon)})
		must(t, err)
		m, err := s.latest(t.Context(), people)
		must(t, err)
		names[m.Calls.Name] = true
	}
	if len(names) != 2 {
		t.Errorf("two manifests with an open call have the files %v", names)
	}
}

// What is damaged is said to be.
func TestDamage(t *testing.T) {
	b := newBench(t)
	for name, damage := range map[string]func(t *testing.T, folder string){
		"a file is missing": func(t *testing.T, folder string) {
			must(t, os.RemoveAll(filepath.Join(folder, "f")))
		},
		"a file is another": func(t *testing.T, folder string) {
			found, err := filepath.Glob(folder + "/f/*")
			must(t, err)
			must(t, os.Truncate(found[0], 40))
		},
		"the calls are others": func(t *testing.T, folder string) {
			found, err := filepath.Glob(folder + "/c/*")
			must(t, err)
			must(t, os.WriteFile(found[0], []byte("{}\n"), 0o644))
		},
		"the manifest is not JSON": func(t *testing.T, folder string) {
			found, err := filepath.Glob(folder + "/v/*")
			must(t, err)
			must(t, os.WriteFile(found[len(found)-1], []byte("no"), 0o644))
		},
		"a digit of the manifest": func(t *testing.T, folder string) {
			found, err := filepath.Glob(folder + "/v/*")
			must(t, err)
			text, err := os.ReadFile(found[len(found)-1])
			must(t, errors.Join(err, os.WriteFile(found[len(found)-1], []byte(strings.Replace(string(text), `"term": 0`, `"term": 1`, 1)), 0o644)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := b.state(t, strings.ReplaceAll(name, " ", "-"))
			_, err := s.Take(t.Context(), people, inOrder(answerTo(people, "canary", "{}", noon)), []answers.OpenCall{callTo(people, "open", answers.Unknown, noon)})
			must(t, err)
			damage(t, b.folder(s, people))
			s.impatient = true
			if _, err = s.Stat(t.Context()); !errors.Is(err, ErrDamaged) || strings.Contains(err.Error(), "canary") {
				t.Errorf("read with %v, want %v", err, ErrDamaged)
			}
			if found, err := s.Inspect(t.Context()); err != nil || len(found.Damages) == 0 {
				t.Errorf("inspected: %+v, %v", found, err)
			}
		})
	}
}

// Scopes are kept apart, and are listed alike. One whose first writer was killed before
// it wrote a manifest is not there yet.
func TestScopes(t *testing.T) {
	b := newBench(t)
	s, local := b.state(t, "deep/er/state/"), openFolder(t)
	killed := &Session{state: s, of: answers.Scope{Service: "https://killed.example", Operation: people.Operation}}
	must(t, killed.fence(t.Context()))
	for _, k := range []keeper{s, local} {
		for _, of := range []answers.Scope{people, others} {
			_, err := k.Take(t.Context(), of, inOrder(answerTo(of, "key", "{}", noon)), nil)
			must(t, err)
		}
		scopes, err := k.Scopes(t.Context())
		if want := []answers.Scope{people, others}; err != nil || !reflect.DeepEqual(scopes, want) {
			t.Errorf("%T: scopes %v, %v; want %v", k, scopes, err, want)
		}
	}
	for _, filter := range []answers.Filter{{}, {Operation: others.Operation}, {Service: "https://none.example"}, {Bodies: true}} {
		var listed [2][]answers.Hash
		for n, list := range []iter.Seq2[answers.Item, error]{s.List(t.Context(), filter), local.List(t.Context(), filter)} {
			for i, err := range list {
				must(t, err)
				listed[n] = append(listed[n], i.Hash)
				if (i.Body != nil) != filter.Bodies {
					t.Errorf("%+v: body %q", filter, i.Body)
				}
			}
		}
		for _, hashes := range listed { // on S3, one scope comes after the other
			slices.SortFunc(hashes, answers.Hash.Compare)
		}
		if !reflect.DeepEqual(listed[0], listed[1]) {
			t.Errorf("%+v: %v on S3, %v in a folder", filter, listed[0], listed[1])
		}
	}
}

// The files are as they were: another version of the program has to read them.
func TestGoldenFile(t *testing.T) {
	b := newBench(t)
	s := b.state(t, "state")
	files, err := s.writeGeneration(t.Context(), people, 1, inOrder(
		answerTo(people, "ann@x.example", `{"lead":{"name":"Ann"}}`, noon), answerTo(people, "bob@x.example", "\xffbinary", noon.Add(time.Hour)),
		answerTo(people, "cy@x.example", "", noon)))
	must(t, err)
	got, err := os.ReadFile(filepath.Join(b.folder(s, people), files[0].Name))
	must(t, err)
	golden := filepath.Join("testdata", "answers.parquet")
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(golden, got, 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if string(got) != string(want) {
		t.Errorf("the file differs from %s; read it with old and new programs before it is replaced", golden)
	}
	if file := files[0]; file.Rows != 3 || file.First >= file.Last || file.Bytes != int64(len(got)) {
		t.Errorf("the manifest would say %+v", file)
	}
}
