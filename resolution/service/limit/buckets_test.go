package limit_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution/service/limit"
)

var start = time.Date(2026, 11, 20, 9, 18, 0, 0, time.UTC)

// rateOf parses a rate that is right.
func rateOf(t testing.TB, text string) limit.Rate {
	t.Helper()
	r, err := limit.ParseRate(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTake(t *testing.T) {
	r := rateOf(t, "60/min burst 3")
	b := limit.New(r)
	for i, c := range []struct {
		after      time.Duration // since the start
		allowed    bool
		remaining  int
		reset      time.Duration
		retryAfter time.Duration
	}{
		{0, true, 2, 1 * time.Second, 0},
		{0, true, 1, 2 * time.Second, 0},
		{0, true, 0, 3 * time.Second, 0},
		{0, false, 0, 3 * time.Second, time.Second},
		{400 * time.Millisecond, false, 0, 2600 * time.Millisecond, 600 * time.Millisecond},
		{time.Second, true, 0, 3 * time.Second, 0},
		{time.Second, false, 0, 3 * time.Second, time.Second},
		{2500 * time.Millisecond, true, 0, 2500 * time.Millisecond, 0},
		{time.Hour, true, 2, time.Second, 0},
	} {
		got := b.Take("org_1", start.Add(c.after))
		want := limit.Decision{Allowed: c.allowed, Rate: r, Remaining: c.remaining, Reset: c.reset, RetryAfter: c.retryAfter}
		if got != want {
			t.Errorf("take %d after %v: got %+v, want %+v", i, c.after, got, want)
		}
	}
}

func TestKeysDoNotShare(t *testing.T) {
	b := limit.New(rateOf(t, "1/min"))
	for i := range 1000 {
		if d := b.Take(fmt.Sprint(i), start); !d.Allowed {
			t.Fatalf("key %d refused: %+v", i, d)
		}
	}
	if d := b.Take("7", start); d.Allowed {
		t.Errorf("key 7 allowed twice: %+v", d)
	}
}

func TestNone(t *testing.T) {
	b := limit.New(limit.None)
	for range 1000 {
		if d := b.Take("a", start); d != (limit.Decision{Allowed: true}) {
			t.Fatalf("got %+v, want allowed and nothing more", d)
		}
	}
	if d := b.Peek("a", start); !d.Allowed || b.Len() != 0 {
		t.Errorf("got %+v and %d keys, want allowed and none", d, b.Len())
	}
}

func TestPeekTakesNothing(t *testing.T) {
	b := limit.New(rateOf(t, "60/min burst 2"))
	for range 5 {
		if d := b.Peek("a", start); !d.Allowed || d.Remaining != 2 || d.Reset != 0 {
			t.Fatalf("new key: got %+v, want allowed, 2 remaining", d)
		}
	}
	if b.Len() != 0 {
		t.Errorf("%d keys after peeking, want 0", b.Len())
	}
	b.Take("a", start)
	b.Take("a", start)
	for range 5 {
		if d := b.Peek("a", start); d.Allowed || d.RetryAfter != time.Second || d.Reset != 2*time.Second {
			t.Fatalf("empty bucket: got %+v, want refused, again after 1s, full after 2s", d)
		}
	}
	if d := b.Peek("a", start.Add(time.Second)); !d.Allowed || d.Remaining != 1 {
		t.Errorf("a second later: got %+v, want allowed, 1 remaining", d)
	}
}

// TestTimeDoesNotGoBack: callers read the clock before they get the lock, so
// that their times come out of order.
func TestTimeDoesNotGoBack(t *testing.T) {
	b := limit.New(rateOf(t, "1/s"))
	b.Take("a", start)
	allowed := 0
	for range 100 {
		for _, at := range []time.Duration{0, 900 * time.Millisecond} {
			if b.Take("a", start.Add(at)).Allowed {
				allowed++
			}
		}
	}
	if allowed != 0 {
		t.Errorf("%d takes allowed within the second, want 0", allowed)
	}
}

func TestExactAtOneInstant(t *testing.T) {
	const keys, takes = 4, 400
	r := rateOf(t, "600/min burst 37")
	b := limit.New(r)
	var allowed [keys]atomic.Int64
	var done sync.WaitGroup
	for i := range keys * takes {
		done.Go(func() {
			if b.Take(fmt.Sprint(i%keys), start).Allowed {
				allowed[i%keys].Add(1)
			}
		})
	}
	done.Wait()
	for key := range allowed {
		if got := allowed[key].Load(); got != int64(r.Burst) {
			t.Errorf("key %d: %d of %d takes allowed, want %d", key, got, takes, r.Burst)
		}
	}
}

// TestSweptIsAsNew: a bucket that was full again answers the same whether it
// was forgotten or not.
func TestSweptIsAsNew(t *testing.T) {
	r := rateOf(t, "60/min burst 5")
	swept, kept := limit.New(r), limit.New(r)
	for range 3 {
		swept.Take("a", start)
		kept.Take("a", start)
	}

	early := start.Add(2999 * time.Millisecond)
	if swept.Sweep(early); swept.Len() != 1 {
		t.Fatalf("a bucket that is not full was forgotten")
	}
	full := start.Add(3 * time.Second)
	if swept.Sweep(full); swept.Len() != 0 {
		t.Fatalf("a bucket that is full was kept")
	}
	for i := range 7 {
		if a, b := swept.Take("a", full), kept.Take("a", full); a != b {
			t.Errorf("take %d: got %+v after the sweep, %+v without", i, a, b)
		}
	}
}

// TestManyKeys: what is remembered is bounded by the keys that are busy, and
// in any case.
func TestManyKeys(t *testing.T) {
	t.Run("one after another", func(t *testing.T) {
		b := limit.New(rateOf(t, "10/s"))
		for i := range 50_000 {
			b.Take(fmt.Sprint(i), start.Add(time.Duration(i)*time.Millisecond)) // each is full again after 100 others
			if i%1000 == 0 && b.Len() > 64*(64+8) {
				t.Fatalf("%d keys remembered after %d", b.Len(), i)
			}
		}
	})
	t.Run("all at once", func(t *testing.T) {
		const bound = 64 * 100
		b := limit.New(rateOf(t, "1/d"))
		b.SetMaxKeys(100)
		for i := range 4 * bound {
			b.Take(fmt.Sprint(i), start)
		}
		if b.Len() != bound { // with keys spread at random, every shard is full
			t.Errorf("%d keys remembered, want %d", b.Len(), bound)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	for _, r := range []limit.Rate{
		{Events: 1},
		{Events: 1, Per: time.Minute},
		{Events: 1, Per: time.Millisecond, Burst: 1},
		{Events: 1, Per: 1500 * time.Millisecond, Burst: 1},
		{Per: time.Minute, Burst: 1},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("New(%+v) did not panic", r)
				}
			}()
			limit.New(r)
		}()
	}
}

func BenchmarkTakeKnown(b *testing.B) {
	buckets := limit.New(rateOf(b, "600/min burst 20"))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		buckets.Take("org_0123456789abcdef", start.Add(time.Duration(i)*time.Millisecond)) // now allowed, now refused
	}
}

func BenchmarkTakeParallel(b *testing.B) {
	buckets := limit.New(rateOf(b, "1000000/s"))
	var keys [64]string
	for i := range keys {
		keys[i] = fmt.Sprintf("org_%016x", i)
	}
	var next atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := int(next.Add(17)); pb.Next(); i++ {
			buckets.Take(keys[i%len(keys)], start.Add(time.Duration(i)))
		}
	})
}

// BenchmarkTakeNew is the worst: every key is another, and none is full again.
func BenchmarkTakeNew(b *testing.B) {
	buckets := limit.New(rateOf(b, "1/d"))
	keys := make([]string, 1<<20)
	for i := range keys {
		keys[i] = fmt.Sprintf("%016x", i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		buckets.Take(keys[i%len(keys)], start)
	}
}
