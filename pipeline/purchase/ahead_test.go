package purchase

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
)

// aheadBuyer is a buyer of 64 places whose changes take 4 ms to the disk, and
// answers 50 ms. The clock is synctest's.
type aheadBuyer struct {
	*Buyer
	store       *answers.Store
	keys        []string
	hashes      []answers.Hash
	inFlight    atomic.Int64
	maxInFlight atomic.Int64
	maxOpen     atomic.Int64 // at the end of a group of changes: what a kill would leave
}

const aheadPlaces = 64

func newAheadBuyer(t *testing.T, calls int, options pace.Options, serve func(call int64) error) *aheadBuyer {
	t.Helper()
	store, err := answers.Open(t.TempDir(), answers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	a := &aheadBuyer{store: store}
	options.Concurrency = aheadPlaces
	var asked atomic.Int64
	a.Buyer = buyerFrom(t, resolution.NetworkToPhone, store, answering(func(string) (int, string, error) {
		raise(&a.maxInFlight, a.inFlight.Add(1))
		defer a.inFlight.Add(-1)
		time.Sleep(50 * time.Millisecond)
		return 200, `{"lead":{"phone":"+12025550100"}}`, serve(asked.Add(1))
	}), func(r *Remote) { r.Pace, r.Concurrency = pace.New(options), aheadPlaces })
	for i := range calls {
		a.keys = append(a.keys, fmt.Sprintf("network.example/in/person-%d", i))
		a.hashes = append(a.hashes, answers.Question{Scope: a.scope, Key: a.keys[i]}.Hash())
	}
	store.ReplicateTo(func(answers.Group) error {
		raise(&a.maxOpen, a.open(t))
		time.Sleep(4 * time.Millisecond)
		return nil
	}, time.Minute)
	return a
}

// raise makes most at least n.
func raise(most *atomic.Int64, n int64) {
	for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
	}
}

// open counts the calls that have an intent on disk, and no end.
func (a *aheadBuyer) open(t *testing.T) (n int64) {
	t.Helper()
	for _, h := range a.hashes {
		switch _, err := a.store.Find(t.Context(), h); {
		case err == nil:
			n++
		case !errors.Is(err, answers.ErrNoCall):
			t.Error(err)
		}
	}
	return n
}

// Intents that are written ahead keep the places in use, although each takes a tenth
// of the time of an answer. At most an eighth as many as there are places are written:
// so many more calls are unknown after a kill.
func TestIntentsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const started, calls = 500, 2000
		var from, to time.Time
		a := newAheadBuyer(t, calls, pace.DefaultOptions(), func(call int64) error {
			switch call {
			case started:
				from = time.Now()
			case calls:
				to = time.Now()
			}
			return nil
		})
		if _, err := a.Answer(t.Context(), a.keys); err != nil {
			t.Fatal(err)
		}
		share := (calls - started) / to.Sub(from).Seconds() / (aheadPlaces / 0.05)
		t.Logf("%.3f of concurrency / latency, at most %d calls in flight and %d open", share, a.maxInFlight.Load(), a.maxOpen.Load())
		if share < 0.96 { // 0.89 if each place waits for its intent
			t.Errorf("%.3f of concurrency / latency", share)
		}
		if open := a.maxOpen.Load(); a.maxInFlight.Load() != aheadPlaces || open <= aheadPlaces || open > aheadPlaces+aheadPlaces/8 {
			t.Errorf("%d calls in flight, want %d; %d open on disk, want more, by an eighth at most", a.maxInFlight.Load(), aheadPlaces, open)
		}
	})
}

// Under a rate limit no intent is written ahead.
func TestNoIntentsAheadUnderARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := pace.DefaultOptions()
		o.Rate = 1200
		a := newAheadBuyer(t, 1000, o, func(int64) error { return nil })
		if _, err := a.Answer(t.Context(), a.keys); err != nil {
			t.Fatal(err)
		}
		if open := a.maxOpen.Load(); open > aheadPlaces {
			t.Errorf("%d calls were open on disk, with %d places", open, aheadPlaces)
		}
	})
}

// Intents that were written ahead are taken back when calls stop to leave.
func TestIntentsAheadAreTakenBack(t *testing.T) {
	enough := errors.New("enough")
	for _, c := range []struct {
		name string
		why  error // from the 500th call on; nil: the run is stopped
	}{
		{"stopped", nil},
		{"refused", &resolution.CallError{Class: resolution.Limited, Status: 429, Pace: resolution.Pace{RetryAfter: time.Minute}, Sent: true}},
		{"a pause", &resolution.CallError{Class: resolution.Unavailable, Status: 503, Pace: resolution.Pace{RetryAfter: time.Minute}, Sent: true}},
		{"an outage", &resolution.CallError{Class: resolution.Unavailable}},
		{"out of credits", &resolution.CallError{Class: resolution.NoCredits, Status: 402, Sent: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAheadBuyer(t, 1500, pace.DefaultOptions(), func(call int64) error {
					if call < 500 {
						return nil
					}
					return c.why
				})
				if c.why == nil {
					time.AfterFunc(time.Second/2, func() { a.Stop(enough) })
				}
				done := make(chan error, 1)
				go func() {
					_, err := a.Answer(t.Context(), a.keys)
					done <- err
				}()
				time.Sleep(3 * time.Second) // calls ended, pauses did not
				probes := int64(0)
				if c.name == "an outage" {
					probes = 1
				}
				if open := a.open(t); open > probes {
					t.Errorf("%d calls are open while none leave", open)
				}
				if a.maxOpen.Load() <= aheadPlaces {
					t.Errorf("%d calls were open at most: no intent was written ahead", a.maxOpen.Load())
				}
				a.Stop(enough)
				if err := <-done; err == nil {
					t.Error("all questions were answered")
				}
				a.Close()
				calls, credits := a.Spent()
				spent, err := a.store.SumSpent(t.Context(), "night")
				if want := (answers.Spending{Answers: calls, Credits: credits}); err != nil || spent != want || credits != 3*calls {
					t.Errorf("%+v is stored, %v; %d calls and %d credits are counted", spent, err, calls, credits)
				}
			})
		})
	}
}
