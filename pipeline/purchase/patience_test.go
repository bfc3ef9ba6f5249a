package purchase

import (
	"errors"
	"fmt"
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
)

// TestPatience: a wait beyond give_up_after closes the service if nothing is answered since, and is
// otherwise that of its key alone. Without a limit it is waited for, however long it is.
func TestPatience(t *testing.T) {
	for _, c := range []struct {
		name   string
		says   map[string]string // a wait by key; * for all
		until  time.Duration     // the service answers all
		giveUp time.Duration
		want   string // what becomes of the keys a to d
		closed bool
		least  time.Duration
		most   time.Duration
	}{
		{"all are to wait for longer", map[string]string{"*": "1h"}, 1e18, 10 * time.Second, "", true, 0, 5 * time.Second},
		{"all are to wait for less", map[string]string{"*": "3s"}, 7 * time.Second, 10 * time.Second, "matched matched matched matched", false, 7 * time.Second, 20 * time.Second},
		{"one is to wait for longer", map[string]string{"a": "1h"}, 1e18, 10 * time.Second, "unavailable matched matched matched", false, 0, 10 * time.Second},
		{"one for less, for ever", map[string]string{"b": "3s"}, 1e18, 10 * time.Second, "matched unavailable matched matched", false, 7 * time.Second, 20 * time.Second},
		{"two without a word, for ever", map[string]string{"a": "0s", "d": "0s"}, 1e18, 20 * time.Second, "unavailable matched matched unavailable", false, 20 * time.Second, time.Minute},
		{"no limit, and all are to wait", map[string]string{"*": "1h"}, 100 * time.Minute, 0, "matched matched matched matched", false, 100 * time.Minute, 6 * time.Hour},
		{"all without a word, for ever", map[string]string{"*": "0s"}, 1e18, 10 * time.Second, "", true, 10 * time.Second, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				began, byRef := time.Now(), map[string]string{}
				service := answering(func(ref string) (int, string, error) {
					time.Sleep(10 * time.Millisecond)
					wait, all := c.says[byRef[ref]], c.says["*"]
					if wait == "" {
						wait = all
					}
					if wait == "" || time.Since(began) > c.until {
						return 200, `{"resolution":{"id":"res_1","status":"completed"},"lead":{"phone":"+12025550100"}}`, nil
					}
					asked, err := time.ParseDuration(wait)
					if err != nil {
						t.Error(err)
					}
					return 0, "", &resolution.CallError{Class: resolution.Limited, Status: 429, Sent: true, Pace: resolution.Pace{RetryAfter: asked}}
				})
				options := pace.DefaultOptions()
				options.GiveUp = c.giveUp
				b := buyerFrom(t, resolution.NetworkToPhone, store, service, func(r *Remote) { r.Pace, r.Concurrency = pace.New(options), 4 })
				for _, key := range []string{"a", "b", "c", "d"} {
					byRef[answers.Question{Scope: b.scope, Key: key}.Hash().String()] = key
				}
				var keys sync.WaitGroup
				got, errs := make([]string, 4), make([]error, 4)
				// A key that is to wait is asked first, and told so while the others are asked: what was
				// answered before says nothing.
				for _, waits := range []bool{true, false} {
					for i, key := range []string{"a", "b", "c", "d"} {
						if waits != (c.says[key] != "") {
							continue
						}
						keys.Go(func() {
							a, err := ask(t, b, key)
							if got[i], errs[i] = a.Outcome.String(), err; a.Reason != "" {
								got[i] = a.Reason
							}
						})
					}
					time.Sleep(time.Millisecond)
				}
				keys.Wait()
				took := time.Since(began)
				if text := strings.Join(got, " "); !c.closed && text != c.want || c.closed != slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, ErrUnreachable) }) || took < c.least || took > c.most {
					t.Errorf("%q, %v after %v; want %q", text, errs, took, c.want)
				}
				if want := "wants no call before " + began.Add(time.Hour).UTC().Format("2006-01-02T15:0"); c.closed && c.says["*"] == "1h" && !strings.Contains(fmt.Sprint(errs), want) {
					t.Errorf("%v lacks %q", errs, want)
				}
			})
		})
	}
}

// TestRefusedForEver: keys that a service refuses for ever leave their slots to the others, and their
// rows alone fail. If no other was answered since, and they are many, it is the service that refuses.
func TestRefusedForEver(t *testing.T) {
	for _, f := range []struct {
		name        string
		concurrency int
		giveUp      time.Duration
		refuse, of  string // indexes of the refused ones among so many keys
		wait        time.Duration
		passOver    bool
		ends        error
	}{
		{name: "one, first", concurrency: 1, giveUp: time.Minute, refuse: "0", of: "10"},
		{name: "two, first", concurrency: 1, giveUp: time.Minute, refuse: "0 1", of: "10"},
		{name: "two, first, that are told to wait", concurrency: 1, giveUp: time.Minute, refuse: "0 1", of: "10", wait: 5 * time.Second},
		{name: "two, first, that are told to wait for longer", concurrency: 1, giveUp: time.Minute, refuse: "0 1", of: "10", wait: time.Hour},
		{name: "two between others", concurrency: 1, giveUp: time.Minute, refuse: "3 7", of: "10"},
		{name: "two, last", concurrency: 1, giveUp: time.Minute, refuse: "8 9", of: "10"},
		{name: "six, first", concurrency: 1, giveUp: 15 * time.Minute, refuse: "0 1 2 3 4 5", of: "10"},
		{name: "as many as requests in flight", concurrency: 4, giveUp: time.Minute, refuse: "0 1 2 3", of: "20"},
		{name: "as many as slots", concurrency: 4, giveUp: 15 * time.Minute, refuse: "0 1 2 3 4 5 6 7 8", of: "20"},
		{name: "without an end of patience", concurrency: 1, refuse: "0 1", of: "10"},
		{name: "with a next resolver", concurrency: 1, giveUp: time.Minute, refuse: "0 1", of: "10", passOver: true},
		{name: "many, last", concurrency: 1, giveUp: time.Minute, refuse: "4 5 6 7 8 9", of: "10", ends: ErrUnreachable},
		{name: "all", concurrency: 1, giveUp: time.Minute, refuse: "0 1", of: "2", ends: ErrUnreachable},
	} {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, store := laterOf(t)
				var keys []string
				refused, most := map[string]bool{}, 0
				_, _ = fmt.Sscan(f.of, &most)
				for i := range most {
					keys = append(keys, fmt.Sprint("network.example/in/", i))
				}
				for _, i := range strings.Fields(f.refuse) {
					refused["network.example/in/"+i] = true
				}
				byRef, underWay, together := map[string]string{}, atomic.Int64{}, atomic.Int64{}
				options := pace.DefaultOptions()
				options.GiveUp, options.Concurrency = f.giveUp, f.concurrency
				b := buyerFrom(t, resolution.NetworkToPhone, store, answering(func(ref string) (int, string, error) {
					if n := underWay.Add(1); n > together.Load() {
						together.Store(n)
					}
					defer underWay.Add(-1)
					time.Sleep(10 * time.Millisecond)
					if refused[byRef[ref]] {
						return 0, "", &resolution.CallError{Class: resolution.Limited, Status: 429, Sent: true, Pace: resolution.Pace{RetryAfter: f.wait}}
					}
					return 200, `{"lead":{"phone":"+12025550100"}}`, nil
				}), func(r *Remote) {
					r.Pace, r.Concurrency, r.PassOver = pace.New(options), f.concurrency, f.passOver
				})
				for _, key := range keys {
					byRef[answers.Question{Scope: b.scope, Key: key}.Hash().String()] = key
				}
				began := time.Now()
				got, err := askAll(t, b, keys...)
				if !errors.Is(err, f.ends) || together.Load() > int64(f.concurrency) || f.giveUp > 0 && time.Since(began) > 2*f.giveUp {
					t.Fatalf("%v after %v, %d requests together; want %v", err, time.Since(began), together.Load(), f.ends)
				}
				for i, a := range got {
					want := "matched "
					if refused[keys[i]] {
						want = "failed unavailable"
					}
					if a.withheld != nil || f.passOver && a.Outcome == outcome.Skipped { // others may be passed over, too
						continue
					}
					if text := a.Outcome.String() + " " + a.Reason; text != want {
						t.Errorf("%s: %q, want %q", keys[i], text, want)
					}
				}
			})
		})
	}
}
