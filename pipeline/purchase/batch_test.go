package purchase

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
)

// batching is a service that answers in batches: its function has the key and how often it
// was asked before.
type batching struct {
	answering
	size int
	says func(key string, before int) resolution.Result

	mu       sync.Mutex
	asked    map[string]int
	requests [][]string // the keys of each, sorted
	left     []time.Time
}

func (s *batching) BatchSize(resolution.Operation) int { return s.size }

func (s *batching) DoBatch(_ context.Context, calls []resolution.Call) (results []resolution.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil {
		s.asked = map[string]int{}
	}
	var keys []string
	for _, c := range calls {
		results = append(results, s.says(c.Key, s.asked[c.Key]))
		s.asked[c.Key]++
		keys = append(keys, c.Key)
	}
	slices.Sort(keys)
	s.requests, s.left = append(s.requests, keys), append(s.left, time.Now())
	return results
}

// read is the result with a body.
func read(body string) resolution.Result {
	r, err := client.Read(resolution.NetworkToPhone, 200, []byte(body), nil)
	return resolution.Result{Reply: r, Err: err}
}

// hit is a match, and miss an answer without one.
func hit() resolution.Result  { return read(`{"lead":{"phone":"+12025550100"}}`) }
func miss() resolution.Result { return read(`{"success":true,"data":false,"lead":{}}`) }

// failing is a call that failed.
func failing(class resolution.Class, status int) resolution.Result {
	return resolution.Result{Err: &resolution.CallError{Class: class, Status: status, Sent: true}}
}

func unbilledFailure() resolution.Result {
	return resolution.Result{Err: &resolution.CallError{Class: resolution.Unavailable, Status: 503, Sent: true, Unbilled: true}}
}

// people are keys.
func people(names string) (keys []string) {
	for _, name := range strings.Fields(names) {
		keys = append(keys, "network.example/in/"+name)
	}
	return keys
}

// TestBatchMembersEndApart: a batch that is full leaves at once. Each of its calls ends with its own
// result, and only the calls that have to be are sent again.
func TestBatchMembersEndApart(t *testing.T) {
	alone := resolution.Result{Err: resolution.ErrAskAlone}
	for _, f := range []struct {
		name     string
		b        []resolution.Result // what the call about b gets, one after the other; a is a match, c a miss
		outcome  outcome.Outcome
		reason   string
		requests string // the keys of each
		calls    int64  // counted
		credits  int64
		unknown  int
	}{
		{"answered", []resolution.Result{hit()}, outcome.Matched, "", "abc", 3, 6, 0},
		{"failed, and not billed", []resolution.Result{unbilledFailure(), hit()}, outcome.Matched, "", "abc b", 3, 6, 0},
		{"refused for too many", []resolution.Result{failing(resolution.Limited, 429), miss()}, outcome.NoMatch, resolution.NoMatch, "abc b", 3, 3, 0},
		{"failed, and may be billed", []resolution.Result{failing(resolution.Unavailable, 500), hit()}, outcome.Failed, outcome.ReasonUnknownCall, "abc", 3, 6, 1},
		{"unreadable", []resolution.Result{failing(resolution.Protocol, 200), hit()}, outcome.Failed, outcome.ReasonUnknownCall, "abc", 3, 6, 1},
		{"refused", []resolution.Result{failing(resolution.Invalid, 400), hit()}, outcome.Failed, outcome.ReasonRefused, "abc", 3, 3, 0},
		{"to be asked alone", []resolution.Result{alone, hit()}, outcome.Matched, "", "abc b", 3, 6, 0},
		{"to be asked alone, and refused then", []resolution.Result{alone, failing(resolution.Invalid, 400)}, outcome.Failed, outcome.ReasonRefused, "abc b", 3, 3, 0},
		{"always refused for too many", []resolution.Result{failing(resolution.Limited, 429)}, outcome.Failed, outcome.ReasonUnavailable, "abc" + strings.Repeat(" b", 10), 2, 3, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, _ := openIn(t)
			s := &batching{size: 3, says: func(key string, before int) resolution.Result {
				switch key[len(key)-1] {
				case 'a':
					return hit()
				case 'c':
					return miss()
				}
				return f.b[min(before, len(f.b)-1)]
			}}
			options := pace.DefaultOptions()
			options.GiveUp = time.Minute
			b := buyerFrom(t, resolution.NetworkToPhone, store, s, func(r *Remote) { r.Pace = pace.New(options) })
			began := time.Now()
			got, err := askAll(t, b, people("a b c")...)
			if waited := s.left[0].Sub(began); waited >= batchWait {
				t.Errorf("%s: a full batch waits for %s", f.name, waited)
			}
			if err != nil || got[0].Outcome != outcome.Matched || got[1].Outcome != f.outcome || got[1].Reason != f.reason || got[2].Outcome != outcome.NoMatch {
				t.Errorf("%s: %+v, %v; want b to be %s %s", f.name, got, err, f.outcome, f.reason)
			}
			var requests []string
			for _, keys := range s.requests {
				requests = append(requests, strings.ReplaceAll(strings.Join(keys, ""), "network.example/in/", ""))
			}
			unknown := 0
			for range store.Unknown(t.Context()) {
				unknown++
			}
			calls, credits := b.Spent()
			if all := strings.Join(requests, " "); all != f.requests || calls != f.calls || credits != f.credits || unknown != f.unknown {
				t.Errorf("%s: requests %s, %d calls and %d credits, %d unknown; want %s, %d, %d, %d", f.name, all, calls, credits, unknown, f.requests, f.calls, f.credits, f.unknown)
			}
		})
	}
}

// TestBatchStops: what refuses one call of a batch stops the run after the others are stored.
func TestBatchStops(t *testing.T) {
	for _, f := range []struct {
		class resolution.Class
		want  error
	}{{resolution.NoCredits, ErrNoCredits}, {resolution.Denied, ErrRefused}} {
		synctest.Test(t, func(t *testing.T) {
			store, _ := openIn(t)
			s := &batching{size: 3, says: func(key string, _ int) resolution.Result {
				if strings.HasSuffix(key, "b") {
					return resolution.Result{Err: &resolution.CallError{Class: f.class, Sent: true, General: true}}
				}
				return hit()
			}}
			b := buyerFrom(t, resolution.NetworkToPhone, store, s, nil)
			if _, err := askAll(t, b, people("a b c")...); !errors.Is(err, f.want) {
				t.Errorf("%v, want %v", err, f.want)
			}
			b.Close()
			found, err := store.Lookup(t.Context(), b.scope, people("a b c"), answers.Freshness{}, false, nil)
			if err != nil || !found[0].Stored || found[1].Stored || found[1].Open != "" || !found[2].Stored || len(s.requests) != 1 {
				t.Errorf("%+v after %d requests, %v; want a and c to be stored after 1", found, len(s.requests), err)
			}
		})
	}
}

// TestBatchIsHeldWhole: every call of a batch is in the budget and on disk before the request
// leaves, and a batch shrinks to what the budget has.
func TestBatchIsHeldWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, _ := openIn(t)
		var b *Buyer
		underWay := 0
		s := &batching{size: 10, says: func(key string, _ int) resolution.Result {
			c, err := store.Find(t.Context(), answers.Question{Scope: b.scope, Key: key}.Hash())
			if err != nil || c.State != answers.UnderWay {
				t.Errorf("the request leaves, and a call is %q on disk, %v", c.State, err)
			}
			underWay++
			return miss()
		}}
		b = buyerFrom(t, resolution.NetworkToPhone, store, s, func(r *Remote) { r.Budget.MaxCredits = 11 })
		if got, err := askAll(t, b, people("a b c d e")...); err != nil || len(got) != 5 || underWay != 5 {
			t.Errorf("%d answers, %v; want 5", len(got), err)
		}
		if len(s.requests) != 2 || len(s.requests[0]) != 3 || len(s.requests[1]) != 2 {
			t.Errorf("requests %v; want 3 keys, which 11 credits pay at 3 each, and then the rest", s.requests)
		}
	})
}

// TestDuplicatesShareNoBatch: a key is in a batch once, however many rows ask it.
func TestDuplicatesShareNoBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, _ := openIn(t)
		s := &batching{size: 10, says: func(string, int) resolution.Result { return hit() }}
		b := buyerFrom(t, resolution.NetworkToPhone, store, s, nil)
		var askers sync.WaitGroup
		for range 3 {
			askers.Go(func() {
				if _, err := askAll(t, b, people("a a b")...); err != nil {
					t.Error(err)
				}
			})
		}
		askers.Wait()
		if len(s.requests) != 1 || len(s.requests[0]) != 2 {
			t.Errorf("requests %v, want one of two keys", s.requests)
		}
	})
}

// TestOutageTakesCallsOneByOne: a request to a service that is down has one call, since each
// may be billed and lost.
func TestOutageTakesCallsOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, _ := openIn(t)
		back := time.Now().Add(time.Hour)
		s := &batching{size: 5, says: func(string, int) resolution.Result {
			if time.Now().Before(back) {
				return unbilledFailure()
			}
			return hit()
		}}
		b := buyerFrom(t, resolution.NetworkToPhone, store, s, nil)
		got, err := askAll(t, b, people("a b c d e")...)
		if err != nil || slices.ContainsFunc(got, func(a Result) bool { return a.Outcome != outcome.Matched }) {
			t.Errorf("%+v, %v", got, err)
		}
		down := pace.DefaultOptions().DeadAfter
		for i, keys := range s.requests {
			if i >= down && s.left[i].Before(back) && len(keys) != 1 {
				t.Errorf("request %d, to a service that is down, has %d calls", i+1, len(keys))
			}
		}
	})
}

// TestBatchesUseTheWholeLimit: of a limit in requests or in keys, 95 % get through in each
// minute, the first included, and not one batch more than it allows.
func TestBatchesUseTheWholeLimit(t *testing.T) {
	for _, f := range []struct {
		name  string
		rate  float64 // a second
		keys  bool    // it counts keys
		size  int     // of a batch
		limit int     // keys a minute
	}{
		{"100 requests a minute", 100. / 60, false, 100, 10_000},
		{"6,000 keys a minute", 100, true, 100, 6_000},
		{"50 keys a minute", 50. / 60, true, 100, 50},
		{"120 keys a minute, two at a time", 2, true, 2, 120},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, _ := openIn(t)
			s := &batching{size: f.size, says: func(string, int) resolution.Result { return miss() }}
			b := buyerFrom(t, resolution.NetworkToPhone, store, s, func(r *Remote) {
				o := pace.DefaultOptions()
				o.Concurrency, o.Rate, o.Keys = 8, f.rate, f.keys
				r.Pace, r.Concurrency = pace.New(o), o.Concurrency
			})
			began := time.Now()
			var parts sync.WaitGroup
			for part := range 4 {
				parts.Go(func() {
					var keys []string
					for i := range max(f.limit/2, 100) {
						keys = append(keys, fmt.Sprintf("network.example/in/%d-%d", part, i))
					}
					if _, err := askAll(t, b, keys...); err != nil {
						t.Error(err)
					}
				})
			}
			parts.Wait()
			minutes := [2]int{}
			for i, keys := range s.requests {
				if minute := int(s.left[i].Sub(began) / time.Minute); minute < len(minutes) {
					minutes[minute] += len(keys)
				}
			}
			if f.limit < f.size { // less than a batch
				minutes[0] = (minutes[0] + minutes[1]) / 2
				minutes[1] = minutes[0]
			}
			for _, keys := range minutes {
				if least := f.limit * 95 / 100; keys < least || keys > f.limit+f.size {
					t.Errorf("%s: keys by minute %v; want %d to %d", f.name, minutes, least, f.limit+f.size)
				}
			}
		})
	}
}

// TestBatchSharesItsGroups: the intents of a batch are stored together, and so are its answers.
func TestBatchSharesItsGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		groups, before := 0, 0
		store := openFarAway(t, &groups, inAMinute)
		s := &batching{size: 100}
		s.says = func(string, int) resolution.Result {
			if before == 0 {
				before = groups
			}
			return miss()
		}
		b := buyerFrom(t, resolution.NetworkToPhone, store, s, nil)
		var keys []string
		for i := range 100 {
			keys = append(keys, fmt.Sprint("network.example/in/", i))
		}
		if _, err := askAll(t, b, keys...); err != nil || len(s.requests) != 1 {
			t.Fatalf("%d requests, %v", len(s.requests), err)
		}
		if before > 2 || groups > 4 { // the first change of each does not wait for the others
			t.Errorf("%d groups until the request left, and %d in all; want at most 2 and 4", before, groups)
		}
	})
}
