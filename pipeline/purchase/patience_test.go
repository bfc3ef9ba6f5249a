package purchase

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
)

// TestPatience: a wait beyond --give-up-after closes the service if nothing is answered since, and is
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
				store, err := answers.Open(t.TempDir(), answers.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { store.Close() })
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
