package purchase

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
)

// openIn opens a store inside a bubble of synctest, and its Deliveries.
func openIn(t *testing.T) (*answers.Store, *Deliveries) {
	t.Helper()
	store := openStore(t)
	r := &Remote{Answers: store, Name: laterService, Read: client.Read, Price: Price{Match: 3}, Counters: &stats.CallCounters{}}
	return store, NewDeliveries(r, time.Now)
}

// TestNotFoundSoonAfterCreation: a service may not find at once what it has just
// begun. Later, what it does not find is gone.
func TestNotFoundSoonAfterCreation(t *testing.T) {
	for _, f := range []struct {
		name       string
		class      resolution.Class // of the 404
		foundAfter time.Duration    // the creation
		reason     string           // "" is a match
		most       time.Duration    // that it takes
	}{
		{"found at last", resolution.Invalid, 40 * time.Second, "", 46 * time.Second},
		{"found at last, the pages of a proxy before", resolution.Denied, 40 * time.Second, "", 46 * time.Second},
		{"never found", resolution.Invalid, time.Hour, outcome.ReasonUnknownCall, 66 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, _ := openIn(t)
			created := time.Now()
			b := buyerFrom(t, resolution.KeywordToLeadCount, store, answering(func(asked string) (int, string, error) {
				switch {
				case asked != "res_1":
					return 200, `{"resolution":{"id":"res_1","status":"queued"}}`, nil
				case time.Since(created) < f.foundAfter:
					return 0, "", &resolution.CallError{Class: f.class, Status: 404, Sent: true}
				}
				return 200, `{"resolution":{"id":"res_1","status":"completed"},"lead":{"count":7}}`, nil
			}), func(r *Remote) { r.Patience = 15 * time.Minute })
			a, err := ask(t, b, "")
			if took := time.Since(created); err != nil || a.Reason != f.reason || (a.Outcome == outcome.Matched) != (f.reason == "") || took > f.most {
				t.Errorf("%s: %s %s after %s, %v; want %q within %s", f.name, a.Outcome, a.Reason, took, err, f.reason, f.most)
			}
		})
	}
}

// TestLaterRunListens: a run that listens waits for the answers promised to an earlier
// one, whose time was over, as long as for those promised to itself.
func TestLaterRunListens(t *testing.T) {
	const body = `{"success":true,"resolution":{"id":"res_1","status":"completed"},"lead":{"phone":"+12025550100"}}`
	for _, f := range []struct {
		name    string
		arrives time.Duration // after the run began; -1 is before it asks, 0 is never
		reason  string        // "" is a match
		took    time.Duration
	}{
		{"before the first question", -1, "", 0},
		{"while it listens", 50 * time.Second, "", 50 * time.Second},
		{"never", 0, outcome.ReasonNoCallback, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, deliveries := openIn(t)
			q := asked(t, store, laterService, resolution.NetworkToPhone, "network.example/in/a", "")
			if err := store.Park(t.Context(), q, answers.Parking{Resolution: "res_1", Deadline: time.Now().Add(time.Second)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			b := buyerFrom(t, q.Operation, store, answering(func(string) (int, string, error) {
				t.Error("it is asked again")
				return 500, "", nil
			}), func(r *Remote) { r.Deliveries = deliveries })
			deliver := func() {
				if err := deliveries.Deliver(t.Context(), resolution.Delivery{ID: "res_1", Body: []byte(body)}); err != nil {
					t.Error(err)
				}
			}
			switch {
			case f.arrives < 0:
				deliver()
			case f.arrives > 0:
				time.AfterFunc(f.arrives, deliver)
			}
			began := time.Now()
			a, err := ask(t, b, q.Key)
			if credits := b.counters.Snapshot().Credits; err == nil && (credits == 3) != (f.reason == "") {
				t.Errorf("%s: %d credits are counted", f.name, credits)
			}
			if took := time.Since(began); err != nil || a.Reason != f.reason || (a.Outcome == outcome.Matched) != (f.reason == "") || took != f.took {
				t.Errorf("%s: %s %s after %s, %v; want %q after %s", f.name, a.Outcome, a.Reason, took, err, f.reason, f.took)
			}
		})
	}
}

// TestCountsThatComeLater: a count is paid once and arrives, by a callback alone where
// its creation only repeats the request, and by looks that find nothing at first.
func TestCountsThatComeLater(t *testing.T) {
	for _, f := range []struct {
		name    string
		options func(*badservice.Options)
		listens bool
		reason  string // "" is a match
	}{
		{"by a callback", func(o *badservice.Options) { o.Echoed = true }, true, ""},
		{"by a callback to another process", func(o *badservice.Options) { o.Echoed = true }, false, outcome.ReasonUnfinished},
		{"by looks that find nothing at first", func(o *badservice.Options) { o.Hidden, o.Polls = true, 3 }, false, ""},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			o := badservice.DefaultOptions()
			o.Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
			f.options(&o)
			s := badservice.New(o)
			url, err := s.Start()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			deliveries, store := laterOf(t)
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				d, err := client.ReadDelivery(r.Header, body)
				if err == nil && f.listens {
					err = deliveries.Deliver(r.Context(), d)
				}
				if err != nil {
					t.Error(err)
				}
			}))
			defer receiver.Close()
			settings := client.DefaultOptions()
			settings.BaseURL, settings.Key = url, secret.New("key")
			if o.Echoed {
				settings.CallbackURL = receiver.URL
			}
			c, err := client.New(settings)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			b := buyerFrom(t, resolution.KeywordToLeadCount, store, c, func(r *Remote) {
				r.Name = laterService
				if f.listens {
					r.Deliveries = deliveries
				}
			})
			if a, err := ask(t, b, ""); err != nil || a.Reason != f.reason || (a.Outcome == outcome.Matched) != (f.reason == "") || s.Spent() != 1 {
				t.Errorf("%s %s, %v, and %d credits are spent; want %q and 1", a.Outcome, a.Reason, err, s.Spent(), f.reason)
			}
		})
	}
}

// TestCompletedBeatsFailed: of a resolution that the service calls failed and completed,
// the answer is taken, in whichever order and way they come, and paid once. If it comes too
// late for the row, it is stored for the next.
func TestCompletedBeatsFailed(t *testing.T) {
	const phone, count = resolution.NetworkToPhone, resolution.KeywordToLeadCount
	const failedBody = `{"success":false,"type":"resolution.failed","resolution":{"id":"res_1","status":"failed"}}`
	completed := map[resolution.Operation]string{
		phone: `{"success":true,"resolution":{"id":"res_1","status":"completed"},"lead":{"phone":"+12025550100"}}`,
		count: `{"success":true,"resolution":{"id":"res_1","status":"completed"},"lead":{"count":7}}`,
	}
	const pending = `{"success":true,"resolution":{"id":"res_1","status":"processing"}}`
	const never = time.Duration(-1)
	for _, f := range []struct {
		name             string
		operation        resolution.Operation
		poll             string        // what looks find: pending, failed or completed
		fails, completes time.Duration // when callbacks come, after the question
		reason           string        // of the row; "" is a match
		later            string        // of the next row with the question
	}{
		{"failed, and completed soon", phone, "", time.Second, 2 * time.Second, "", ""},
		{"failed and completed at once", phone, "", time.Second, time.Second, "", ""},
		{"completed, and then failed", phone, "", 3 * time.Second, time.Second, "", ""},
		{"failed, and completed much later", phone, "", time.Second, 10 * time.Second, outcome.ReasonUnavailable, ""},
		{"failed by a callback, completed at a look", count, "completed after", time.Second, never, "", ""},
		{"failed at a look, completed by a callback", count, "failed", never, 2 * time.Second, "", ""},
		{"failed at a look, completed much later", count, "failed", never, 10 * time.Second, outcome.ReasonUnavailable, ""},
		{"failed both ways", count, "failed", 2 * time.Second, never, outcome.ReasonUnavailable, outcome.ReasonUnavailable},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, deliveries := openIn(t)
			calls := 0
			var failed atomic.Bool
			b := buyerFrom(t, f.operation, store, answering(func(asked string) (int, string, error) {
				switch {
				case asked != "res_1":
					calls++
					return 200, pending, nil
				case f.poll == "failed":
					return 0, "", &resolution.CallError{Class: resolution.Unavailable, Status: 200, Sent: true, Over: true}
				case f.poll == "completed after" && failed.Load():
					return 200, completed[f.operation], nil
				}
				return 200, pending, nil
			}), func(r *Remote) { r.Deliveries = deliveries })
			deliver := func(after time.Duration, body string) {
				if after == never {
					return
				}
				time.AfterFunc(after, func() {
					if body == failedBody {
						failed.Store(true)
					}
					err := deliveries.Deliver(t.Context(), resolution.Delivery{ID: "res_1", Body: []byte(body)})
					if late := body == failedBody && errors.Is(err, resolution.ErrNotAsked); err != nil && !late {
						t.Error(f.name, err)
					}
				})
			}
			deliver(f.fails, failedBody)
			deliver(f.completes, completed[f.operation])
			for i, want := range []string{f.reason, f.later} {
				if i == 1 && want != "" {
					break // it would be asked again
				}
				a, err := ask(t, b, "network.example/in/a")
				if err != nil || a.Reason != want || (a.Outcome == outcome.Matched) != (want == "") || calls != 1 {
					t.Errorf("%s, row %d: %s %s after %d calls, %v; want %q after 1", f.name, i+1, a.Outcome, a.Reason, calls, err, want)
				}
				time.Sleep(time.Minute)
			}
			paid, _, err := store.SumSpent(t.Context(), "night")
			if f.later == "" && (err != nil || paid.Credits != 3) {
				t.Errorf("%s: paid %+v, %v; want 3 credits", f.name, paid, err)
			}
		})
	}
}

// TestFailedPageOfAnUnknownCall: a call that may have been billed is sent again, and the page
// that is promised then fails. The first request may have been billed all the same, unless the
// service knows both by one idempotency key.
func TestFailedPageOfAnUnknownCall(t *testing.T) {
	for _, f := range []struct {
		name    string
		after   time.Duration // the first request
		keys    bool          // the service knows idempotency keys
		newKey  bool
		resumed bool // an earlier process sent it again
		reason  string
	}{
		{"without keys", 400 * 24 * time.Hour, false, false, false, outcome.ReasonUnknownCall},
		{"under the same key", time.Hour, true, false, false, outcome.ReasonUnavailable},
		{"under the same key, which is too old", 25 * time.Hour, true, false, false, outcome.ReasonUnknownCall},
		{"under a new key", time.Hour, true, true, false, outcome.ReasonUnknownCall},
		{"under a new key, by an earlier process", time.Hour, true, false, true, outcome.ReasonUnknownCall},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, _ := openIn(t)
			time.Sleep(time.Until(laterNow))
			q := asked(t, store, laterService, resolution.KeywordToLeadCount, aPage.Key(), "")
			must(t, store.Fail(t.Context(), q, answers.Failure{MayBeBilled: true}))
			time.Sleep(f.after)
			if f.resumed {
				_, err := store.Intent(t.Context(), q, answers.Send{Run: "night", At: time.Now(), Again: true, NewKey: true})
				must(t, err, store.Park(t.Context(), q, answers.Parking{Resolution: "res_1", Deadline: time.Now().Add(time.Hour)}))
			}
			b := buyerFrom(t, q.Operation, store, answering(func(ref string) (int, string, error) {
				if ref == "res_1" {
					return 200, `{"success":false,"resolution":{"id":"res_1","status":"failed"}}`, nil
				}
				return 200, `{"resolution":{"id":"res_1","status":"queued"}}`, nil
			}), func(r *Remote) {
				if r.RetryUnknown, r.NewKey = true, f.newKey; f.keys {
					r.Keys = NewKeyWindow(DefaultKeyWindow)
				}
			})
			a, err := ask(t, b, "")
			must(t, err)
			c, err := store.Find(t.Context(), q.Hash())
			_, credits := b.Spent()
			unknown := err == nil && c.State == answers.Unknown && credits == 3
			closed := errors.Is(err, answers.ErrNoCall) && credits == 0
			if a.Reason != f.reason || unknown != (f.reason == outcome.ReasonUnknownCall) || closed == unknown {
				t.Errorf("%s: %s %s; the call is %q, %v, and counts %d credits; want %s", f.name, a.Outcome, a.Reason, c.State, err, credits, f.reason)
			}
		})
	}
}

// TestLooks: how often looks at a page may fail, and what counts.
func TestLooks(t *testing.T) {
	failure := func(class resolution.Class, status int) error {
		return &resolution.CallError{Class: class, Status: status, Sent: true}
	}
	for _, f := range []struct{ looks, reason string }{ // f fails, p is pending, n is not there yet, l is limited, d is denied, . is completed
		{"fffffffff.", ""},
		{"ffffffffff.", outcome.ReasonUnavailable},
		{"pfffffffff.", ""},
		{"nfffffffff.", ""},
		{"lfffffffff.", ""},
		{"fffffpfffff.", ""},
		{"d.", ""},
		{"dd.", "refused"},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, _ := openIn(t)
			looks := f.looks
			b := buyerFrom(t, resolution.KeywordToLeadCount, store, answering(func(asked string) (int, string, error) {
				if asked != "res_1" {
					return 200, `{"resolution":{"id":"res_1","status":"queued"}}`, nil
				}
				look := looks[0]
				looks = looks[1:]
				switch look {
				case 'f':
					return 0, "", failure(resolution.Protocol, 200)
				case 'n':
					return 0, "", failure(resolution.Invalid, 404)
				case 'l':
					return 0, "", failure(resolution.Limited, 429)
				case 'd':
					return 0, "", failure(resolution.Denied, 401)
				case 'p':
					return 200, `{"resolution":{"id":"res_1","status":"queued"}}`, nil
				}
				return 200, `{"resolution":{"id":"res_1","status":"completed"},"lead":{"count":7}}`, nil
			}), func(r *Remote) { r.Patience = time.Hour })
			a, err := ask(t, b, "")
			if refused := f.reason == "refused"; errors.Is(err, ErrRefused) != refused || !refused && (err != nil || a.Reason != f.reason || (a.Outcome == outcome.Matched) != (f.reason == "")) {
				t.Errorf("%s: %s %s, %v with %q left; want %q", f.looks, a.Outcome, a.Reason, err, looks, f.reason)
			}
		})
	}
}

// TestStoppedWhileItWaits: a run that is stopped while a call waits ends with the cause, and the
// call stays as it is.
func TestStoppedWhileItWaits(t *testing.T) {
	const pending, failed = `{"resolution":{"id":"res_1","status":"queued"}}`, `{"resolution":{"id":"res_1","status":"failed"}}`
	stopped := errors.New("stopped")
	for _, f := range []struct {
		name      string
		operation resolution.Operation
		first     error
		look      string
		stop      time.Duration
		state     answers.State
	}{
		{"between two looks", resolution.KeywordToLeadCount, nil, pending, 3 * time.Second, answers.Parked},
		{"for the answer of a page that failed", resolution.KeywordToLeadCount, nil, failed, time.Second, answers.Parked},
		{"for a callback", resolution.NetworkToPhone, nil, "", time.Second, answers.Parked},
		{"between two requests", resolution.NetworkToPhone, &resolution.CallError{Class: resolution.Limited, Status: 429, Sent: true}, "", 50 * time.Millisecond, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, deliveries := openIn(t)
			b := buyerFrom(t, f.operation, store, answering(func(asked string) (int, string, error) {
				if asked == "res_1" {
					return 200, f.look, nil
				}
				return 200, pending, f.first
			}), func(r *Remote) { r.Deliveries = deliveries })
			time.AfterFunc(f.stop, func() { b.Stop(stopped) })
			began, key := time.Now(), "network.example/in/a"
			if f.operation.IsKeyword() {
				key = aPage.Key()
			}
			_, err := ask(t, b, key)
			c, _ := store.Find(t.Context(), answers.Question{Scope: b.scope, Key: key}.Hash())
			if took := time.Since(began); !errors.Is(err, stopped) || took != f.stop || c.State != f.state {
				t.Errorf("%s: %v after %s, and the call is %q; want %q", f.name, err, took, c.State, f.state)
			}
		})
	}
}
