package purchase

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
)

// slow is a service that takes 50 ms.
type slow struct{ answering }

func (s slow) Do(ctx context.Context, call resolution.Call) (resolution.Reply, error) {
	time.Sleep(50 * time.Millisecond)
	return s.answering.Do(ctx, call)
}

// BenchmarkPaid pays for questions one by one, 256 in flight, at a service that takes 50 ms:
// at best 5,120 calls a second.
func BenchmarkPaid(b *testing.B) {
	store, err := answers.Open(context.Background(), answers.InFolder(b.TempDir()), answers.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	matched := func(string) (int, string, error) { return 200, `{"lead":{"phone":"+12025550100"}}`, nil }
	buyer := buyerFrom(b, resolution.NetworkToPhone, store, slow{matched}, func(r *Remote) {
		o := pace.DefaultOptions()
		o.Concurrency = 256
		r.Pace, r.Concurrency = pace.New(o), 256
	})
	keys := make([]string, b.N)
	for i := range keys {
		keys[i] = fmt.Sprint("network.example/in/", i)
	}
	before := processorTime(b)
	b.ResetTimer()
	if err := buyer.Answer(b.Context(), keys, len(keys), func([]Result) {}); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/call")
}

// processorTime is what the process has used so far.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
