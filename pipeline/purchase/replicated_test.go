package purchase

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/store"
	"github.com/leadetl/leadetl/internal/testkit/memorytest"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/limit"
)

// stating is a service that says in its answers what is left of its limit.
type stating struct {
	bucket *limit.Buckets // nil: it has none
	answering
}

func (s stating) Do(ctx context.Context, call resolution.Call) (resolution.Reply, error) {
	if s.bucket == nil {
		return s.answering.Do(ctx, call)
	}
	left := s.bucket.Take("", time.Now())
	if !left.Allowed {
		return resolution.Reply{}, &resolution.CallError{Class: resolution.Limited, Status: 429, Sent: true, Pace: resolution.Pace{RetryAfter: left.RetryAfter}}
	}
	r, err := s.answering.Do(ctx, call)
	r.Pace = resolution.Pace{Limited: true, Remaining: left.Remaining, Reset: left.Reset}
	return r, err
}

// farAway is a store where each file takes as long as a request to S3.
type farAway struct {
	*memorytest.Memory
	groups *int // of the log
}

// Create is that of store.Store.
func (f farAway) Create(ctx context.Context, name string, data []byte) error {
	if strings.HasPrefix(name, "log/") {
		*f.groups++
	}
	time.Sleep(27 * time.Millisecond)
	return f.Memory.Create(ctx, name, data)
}

func inAMinute(now time.Time) time.Time { return now.Add(time.Minute) }

// openFarAway opens answers that are kept far away, and counts the groups of changes that go there.
func openFarAway(t *testing.T, groups *int, leaveBefore func(now time.Time) time.Time) *answers.Store {
	t.Helper()
	files := farAway{memorytest.New(), groups}
	place := answers.Elsewhere(files, t.TempDir(), func(ctx context.Context) (lease.Lease, error) { return files.Lease(ctx, "", store.Holder{}) })
	s, err := answers.Open(t.Context(), place, answers.Options{LeaveBefore: leaveBefore})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	*groups = 0
	return s
}

// Calls keep to the rate, of the user or of a service with a token bucket of 20 calls
// that says what is left, where each waits for its intent to be stored far away, in
// groups of which one is on its way at a time. At 200 calls a second there are less
// than 10 groups a second. The clock is synctest's: the numbers are those of a machine that is never busy.
func TestRateWithAStoreFarAway(t *testing.T) {
	for _, c := range []struct {
		rate, concurrency int
		seconds           int
		groups            float64 // at most, a second
		burst             int     // of the service, which states its limit; 0 means that the user does
	}{
		{200, 64, 8, 10, 0},
		{1000, 256, 3, 40, 0},
		{50, 64, 12, 10, 20},
	} {
		t.Run(fmt.Sprint(c.rate, c.burst), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := pace.DefaultOptions()
				o.Rate, o.Concurrency = float64(c.rate), c.concurrency
				if c.burst > 0 {
					o.Rate = 0
				}
				controller := pace.New(o)
				groups := 0
				store := openFarAway(t, &groups, inAMinute)
				store.DelayWrites(controller.Crowded)
				var mu sync.Mutex
				var sent []time.Time
				var bucket *limit.Buckets
				if c.burst > 0 {
					bucket = limit.New(limit.Rate{Events: c.rate, Per: time.Second, Burst: c.burst})
				}
				b := buyerFrom(t, resolution.NetworkToPhone, store, stating{bucket, answering(func(string) (int, string, error) {
					mu.Lock()
					sent = append(sent, time.Now())
					mu.Unlock()
					time.Sleep(50 * time.Millisecond)
					return 200, `{"lead":{"phone":"+12025550100"}}`, nil
				})}, func(r *Remote) { r.Pace, r.Concurrency = controller, c.concurrency })
				keys := make([]string, c.seconds*c.rate)
				for i := range keys {
					keys[i] = fmt.Sprintf("network.example/in/person-%d", i)
				}
				began := time.Now()
				if _, err := askAll(t, b, keys...); err != nil {
					t.Fatal(err)
				}
				took := time.Since(began).Seconds()
				slices.SortFunc(sent, time.Time.Compare)
				steady := slices.IndexFunc(sent, func(at time.Time) bool { return at.Sub(sent[0]) > 2*time.Second }) // the first answers open the window
				seconds := sent[len(sent)-1].Sub(sent[steady]).Seconds()
				rate, most, from := float64(len(sent)-1-steady)/seconds, 0, 0
				for to, at := range sent {
					for sent[from].Before(at.Add(-time.Second + 1)) {
						from++
					}
					most = max(most, to-from+1)
				}
				t.Logf("%.1f calls/s, %d in the fullest second, %.1f groups/s", rate, most, float64(groups)/took)
				if len(sent) != len(keys) || float64(groups)/took > c.groups {
					t.Errorf("%d calls of %d, %.1f groups a second, want at most %.1f", len(sent), len(keys), float64(groups)/took, c.groups)
				}
				if want := float64(c.rate); rate < 0.99*want || rate > 1.01*want+float64(c.burst)/seconds || float64(most) > 1.1*want+float64(c.burst) || controller.Snapshot().Limited > 0 {
					t.Errorf("%.1f calls a second, %d in one, want %d; %+v", rate, most, c.rate, controller.Snapshot())
				}
			})
		})
	}
}
