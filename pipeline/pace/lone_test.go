package pace_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
)

// TestLoneRefusals has a service refuse a few calls among many, whatever the rate. Each
// refusal concerns its call alone, however long it asks to wait.
func TestLoneRefusals(t *testing.T) {
	const ms = time.Millisecond
	const d = time.Minute
	type world struct {
		name    string
		limit   func() limiter // that the service states; nil: none
		rate    float64        // the user's
		places  int
		latency time.Duration
	}
	answered := func(w world, share float64, refusal pace.Outcome) (n int) {
		bubble(t, func(t *testing.T) {
			o := pace.DefaultOptions()
			o.Rate, o.Concurrency = w.rate, w.places
			o.Random = func() float64 { return 0.5 }
			dice := rand.New(rand.NewPCG(1, 7))
			s := &service{latency: constant(w.latency), fault: func() pace.Outcome {
				if dice.Float64() < share {
					return refusal
				}
				return pace.Outcome{}
			}}
			if w.limit != nil {
				s.limit, s.headers = w.limit(), whole
			}
			load(pace.New(o), s, 2*w.places, d)
			n = s.allowed
		})
		return n
	}
	for _, w := range []world{
		{"many places", nil, 0, 64, 100 * ms},
		{"few places", nil, 0, 8, 100 * ms},
		{"one place", nil, 0, 1, 20 * ms},
		{"the user's rate", nil, 200, 64, 100 * ms},
		{"a stated limit", limiters["bucket of 200"], 0, 64, 100 * ms},
	} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			without := answered(w, 0, pace.Outcome{})
			for _, refusal := range []pace.Outcome{
				{Kind: pace.Limited},
				{Kind: pace.Limited, RetryAfter: time.Second},
				{Kind: pace.Limited, RetryAfter: 30 * time.Second},
				{Kind: pace.Unavailable, RetryAfter: time.Second},
				{Kind: pace.Unavailable, RetryAfter: 30 * time.Second},
			} {
				for _, share := range []float64{1. / 1000, 3. / 1000} {
					if got := float64(answered(w, share, refusal)) / float64(without); got < 0.98 {
						t.Errorf("%.3f refused, kind %d, wait %v: %.3f of the answers without refusals, want 0.98", share, refusal.Kind, refusal.RetryAfter, got)
					}
				}
			}
		})
	}
}

// TestRealLimitIsFound: a limit that nobody states is found within three windows, by few
// refusals. The numbers are those of a pace that takes every refusal for a limit.
func TestRealLimitIsFound(t *testing.T) {
	if raceDetector {
		t.Skip("minutes of the model take minutes with the detector, which the other tests of it run under, too")
	}
	const ms = time.Millisecond
	type kind struct {
		limit           func() limiter // nil: a limit of calls at a time
		window          time.Duration
		silent, retried int // refusals without and with Retry-After
	}
	minute := func() limiter { return &window{calls: 60 * limit, length: time.Minute} }
	for name, k := range map[string]kind{
		"bucket of 20":  {limiters["bucket of 20"], time.Second, 132, 98},
		"bucket of 200": {limiters["bucket of 200"], time.Second, 401, 313},
		"window":        {limiters["window"], time.Second, 532, 396},
		"sliding":       {limiters["sliding"], time.Second, 338, 295},
		"long window":   {limiters["long window"], 10 * time.Second, 3412, 1309},
		"long sliding":  {limiters["long sliding"], 10 * time.Second, 3074, 1094},
		"minute":        {minute, time.Minute, 5777, 1053},
		"concurrency":   {nil, time.Second, 198, 178},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused, every := 0, k.silent+k.retried
			for _, h := range []headers{silent, retry} {
				for _, p := range []struct {
					places  int
					latency time.Duration
				}{{256, 50 * ms}, {32, 100 * ms}, {8, 20 * ms}, {2, 5 * ms}} {
					bubble(t, func(t *testing.T) {
						o := pace.DefaultOptions()
						o.Concurrency = p.places
						o.Random = func() float64 { return 0.5 }
						s := &service{headers: h, latency: constant(p.latency)}
						if k.limit == nil {
							s.room = p.places / 2
						} else {
							s.limit = k.limit()
						}
						c := pace.New(o)
						time.AfterFunc(3*k.window, func() {
							if got := c.Snapshot(); got.Decreases == 0 {
								t.Errorf("%d places: no limit found within three windows: %+v", p.places, got)
							}
						})
						load(c, s, 2*p.places, 4*time.Minute)
						refused += s.refused
					})
				}
			}
			if float64(refused) > 1.1*float64(every) {
				t.Errorf("%d refused, want at most 1.1 times %d", refused, every)
			}
			t.Logf("%d refused, %d where every refusal tells a limit", refused, every)
		})
	}
}

// TestLoneRefusalsUnderALimit has a service with a limit that it does not state refuse one
// call in a thousand besides.
func TestLoneRefusalsUnderALimit(t *testing.T) {
	if raceDetector {
		t.Skip("minutes of the model take minutes with the detector, which the other tests of it run under, too")
	}
	answered := func(t *testing.T, form string, share float64, asks time.Duration) (n float64) {
		bubble(t, func(t *testing.T) {
			o := pace.DefaultOptions()
			o.Random = func() float64 { return 0.5 }
			s := &service{latency: constant(100 * time.Millisecond), limit: limiters[form](), fault: faults(1, 0, share, asks)}
			load(pace.New(o), s, 2*o.Concurrency, 4*time.Minute)
			n = float64(s.allowed)
		})
		return n
	}
	for _, asks := range []time.Duration{0, time.Second} {
		t.Run(fmt.Sprintf("wait %v", asks), func(t *testing.T) {
			t.Parallel()
			forms, got := []string{"bucket of 20", "window"}, 0.
			for _, form := range forms {
				got += answered(t, form, 1./1000, asks) / answered(t, form, 0, 0) / float64(len(forms))
			}
			if got < 0.65 { // 0.26 where each of them tells a limit
				t.Errorf("%.3f of the answers without refusals, want 0.65", got)
			}
			t.Logf("%.3f", got)
		})
	}
}

// TestEarlyRefusal: a limit that a refusal among the first calls seems to tell is forgotten,
// since refusals go on at a lower rate.
func TestEarlyRefusal(t *testing.T) {
	if raceDetector {
		t.Skip("minutes of the model take minutes with the detector, which the other tests of it run under, too")
	}
	const places, latency, d, seeds = 64, 100 * time.Millisecond, 3 * time.Minute, 2
	for _, asks := range []time.Duration{0, time.Second} {
		for _, share := range []float64{1. / 1000, 3. / 1000} {
			t.Run(fmt.Sprintf("%.3f, wait %v", share, asks), func(t *testing.T) {
				t.Parallel()
				got := 0.
				for seed := range uint64(seeds) {
					bubble(t, func(t *testing.T) {
						o := pace.DefaultOptions()
						o.Concurrency = places
						o.Random = func() float64 { return 0.5 }
						chance, n := faults(seed, 0, share, asks), 0
						s := &service{latency: constant(latency), fault: func() pace.Outcome {
							if n++; n == 10 {
								return pace.Outcome{Kind: pace.Limited, RetryAfter: asks}
							}
							return chance()
						}}
						load(pace.New(o), s, 2*places, d)
						got += float64(s.allowed) / (seeds * places * d.Seconds() / latency.Seconds())
					})
				}
				if got < 0.75 {
					t.Errorf("%.3f of what is possible, want 0.75", got)
				}
				t.Logf("%.3f", got)
			})
		}
	}
}

// TestLoneRefusalHolds: after a lone refusal no call leaves until one that left after it is
// answered. Where that one is refused too, all calls wait.
func TestLoneRefusalHolds(t *testing.T) {
	limited := pace.Outcome{Kind: pace.Limited, RetryAfter: time.Minute}
	for _, c := range []struct {
		name   string
		second pace.Outcome
		waits  time.Duration
	}{
		{"answered", pace.Outcome{}, 0},
		{"refused", limited, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				controller := pace.New(options(4))
				for range 100 {
					open(t, controller, 4)
				}
				acquire(t, controller, 1)[0].Done(limited)
				next := acquire(t, controller, 1)[0]
				began := time.Now()
				var waiting sync.WaitGroup
				waiting.Go(func() {
					p, err := controller.Acquire(t.Context())
					if took := time.Since(began); err != nil || took != time.Second+c.waits {
						t.Errorf("the call after it left after %v, want %v; %v", took, time.Second+c.waits, err)
					}
					p.Done(pace.Outcome{})
				})
				time.Sleep(time.Second)
				next.Done(c.second)
				waiting.Wait()
			})
		})
	}
}
