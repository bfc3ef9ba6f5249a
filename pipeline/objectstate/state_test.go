package objectstate

import (
	"bytes"
	"context"
	"errors"
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
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/internal/testkit/rapidtest"
	"github.com/leadetl/leadetl/internal/testkit/s3test"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
)

const bucket = "leads"

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

// state is a state of its own in the bucket.
func (b bench) state(t interface{ Fatal(...any) }, prefix string) *State {
	s, err := Open(b.store, "s3://"+bucket+"/"+prefix)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// folder is where the server keeps the answers of a service.
func (b bench) folder(s *State, service string) string {
	return filepath.Join(b.server.Dir, bucket, s.at.Key, answersFolder, shortHash(service))
}

func openFolder(t *testing.T) *answers.Store {
	t.Helper()
	s, err := answers.Open(context.Background(), answers.InFolder(t.TempDir()), answers.Options{})
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

// content is all that a keeper has of a scope.
type content struct {
	Items []answers.Item
	Calls []answers.OpenCall
}

func contentOf(t interface{ Fatal(...any) }, ctx context.Context, k answers.Keeper, of answers.Scope) (c content) {
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

func copyScope(t interface{ Fatal(...any) }, ctx context.Context, from, to answers.Keeper, of answers.Scope) answers.Taken {
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
		local, err := answers.Open(context.Background(), answers.InFolder(filepath.Join(dir, "local")), answers.Options{})
		must(t, err)
		defer local.Close()
		remote := answers.NewStores(b.state(t, fmt.Sprintf("model-%d-%d", os.Getpid(), prefixes)), answers.Options{RowsPerFile: rapid.IntRange(1, 20).Draw(t, "rows in a file"), Generations: 2})
		defer remote.Close()
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
			for _, k := range []answers.Keeper{local, remote} {
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
		there, err := answers.Open(context.Background(), answers.InFolder(filepath.Join(dir, "there")), answers.Options{})
		must(t, err)
		defer there.Close()
		back := answers.NewStores(b.state(t, fmt.Sprintf("back-%d-%d", os.Getpid(), prefixes)), answers.Options{})
		defer back.Close()
		copyScope(t, t.Context(), remote, there, people)
		copyScope(t, t.Context(), local, back, people)
		if again := copyScope(t, t.Context(), there, back, people); again != (answers.Taken{}) {
			t.Fatalf("a second copy took %+v", again)
		}
		for name, k := range map[string]answers.Keeper{"the folder": local, "S3": remote, "the copy of S3": there, "the copy of the folder": back} {
			if got := contentOf(t, t.Context(), k, people); !reflect.DeepEqual(got, model) {
				t.Fatalf("%s has\n%+v\nwant\n%+v", name, got, model)
			}
		}
		held, err := local.Contents()
		must(t, err)
		one, err := held.Stat(t.Context())
		must(t, err)
		far, err := remote.Contents(t.Context())
		must(t, err)
		other, err := far.Stat(t.Context())
		must(t, err)
		must(t, errors.Join(held.Close(), far.Close()))
		if !reflect.DeepEqual(one, other) {
			t.Fatalf("S3 counts %+v, the folder %+v", other, one)
		}
	})
}

// TestFilesAreKeptADay: what does not count any more is deleted a day later, and not before: somebody may read it.
func TestFilesAreKeptADay(t *testing.T) {
	b := newBench(t)
	state := b.state(t, "state")
	at := b.folder(state, people.Service)
	files := func() int {
		found, err := filepath.Glob(filepath.Join(at, "answers-*.keyed"))
		must(t, err)
		return len(found)
	}
	put := func(name string) {
		stores := answers.NewStores(state, answers.Options{Generations: 2})
		_, err := stores.Take(t.Context(), people, inOrder(answerTo(people, name, "{}", noon)), nil)
		must(t, errors.Join(err, stores.Close()))
	}
	for n := range 5 {
		put(fmt.Sprint("key-", n))
	}
	stores := answers.NewStores(state, answers.Options{})
	stored, err := stores.Of(t.Context(), people.Service)
	must(t, err)
	_, after, err := stored.Compact(t.Context())
	must(t, errors.Join(err, stores.Close()))
	if after != 1 || files() < 6 {
		t.Fatalf("%d files count, and %d are there", after, files())
	}
	past := time.Now().Add(-25 * time.Hour)
	must(t, filepath.WalkDir(at, func(path string, e fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, past, past))
	}))
	put("last")
	if files() != 2 {
		t.Errorf("%d files, want the 2 that count", files())
	}
}

// However requests go wrong, a copy is whole.
func TestCopyUnderFaults(t *testing.T) {
	b := newBench(t)
	s := answers.NewStores(b.state(t, "state"), answers.Options{RowsPerFile: 7})
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
	taken, err := s.Take(t.Context(), people, inOrder(some...), open)
	must(t, err)
	if want := (answers.Taken{Answers: 30, Calls: 1}); taken != want {
		t.Errorf("took %+v, want %+v", taken, want)
	}
	local := openFolder(t)
	copyScope(t, t.Context(), s, local, people)
	must(t, s.Close())
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

// TestLease: two processes do not write about a service at a time. One that slept through the loss of its lease
// stores nothing more, but what it has bought, for who takes over next.
func TestLease(t *testing.T) {
	b := newBench(t)
	mine, theirs := b.state(t, "state"), b.state(t, "state")
	theirs.Waits, theirs.pollEvery = true, 10*time.Millisecond
	first := answers.NewStores(mine, answers.Options{})
	stored, err := first.Of(t.Context(), people.Service)
	must(t, err)
	beat := time.AfterFunc(50*time.Millisecond, func() {
		at := filepath.Join(b.server.Dir, bucket, mine.leaseOf(people.Service).Key)
		_ = os.Chtimes(at, time.Now(), time.Now().Add(2*time.Second)) // a store tells seconds
	})
	defer beat.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := answers.NewStores(theirs, answers.Options{}).Of(ctx, people.Service); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("a second process: %v, want %v", err, filelock.ErrLocked)
	}
	other := answers.NewStores(theirs, answers.Options{})
	_, err = other.Of(t.Context(), "https://other.example")
	must(t, errors.Join(err, other.Close()))
	q := answers.Question{Scope: people, Key: "canary"}
	_, err = stored.Intent(t.Context(), q, answers.Send{Run: "night", At: noon})
	must(t, err)
	must(t, os.Remove(filepath.Join(b.server.Dir, bucket, mine.leaseOf(people.Service).Key)))
	second := answers.NewStores(theirs, answers.Options{})
	if calls, err := second.OpenCalls(t.Context(), people); err != nil || len(calls) != 1 || calls[0].State != answers.Unknown {
		t.Errorf("who takes over has the calls %+v, %v", calls, err)
	}
	if err := stored.Put(t.Context(), q, answerTo(people, "canary", "{}", noon).Answer); !errors.Is(err, objects.ErrLockLost) {
		t.Errorf("stored after another has taken over: %v, want %v", err, objects.ErrLockLost)
	}
	_ = first.Close()
	must(t, second.Close())
	third := answers.NewStores(theirs, answers.Options{})
	if got := contentOf(t, t.Context(), third, people); len(got.Items) != 1 || len(got.Calls) != 0 {
		t.Errorf("the answer that came too late: %+v", got)
	}
	must(t, third.Close())
}

// TestRequests: a run asks S3 for little: 60 requests for a hundred keys that are not stored, and two for each that is.
func TestRequests(t *testing.T) {
	const stored = 60_000
	b := newBench(t)
	state := b.state(t, "state")
	all := make([]answers.Item, stored)
	for n := range all {
		all[n] = answerTo(people, fmt.Sprint("key-", n), strings.Repeat("x", 300), noon)
	}
	filled := answers.NewStores(state, answers.Options{RowsPerFile: 10_000})
	_, err := filled.Take(t.Context(), people, inOrder(all...), nil)
	must(t, errors.Join(err, filled.Close()))
	run := func(known int) (requests int) {
		b.proxy.Do(func(*http.Request) s3test.Fault { requests++; return s3test.Fault{} })
		defer b.proxy.Do(nil)
		stores := answers.NewStores(b.state(t, "state"), answers.Options{})
		s, err := stores.Of(t.Context(), people.Service)
		must(t, err)
		var keys []string
		for n := range 100 {
			keys = append(keys, fmt.Sprint("new-", n))
		}
		for n := range known {
			keys = append(keys, fmt.Sprint("key-", 997*n))
		}
		found, err := s.Lookup(t.Context(), people, keys, answers.Freshness{}, true, nil)
		must(t, err)
		for n, f := range found {
			if f.Stored != (n >= 100) {
				t.Errorf("%s is stored: %t", keys[n], f.Stored)
			}
		}
		must(t, stores.Close())
		return requests
	}
	none, some := run(0), run(50)
	t.Logf("%d requests for a hundred keys that are not stored, %d more for 50 that are", none, some-none)
	if none > 60 || some-none > 100 {
		t.Errorf("%d requests for a hundred keys that are not stored, %d more for 50 that are; want at most 60 and 100", none, some-none)
	}
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
			_, err := answers.NewStores(b.state(t, "state"), answers.Options{}).Of(t.Context(), people.Service)
			var refused *objects.RefusedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), "does not support conditional writes") {
				t.Errorf("claimed with %v", err)
			}
		})
	}
}

// TestScopes: scopes are kept apart, and are listed as in a folder. A service whose first writer was killed before it
// wrote a manifest is not there yet.
func TestScopes(t *testing.T) {
	b := newBench(t)
	state, local := b.state(t, "deep/er/state/"), openFolder(t)
	killed := state.Of("https://killed.example")
	must(t, store.NewLog(killed, "log").Begin(t.Context(), nil, func() error { return nil }))
	remote := answers.NewStores(state, answers.Options{})
	elsewhere := answers.Scope{Service: "https://elsewhere.example", Operation: people.Operation}
	for _, k := range []answers.Keeper{remote, local} {
		for _, of := range []answers.Scope{people, others, elsewhere} {
			_, err := k.Take(t.Context(), of, inOrder(answerTo(of, "key", "{}", noon)), nil)
			must(t, err)
		}
	}
	must(t, remote.Close())
	held, err := local.Contents()
	must(t, err)
	defer held.Close()
	places, err := state.All(t.Context())
	must(t, err)
	far, err := answers.OpenContents(t.Context(), places...)
	must(t, err)
	defer far.Close()
	for _, c := range []*answers.Contents{held, far} {
		scopes, err := c.Scopes(t.Context())
		if want := []answers.Scope{elsewhere, people, others}; err != nil || !reflect.DeepEqual(scopes, want) {
			t.Errorf("scopes %v, %v; want %v", scopes, err, want)
		}
	}
	for _, filter := range []answers.Filter{{}, {Operation: others.Operation}, {Service: "https://none.example"}, {Bodies: true}} {
		var listed [2][]answers.Hash
		for n, c := range []*answers.Contents{held, far} {
			for i, err := range c.List(t.Context(), filter) {
				must(t, err)
				listed[n] = append(listed[n], i.Hash)
				if (i.Body != nil) != filter.Bodies {
					t.Errorf("%+v: body %q", filter, i.Body)
				}
			}
		}
		if !reflect.DeepEqual(listed[0], listed[1]) {
			t.Errorf("%+v: %v on S3, %v in a folder", filter, listed[1], listed[0])
		}
	}
}

// TestBesideNothing: a run lists what is open anywhere also where another service's first writer was killed before it
// wrote a manifest.
func TestBesideNothing(t *testing.T) {
	state := newBench(t).state(t, "state")
	must(t, store.NewLog(state.Of("https://killed.example"), "log").Begin(t.Context(), nil, func() error { return nil }))
	stores := answers.NewStores(state, answers.Options{})
	s, err := stores.Of(t.Context(), people.Service)
	must(t, err)
	for _, err := range s.OpenAnywhere(t.Context()) {
		must(t, err)
	}
	_, err = s.SpentSince(t.Context(), "2026-01-01")
	must(t, errors.Join(err, stores.Close()))
}

// TestForget: no byte of what is forgotten is left in the bucket.
func TestForget(t *testing.T) {
	b := newBench(t)
	state := b.state(t, "state")
	stores := answers.NewStores(state, answers.Options{RowsPerFile: 3})
	_, err := stores.Take(t.Context(), people, inOrder(
		answerTo(people, "a", "{}", noon), answerTo(people, "b", "{}", noon), answerTo(people, "canary", `"canary"`, noon), answerTo(people, "d", "{}", noon),
	), []answers.OpenCall{callTo(people, "canary-open", answers.Unknown, noon)})
	must(t, err)
	s, err := stores.Of(t.Context(), people.Service)
	must(t, err)
	_, err = s.Intent(t.Context(), answers.Question{Scope: people, Key: "canary-log"}, answers.Send{Run: "night", At: noon})
	must(t, err)
	done, err := s.Forget(t.Context(), answers.Choice{
		Answer: func(i *answers.Item) bool { return strings.Contains(i.Key, "canary") }, Call: func(c *answers.OpenCall) bool { return strings.Contains(c.Key, "canary") }, EvenOpen: true,
	})
	if must(t, err); done.Questions != 3 || done.Open != 2 {
		t.Errorf("forgot %+v", done)
	}
	must(t, filepath.WalkDir(b.server.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("canary")) {
			t.Errorf("%s still has it", path)
		}
		return err
	}))
	must(t, stores.Close())
	if got := contentOf(t, t.Context(), answers.NewStores(state, answers.Options{}), people); len(got.Items) != 3 || len(got.Calls) != 0 {
		t.Errorf("left: %+v", got)
	}
}
