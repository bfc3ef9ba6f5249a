package objectstate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
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

// attempt is one process of a run, alive or believed dead.
type attempt struct {
	*Session
	run   string
	keys  []string        // that it may ask about; its copy has the answers to no others
	calls map[string]bool // that it has sent, without an answer so far
}

// takeOver starts an attempt on another machine, without asking whether the one
// before is dead: its lease may have expired.
func takeOver(t interface{ Fatal(...any) }, ctx context.Context, s *State, dir, run string, keys ...string) *attempt {
	x := &Session{state: s, of: people}
	must(t, x.takeOver(ctx, dir))
	var some Hashes
	if keys != nil {
		some = hashesOf(keys...)
	}
	must(t, x.Answers.Load(ctx, some))
	return &attempt{x, run, keys, map[string]bool{}}
}

func question(key string) answers.Question { return answers.Question{Scope: people, Key: key} }

// find is what an attempt's own copy knows of a key.
func (a *attempt) find(t interface{ Fatal(...any) }, ctx context.Context, key string) answers.Found {
	found, err := a.Answers.Lookup(ctx, people, []string{key}, answers.Freshness{}, false, nil)
	must(t, err)
	return found[0]
}

// Whatever two and more attempts do, in any order, when they crash, sleep, lose
// answers of S3 and wake up late: no key is called twice, unless its call is
// open and is sent again under the same idempotency key; and every answer that
// an attempt was told is stored is there in the end.
func TestLogModel(t *testing.T) {
	rapidtest.Checks(t, 10)
	b := newBench(t)
	dirs, states := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		states++
		uri := fmt.Sprintf("log-%d-%d", os.Getpid(), states)
		idempotent := rapid.Bool().Draw(t, "idempotent")
		sent, stored, received := map[string][]string{}, map[string]bool{}, map[string]bool{} // by key: idempotency keys, …
		var attempts []*attempt
		defer func() {
			b.proxy.Do(nil)
			for _, a := range attempts {
				_ = a.Answers.Close()
			}
		}()
		begin := func(keys ...string) *attempt {
			a := takeOver(t, t.Context(), b.state(t, uri), filepath.Join(dirs, fmt.Sprintf("%d-%d", states, len(attempts))), "run", keys...)
			attempts = append(attempts, a)
			return a
		}
		keys := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		// An attempt's copy has all answers, or those to the keys that it asks about.
		some := func(t *rapid.T) []string { return rapid.SliceOfNDistinct(keys, 0, 4, rapid.ID).Draw(t, "keys") }
		begin(some(t)...)
		// Late attempts are as likely as the one that has the log.
		one := func(t *rapid.T) *attempt { return attempts[rapid.IntRange(0, len(attempts)-1).Draw(t, "attempt")] }
		clock := 0
		now := func() time.Time { clock++; return noon.Add(time.Duration(clock) * time.Second) }
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				a, key := one(t), keys.Draw(t, "key")
				if a.keys != nil && !slices.Contains(a.keys, key) {
					return
				}
				f := a.find(t, t.Context(), key)
				again := f.Open == answers.Unknown
				if f.Stored || f.Open == answers.UnderWay || again && !idempotent {
					return // as the buyer decides
				}
				call, err := a.Answers.Intent(t.Context(), question(key), answers.Send{Run: a.run, At: now(), Again: again})
				if errors.Is(err, objects.ErrLockLost) {
					return
				}
				must(t, err)
				if before := sent[key]; len(before) > 0 && (!again || before[len(before)-1] != call.IdempotencyKey) {
					t.Fatalf("key %s is called again, open %v: %v, then %s", key, again, before, call.IdempotencyKey)
				}
				if stored[key] {
					t.Fatalf("key %s is called again, and has an answer", key)
				}
				sent[key] = append(sent[key], call.IdempotencyKey)
				a.calls[key] = true
			},
			"answer": func(t *rapid.T) {
				a, key := one(t), keys.Draw(t, "key")
				if !a.calls[key] {
					return
				}
				delete(a.calls, key)
				received[key] = true
				i := answerTo(people, key, "{}", now())
				err := a.Answers.Place(t.Context(), question(key), i.Answer, nil)
				switch {
				case err == nil:
					stored[key] = true
				case !errors.Is(err, objects.ErrLockLost):
					t.Fatalf("an answer is not stored: %v", err)
				}
			},
			"fail": func(t *rapid.T) { // surely not billed
				a, key := one(t), keys.Draw(t, "key")
				if !a.calls[key] {
					return
				}
				delete(a.calls, key)
				err := a.Answers.Fail(t.Context(), question(key), answers.Failure{Reason: "limited"})
				switch {
				case err == nil && a.find(t, t.Context(), key).Open == "":
					delete(sent, key) // it may be called anew
				case err != nil && !errors.Is(err, objects.ErrLockLost):
					t.Fatalf("a failure is not stored: %v", err)
				}
			},
			"take over": func(t *rapid.T) {
				if len(attempts) < 6 {
					begin(some(t)...)
				}
			},
			"seal": func(t *rapid.T) {
				if err := one(t).seal(t.Context()); err != nil && !errors.Is(err, objects.ErrLockLost) {
					t.Fatalf("seal: %v", err)
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
		b.proxy.Do(nil)
		last := begin()
		for key := range received {
			if f := last.find(t, t.Context(), key); !f.Stored {
				t.Fatalf("the answer to %s is lost: open %q", key, f.Open)
			}
		}
		for key, calls := range sent {
			if f := last.find(t, t.Context(), key); len(calls) > 0 && !f.Stored && f.Open != answers.Unknown {
				t.Fatalf("the call of %s is forgotten", key)
			}
		}
		copied, err := answers.Open(filepath.Join(dirs, fmt.Sprint(states)), answers.Options{})
		must(t, err)
		defer copied.Close()
		copyScope(t, t.Context(), b.state(t, uri), copied, people)
		if got, want := contentOf(t, t.Context(), b.state(t, uri), people), contentOf(t, t.Context(), copied, people); len(got.Items) != len(want.Items) {
			t.Fatalf("S3 has %+v, the copy %+v", got, want)
		}
	})
}

// A log that grows goes into files by itself while it is written, and nothing of
// it is left but fences.
func TestSealing(t *testing.T) {
	b := newBench(t)
	s := b.state(t, "state")
	s.SealSegments = 10
	x, err := s.Write(t.Context(), people, t.TempDir())
	must(t, err)
	for n := range 100 {
		key := fmt.Sprint("key-", n)
		_, err := x.Answers.Intent(t.Context(), question(key), answers.Send{Run: "night", At: noon})
		must(t, err)
		if n%10 == 0 {
			continue // stays open
		}
		must(t, x.Answers.Put(t.Context(), question(key), answerTo(people, key, "{}", noon).Answer))
	}
	reader := b.state(t, "state")
	if st, err := reader.Stat(t.Context()); err != nil || st.Tallies[0].Answers != 90 || st.Unknown != 10 {
		t.Errorf("beside the run: %+v, %v", st, err)
	}
	must(t, x.Close(t.Context()))
	m, err := s.latest(t.Context(), people)
	must(t, err)
	if m.Number < 3 || m.Spent.ByRun["night"].Answers != 90 {
		t.Errorf("the manifest is %+v", m)
	}
	left, err := os.ReadDir(filepath.Join(b.folder(s, people), "log"))
	must(t, err)
	if len(left) != 1 {
		t.Errorf("%d segments are left, want the fence", len(left))
	}
	next, err := b.state(t, "state").Write(t.Context(), people, t.TempDir())
	must(t, err)
	spent, _, err := next.Answers.SumSpent(t.Context(), "night")
	if want := (answers.Spending{Answers: 90, Credits: 180}); err != nil || spent != want || unknownOf(t, next, "night") != 10 {
		t.Errorf("the next session finds spent %+v, %v; want %+v", spent, err, want)
	}
	// Another scope of the state knows of it, also while this one's log is open.
	must(t, next.Answers.Put(t.Context(), question("one more"), answerTo(people, "one more", "{}", noon).Answer))
	other, err := b.state(t, "state").Look(t.Context(), answers.Scope{Service: people.Service, Operation: resolution.IPToCompany}, t.TempDir())
	must(t, err)
	since, err := other.Answers.SpentSince(t.Context(), answers.DayOf(noon))
	if want := []answers.DaySpending{{Day: answers.DayOf(noon), Scope: people, Spending: answers.Spending{Answers: 91, Credits: 182}}}; err != nil || !slices.Equal(since, want) {
		t.Errorf("of another scope: %+v, %v; want %+v", since, err, want)
	}
	if since, err = other.Answers.SpentSince(t.Context(), answers.DayOf(noon.AddDate(0, 0, 1))); len(since) != 0 || err != nil {
		t.Errorf("since the day after: %+v, %v", since, err)
	}
	open := 0
	for _, err := range other.Answers.OpenAnywhere(t.Context()) {
		must(t, err)
		open++
	}
	if open != 10 {
		t.Errorf("%d open calls, want 10", open)
	}
	must(t, errors.Join(other.Close(t.Context()), next.Close(t.Context())))
}

// An intent may be used for a shorter time than a lease takes to expire: whoever
// sleeps longer makes no call with it.
func TestIntentsExpire(t *testing.T) {
	b := newBench(t)
	a := takeOver(t, t.Context(), b.state(t, "state"), t.TempDir(), "run")
	defer a.Answers.Close()
	before := time.Now()
	call, err := a.Answers.Intent(t.Context(), question("a"), answers.Send{Run: "run", At: noon})
	must(t, err)
	if call.LeaveBefore != call.LeaveBefore.Round(0) {
		t.Errorf("%v is not of the wall clock alone, which goes on while the machine sleeps", call.LeaveBefore)
	}
	if call.LeaveBefore.Before(before) || call.LeaveBefore.After(before.Add(objects.LockExpires*3/4)) {
		t.Errorf("a call must leave within %v, a lease expires after %v", call.LeaveBefore.Sub(before), objects.LockExpires)
	}
}

// The age of an idempotency key counts from its first intent, whoever takes the log over,
// from its segments or from a manifest.
func TestKeysKeepTheirAge(t *testing.T) {
	b := newBench(t)
	first, forgotten, again := noon, noon.Add(10*time.Minute), false
	for hour := range 4 {
		a := takeOver(t, t.Context(), b.state(t, "state"), t.TempDir(), "run", "a")
		if f := a.find(t, t.Context(), "a"); again && (!f.FirstSent.Equal(first) || !f.Deadline.Equal(forgotten)) {
			t.Errorf("process %d: first sent at %s and forgotten at %s, want %s and %s", hour, f.FirstSent, f.Deadline, first, forgotten)
		}
		at := noon.Add(time.Duration(hour) * time.Hour)
		_, err := a.Answers.Intent(t.Context(), question("a"), answers.Send{Run: "run", At: at, Again: again})
		must(t, err)
		must(t, a.Answers.SetKeyWindow(t.Context(), people, 10*time.Minute))
		again = true
		if hour%2 == 0 {
			must(t, a.Answers.Close()) // it dies
		} else {
			must(t, a.Close(t.Context()))
		}
	}
}

// A damaged log is not taken for an empty one.
func TestDamagedLog(t *testing.T) {
	b := newBench(t)
	for name, damage := range map[string]func(t *testing.T, segments []string){
		"one is missing": func(t *testing.T, segments []string) { must(t, os.Remove(segments[1])) },
		"one is cut":     func(t *testing.T, segments []string) { must(t, os.Truncate(segments[1], 30)) },
		"one is empty":   func(t *testing.T, segments []string) { must(t, os.Truncate(segments[2], 0)) },
		"one is another": func(t *testing.T, segments []string) {
			data, err := os.ReadFile(segments[1])
			must(t, err)
			data[len(data)/2]++
			must(t, os.WriteFile(segments[1], data, 0o644))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := b.state(t, strings.ReplaceAll(name, " ", "-"))
			a := takeOver(t, t.Context(), s, t.TempDir(), "run")
			for _, key := range []string{"canary-a", "canary-b", "canary-c"} {
				_, err := a.Answers.Intent(t.Context(), question(key), answers.Send{Run: "run", At: noon})
				must(t, err)
			}
			must(t, a.Answers.Close())
			segments, err := filepath.Glob(b.folder(s, people) + "/log/*")
			must(t, err)
			slices.Sort(segments)
			damage(t, segments)
			s.impatient = true
			if err := (&Session{state: s, of: people}).takeOver(t.Context(), t.TempDir()); !errors.Is(err, ErrDamaged) || strings.Contains(err.Error(), "canary") {
				t.Errorf("taken over with %v, want %v", err, ErrDamaged)
			}
		})
	}
}

// A run waits for a lease whose holder may be dead, and not for one that lives.
func TestWaitForLease(t *testing.T) {
	b := newBench(t)
	lease := filepath.Join(b.server.Dir, bucket, "state/lease", shortHash(people.Service)+".json")
	held := func(beat string) {
		t.Helper()
		must(t, os.MkdirAll(filepath.Dir(lease), 0o755))
		must(t, os.WriteFile(lease, []byte(`{"holder":"other","process":"other","host":"elsewhere","pid":7,"beat":`+beat+`}`), 0o644))
		if beat != "1" {
			later := time.Now().Add(2 * time.Second)
			must(t, os.Chtimes(lease, later, later))
		}
	}
	s := b.state(t, "state")
	s.pollEvery = 10 * time.Millisecond
	open := func() error {
		x, err := s.Write(t.Context(), people, t.TempDir())
		if err == nil {
			err = x.Close(t.Context())
		}
		return err
	}
	held("1")
	beats := 1
	b.proxy.Do(func(*http.Request) s3test.Fault {
		if beats++; beats == 20 {
			held("2")
		}
		return s3test.Fault{}
	})
	if err := open(); !errors.Is(err, filelock.ErrLocked) || !strings.Contains(err.Error(), "process 7 on elsewhere") {
		t.Errorf("a holder that lives: %v, want %v", err, filelock.ErrLocked)
	}
	requests := 0
	b.proxy.Do(func(*http.Request) s3test.Fault {
		if requests++; requests == 20 {
			past := time.Now().Add(-time.Hour)
			must(t, os.Chtimes(lease, past, past))
		}
		return s3test.Fault{}
	})
	if err := open(); err != nil {
		t.Errorf("a holder that died: %v", err)
	}
	b.proxy.Do(nil)
	x, err := s.Write(t.Context(), people, t.TempDir())
	must(t, err)
	ours, err := os.ReadFile(lease)
	must(t, err)
	must(t, x.Close(t.Context()))
	must(t, os.MkdirAll(filepath.Dir(lease), 0o755))
	must(t, os.WriteFile(lease, regexp.MustCompile(`"pid":\d+`).ReplaceAll(ours, []byte(`"pid":2147483600`)), 0o644))
	if err := open(); err != nil {
		t.Errorf("a holder of this host that is gone: %v", err)
	}
	if _, err := os.Stat(lease); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lease is left: %v", err)
	}
}

// unknownOf counts the unknown calls of a run.
func unknownOf(t *testing.T, x *Session, run string) (n int) {
	t.Helper()
	for c, err := range x.Answers.Unknown(t.Context()) {
		if must(t, err); c.Run == run {
			n++
		}
	}
	return n
}

// A fence in the place of a segment that is in files, the last one or an earlier one, has no effect: it
// is repeated at the end of the log.
func TestFenceIsPassed(t *testing.T) {
	for _, keys := range [][]string{{"b"}, {"a", "b"}} {
		b := newBench(t)
		a := takeOver(t, t.Context(), b.state(t, "state"), t.TempDir(), "run")
		passed := a.log.next
		for _, key := range keys {
			_, err := a.Answers.Intent(t.Context(), question(key), answers.Send{Run: "run", At: noon})
			must(t, err)
		}
		must(t, a.seal(t.Context()))

		s := b.state(t, "state")
		x := &Session{state: s, of: people, manifest: &manifest{}, log: &logWriter{state: s, ctx: t.Context(), of: people, next: passed}}
		must(t, x.log.fence())
		must(t, x.takeOver(t.Context(), t.TempDir()))
		must(t, x.Answers.Load(t.Context(), nil))
		if _, err := a.Answers.Intent(t.Context(), question("c"), answers.Send{Run: "run", At: noon}); !errors.Is(err, objects.ErrLockLost) {
			t.Errorf("%d segments: the one before continues: %v, want %v", len(keys), err, objects.ErrLockLost)
		}
		if f := (&attempt{Session: x}).find(t, t.Context(), "b"); f.Open != answers.Unknown {
			t.Errorf("found %+v", f)
		}
		must(t, x.Close(t.Context()))
		must(t, a.Answers.Close())
	}
}

// A process takes over from one that never stops to write.
func TestTakeOverFromABusyWriter(t *testing.T) {
	b := newBench(t)
	a := takeOver(t, t.Context(), b.state(t, "state"), t.TempDir(), "run")
	begun, ended := make(chan struct{}), make(chan error)
	go func() {
		for n := 0; ; n++ {
			if _, err := a.Answers.Intent(t.Context(), question(fmt.Sprint("key-", n)), answers.Send{Run: "run", At: noon}); err != nil {
				ended <- err
				return
			}
			if n == 3 {
				close(begun)
			}
		}
	}()
	<-begun
	x := &Session{state: b.state(t, "state"), of: people}
	must(t, x.takeOver(t.Context(), t.TempDir()))
	if err := <-ended; !errors.Is(err, objects.ErrLockLost) {
		t.Errorf("the one before ends with %v, want %v", err, objects.ErrLockLost)
	}
	must(t, x.Close(t.Context()))
	must(t, a.Answers.Close())
}

// A writer that ends removes its segments while the next one does.
func TestSegmentsAreRemovedByTwo(t *testing.T) {
	b := newBench(t)
	s := b.state(t, "state")
	takeOver(t, t.Context(), s, t.TempDir(), "run")
	removed := 0
	for info, err := range s.store.List(t.Context(), s.folder(people).Below("log/")) {
		must(t, err)
		must(t, os.Remove(filepath.Join(b.server.Dir, bucket, info.Key)))
		must(t, s.removeUnlessFence(t.Context(), info))
		removed++
	}
	if removed == 0 {
		t.Error("the log has no segment")
	}
}
