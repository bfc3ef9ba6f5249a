package purchase

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
)

// TestLostCalls has a service that answers some questions, and then lets calls fail
// after seconds, which it may bill: no more of them become unknown than may be in flight.
func TestLostCalls(t *testing.T) {
	const places, healthy, questions = 8, 20, 100
	for _, c := range []struct {
		name    string
		failure resolution.CallError
	}{
		{"503 of a router", resolution.CallError{Class: resolution.Unavailable, Status: 503, Sent: true}},
		{"time-out", resolution.CallError{Class: resolution.Unavailable, Sent: true, Detail: "no answer in time"}},
		{"502", resolution.CallError{Class: resolution.Unavailable, Status: 502, Sent: true}},
		{"unreadable answer", resolution.CallError{Class: resolution.Protocol, Status: 200, Sent: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := openStore(t)
				var mu sync.Mutex
				calls := 0
				service := answering(func(string) (int, string, error) {
					mu.Lock()
					calls++
					down := calls > healthy
					mu.Unlock()
					if !down {
						time.Sleep(100 * time.Millisecond)
						return 200, `{"lead":{"phone":"+12025550100"}}`, nil
					}
					time.Sleep(5 * time.Second)
					return 0, "", &c.failure
				})
				options := pace.DefaultOptions()
				options.Concurrency, options.GiveUp = places, 20*time.Second
				b := buyerFrom(t, resolution.NetworkToPhone, store, service, func(r *Remote) {
					r.Concurrency, r.Pace = places, pace.New(options)
				})
				var all sync.WaitGroup
				for i := range questions {
					all.Go(func() { _, _ = ask(t, b, fmt.Sprint(i)) })
				}
				all.Wait()
				unknown := 0
				for _, err := range store.Unknown(t.Context()) {
					if unknown++; err != nil {
						t.Fatal(err)
					}
				}
				if unknown < 3 || unknown > places {
					t.Errorf("%d unknown calls, want at most %d", unknown, places)
				}
			})
		})
	}
}
