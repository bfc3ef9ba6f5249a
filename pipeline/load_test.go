package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/internal/badservice"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/rapidtest"
	"github.com/leadetl/leadetl/internal/s3test"
	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/objectstate"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
)

// watched is a store of answers that are elsewhere. It notes what is loaded and what
// is looked up.
type watched struct {
	*answers.Store
	elsewhere int64 // how many there are

	looksUp func(n int) // is told of the nth look-up; may be nil

	mu            sync.Mutex
	lookups       int
	all           bool
	loaded, asked map[answers.Hash]bool // of this group
	before        map[answers.Hash]bool // asked in groups before
	groups, most  int                   // the largest of them
}

var _ purchase.Loader = (*watched)(nil)

func (w *watched) Unloaded() int64 {
	if w.all || len(w.loaded) > 0 {
		return 0
	}
	return w.elsewhere
}

func (w *watched) Load(_ context.Context, some iter.Seq2[answers.Hash, error]) error {
	if w.all {
		return nil
	}
	if len(w.loaded)+len(w.asked) > 0 {
		return errors.New("loaded twice, or after a question")
	}
	if w.all = some == nil; w.all {
		return nil
	}
	last := answers.Hash{}
	for h, err := range some {
		if err != nil || h.Compare(last) <= 0 {
			return errors.Join(err, errors.New("hashes are not in ascending order"))
		}
		w.loaded[h], last = true, h
	}
	return nil
}

// Renew ends a group, in which exactly what was loaded was asked.
func (w *watched) Renew(context.Context) error {
	if !w.all && !maps.Equal(w.loaded, w.asked) {
		return fmt.Errorf("%d questions are loaded, and %d are looked up", len(w.loaded), len(w.asked))
	}
	w.end()
	w.all, w.loaded, w.asked = false, map[answers.Hash]bool{}, map[answers.Hash]bool{}
	return nil
}

func (w *watched) end() {
	w.groups, w.most = w.groups+1, max(w.most, len(w.asked))
	maps.Copy(w.before, w.asked)
}

func (w *watched) Lookup(ctx context.Context, scope answers.Scope, keys []string, f answers.Freshness, bodies bool, into []answers.Found) ([]answers.Found, error) {
	w.mu.Lock()
	for _, key := range keys {
		w.asked[answers.Question{Scope: scope, Key: key}.Hash()] = true
	}
	w.lookups++
	if w.looksUp != nil {
		w.looksUp(w.lookups)
	}
	w.mu.Unlock()
	return w.Store.Lookup(ctx, scope, keys, f, bodies, into)
}

func (w *watched) LookupHashes(ctx context.Context, hashes []answers.Hash, f answers.Freshness, into []answers.Found) ([]answers.Found, error) {
	w.mu.Lock()
	for _, h := range hashes {
		w.asked[h] = true
	}
	w.mu.Unlock()
	return w.Store.LookupHashes(ctx, hashes, f, into)
}

// watch runs or plans offline, and returns what was loaded and asked.
func (s setup) watch(t tb, elsewhere int64, use func(*job.Run) error) *watched {
	store, err := answers.Open(filepath.Join(s.stateDir(), "answers"), answers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{Store: store, elsewhere: elsewhere, looksUp: s.looksUp, loaded: map[answers.Hash]bool{}, asked: map[answers.Hash]bool{}, before: map[answers.Hash]bool{}}
	s.remote = &purchase.Remote{
		Read: client.Read, Name: "https://leads.example", Answers: w, Offline: true, Budget: purchase.NoBudget,
		Price: purchase.Prices[resolution.Enrichment], Counters: &stats.CallCounters{},
	}
	s.answers = "service"
	if err := errors.Join(s.open(context.Background(), use), store.Close()); err != nil {
		t.Fatal(err)
	}
	w.end()
	return w
}

func do(run *job.Run) error {
	_, err := pipeline.Do(context.Background(), run)
	return err
}

func planOnly(run *job.Run) error {
	_, err := pipeline.MakePlan(context.Background(), run)
	return err
}

// cells are identifiers of each kind: some in several spellings, some invalid, some
// that are never asked about, and some of their own for each row (%d).
var cells = map[resolution.Identifier][]string{
	resolution.Email: {
		"a%d@mail.example", "ada@mail.example", " ADA@mail.example ", "bob+x@mail.example", "b.o.b@gmail.com", "nobody", "", "eve@mail.example", strings.Repeat("ab", 32), "zoë@mail.example",
	},
	resolution.NetworkURL: {
		"linkedin.com/in/a%d", "https://www.linkedin.com/in/ada", "linkedin.com/in/ADA/?x=1", "https://uk.linkedin.com/pub/jane-doe/a7/576/b50", "https://www.linkedin.com/company/acme",
		"network.example/in/bob", "", "x", "https://network.example/in/Bob/",
	},
	resolution.IP: {"9.9.9.%d", "8.8.8.8", " 8.8.4.4", "10.0.0.1", "::ffff:8.8.8.8", "2606:4700::1111", "127.0.0.1", "300.1.1.1", "", "1.1.1.1", "64:ff9b::101:101"},
}

// Whatever the input, the operation and the parts that are there already: a run loads
// the stored answers to exactly those questions that it looks up. If one were missing,
// it would be bought again. A plan loads the same.
func TestLoadsWhatItAsks(t *testing.T) {
	top, n := t.TempDir(), 0
	rapidtest.Checks(t, 10) // each is three runs on disk
	rapid.Check(t, func(rt *rapid.T) {
		n++
		s := setup{dir: fmt.Sprint(top, "/", n), op: rapid.SampledFrom(resolution.SingleRecord).Draw(rt, "operation")}
		defer os.RemoveAll(s.dir)
		column := map[resolution.Identifier]string{resolution.Email: "email", resolution.NetworkURL: "network_url", resolution.IP: "ip"}[s.op.Identifier()]
		cell := rapid.SampledFrom(cells[s.op.Identifier()])
		for file := range rapid.IntRange(1, 2).Draw(rt, "files") {
			text := "id," + column + "\n"
			for i, c := range rapid.SliceOfN(cell, 0, 20).Draw(rt, "cells") {
				text += fmt.Sprintf("%d,%s\n", i, strings.ReplaceAll(c, "%d", fmt.Sprint(i)))
			}
			s.input(rt, fmt.Sprintf("%d.csv", file), text+"malformed\n")
		}
		s.rowsPerPart, s.batchRows = rapid.IntRange(4, 20).Draw(rt, "rows per part"), rapid.IntRange(1, 30).Draw(rt, "batch rows")
		s.workers = rapid.IntRange(1, 3).Draw(rt, "workers")
		if rapid.Bool().Draw(rt, "suppress") {
			s.suppress = listOf(rt, "ada@mail.example", "linkedin.com/in/ada")
		}
		sample := rapid.SampledFrom([]int{0, 0, 5}).Draw(rt, "sample")
		s.job = func(j *job.Job) { j.Sample = sample }
		same := func(what string, w *watched) {
			if w.all || !maps.Equal(w.loaded, w.asked) {
				rt.Fatalf("%s: everything is loaded: %t; %d questions are loaded, and %d are looked up", what, w.all, len(w.loaded), len(w.asked))
			}
		}
		s.copied = rapid.SampledFrom([]int{0, 3, 9, 25}).Draw(rt, "copied rows")
		planned, ran := s.watch(rt, 1<<40, planOnly), s.watch(rt, 1<<40, do)
		same("plan", planned)
		same("run", ran)
		if !maps.Equal(planned.before, ran.before) {
			rt.Errorf("the plan asks %d questions, the run %d", len(planned.before), len(ran.before))
		}
		if most := max(s.copied, s.rowsPerPart); s.copied > 0 && ran.most > most {
			rt.Errorf("the answers to %d questions are on the disk at a time, want %d at most", ran.most, most)
		}
		made := slices.Sorted(maps.Keys(parts(content(rt, s.outDir()))))
		for _, name := range made[:rapid.IntRange(1, len(made)).Draw(rt, "lost")] {
			if err := os.Remove(filepath.Join(s.outDir(), name)); err != nil {
				rt.Fatal(err)
			}
		}
		same("parts that are there", s.watch(rt, 1<<40, do))
	})
}

// Everything is loaded where that is cheaper, and where it is not known before the
// first row which questions are asked; nothing where nothing is left to do.
func TestLoadsEverything(t *testing.T) {
	piped := setup{in: []string{"-"}, stdin: "email\nada@mail.example\n"}
	searches := setup{op: resolution.KeywordToLead}
	for _, c := range []struct {
		name      string
		setup     setup
		elsewhere int64
		use       func(*job.Run) error
		want      bool
	}{
		{"few", setup{}, 100_000, do, true},
		{"many", setup{}, 100_001, do, false},
		{"standard input", piped, 100_001, do, true},
		{"a plan of few", setup{}, 100_000, planOnly, true},
		{"a plan of many", setup{}, 100_001, planOnly, false},
		{"a plan of standard input", piped, 100_001, planOnly, true},
		{"searches", searches, 100_001, do, true},
		{"a plan of searches", searches, 100_001, planOnly, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.setup.dir = t.TempDir()
			c.setup.input(t, "a.csv", "email,keywords\nada@mail.example,crm\n")
			if w := c.setup.watch(t, c.elsewhere, c.use); w.all != c.want || len(w.asked) == 0 {
				t.Errorf("everything is loaded: %t, want %t; %d questions", w.all, c.want, len(w.asked))
			}
		})
	}
	s := setup{dir: t.TempDir()}
	s.input(t, "a.csv", emails(0, 10))
	s.watch(t, 1<<40, do)
	for _, use := range []func(*job.Run) error{do, planOnly} {
		if w := s.watch(t, 1<<40, use); w.all || len(w.loaded)+len(w.asked) > 0 {
			t.Errorf("a finished dataset: %d questions are loaded", len(w.loaded))
		}
	}
}

// A run whose suppression lists have grown looks up recorded rows too, also those
// that it does not ask about.
func TestLoadsForLongerLists(t *testing.T) {
	s := five(t, t.TempDir())
	s.suppress = listOf(t, drop(3))
	ctx, cancel := context.WithCancel(t.Context())
	s.looksUp = func(n int) {
		if n == 5 {
			cancel()
		}
	}
	w := s.watch(t, 1<<40, func(run *job.Run) error {
		if _, err := pipeline.Do(ctx, run); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("it ends with %w", err)
		}
		return nil
	})
	if w.all || len(w.loaded) < 40 {
		t.Fatalf("%d questions are loaded at first", len(w.loaded))
	}
	s.looksUp, s.suppress = nil, listOf(t, drop(3), drop(4))
	if w := s.watch(t, 1<<40, planOnly); !w.all {
		t.Error("a plan does not load everything")
	}
	if w := s.watch(t, 1<<40, do); !w.all {
		t.Error("a run does not load everything")
	}
}

// TestGroups: a run with its state on S3 has the answers to some rows at a time on its
// disk. It buys each question once, also those that come back in later groups, writes what
// it would write with all of them there, and its budget counts all groups.
func TestGroups(t *testing.T) {
	const distinct, rows, copied = 30, 60, 10
	server := s3test.Start(t, "leads")
	s3test.Setenv(t)
	state, err := objectstate.Open(objects.New(t.Context(), objects.Options{Endpoint: server.URL, PathStyle: true, GiveUpAfter: 20 * time.Second}), "s3://leads/state/")
	if err != nil {
		t.Fatal(err)
	}
	o := badservice.DefaultOptions()
	o.Matched = 1
	a, books := newAsking(t, 0, o)
	var list strings.Builder
	list.WriteString("network_url\n")
	for i := range rows {
		fmt.Fprintf(&list, "https://linkedin.com/in/canary-%d\n", i%distinct)
	}
	a.input(t, "in.csv", list.String())
	a.rowsPerPart, a.copied, a.workers = 5, copied, 2
	var mu sync.Mutex
	most := int64(0)
	run := func(session *objectstate.Session, change func(*purchase.Remote)) *finish.Result {
		t.Helper()
		look := func() {
			st, err := session.Answers.Store.Contents()
			if err != nil {
				t.Error(err)
				return
			}
			s, err := st.Stat(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			stored := int64(0)
			for _, tally := range s.Tallies {
				stored += tally.Answers
			}
			mu.Lock()
			defer mu.Unlock()
			most = max(most, stored)
		}
		a.remote = func(r *purchase.Remote) {
			r.Answers = session.Answers
			r.Service = looking{r.Service, look}
			change(r)
		}
		result, _, err := a.run(t, t.Context())
		if err := errors.Join(err, session.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		return result
	}
	scope := answers.Scope{Service: a.url, Operation: a.op}
	session, err := state.Write(t.Context(), scope, filepath.Join(t.TempDir(), "copy"))
	if err != nil {
		t.Fatal(err)
	}
	bought := run(session, func(r *purchase.Remote) { r.Budget.MaxCalls = distinct })
	if books.Seen() != distinct || bought.Totals.Matched != rows || most == 0 || most > 2*copied { // where few are stored, all are loaded
		t.Errorf("%d calls for %d questions, %d of %d rows matched, %d answers on the disk at a time", books.Seen(), distinct, bought.Totals.Matched, rows, most)
	}
	want := parts(content(t, a.outDir()))
	for _, a.copied = range []int{copied, 1000} {
		a.out = fmt.Sprint("again-", a.copied)
		if session, err = state.Look(t.Context(), scope, filepath.Join(t.TempDir(), "copy")); err != nil {
			t.Fatal(err)
		}
		run(session, func(r *purchase.Remote) { r.Service, r.Offline = nil, true })
		requireSame(t, parts(content(t, a.outDir())), want)
	}
}

// looking looks at something before each call.
type looking struct {
	purchase.Service
	look func()
}

func (l looking) Do(ctx context.Context, c resolution.Call) (resolution.Reply, error) {
	l.look()
	return l.Service.Do(ctx, c)
}
