package rows

import (
	"context"
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
)

// BenchmarkStored reads rows with stored answers: of one service that knows everybody, and of three
// in an order that know half of the rest each.
func BenchmarkStored(b *testing.B) {
	const people = 1 << 15
	store, err := answers.Open(context.Background(), answers.InFolder(b.TempDir()), answers.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	key := func(n int) string { return fmt.Sprintf("network.example/in/person-%d", n) }
	put := func(service string, n int, matched bool) {
		cost := int64(2)
		a := answers.Answer{
			Run: "earlier", Outcome: answers.Matched, Status: 200, Resolution: "res_1", Credits: &cost, Received: time.Now(),
			Body: fmt.Appendf(nil, `{"id":"res_1","status":"completed","lead":{"network_url":%q,"first_name":"Ada","last_name":"Example","job_title":"Head Baker","email":"ada.%d@bakery.example","phone":"+12025550100","company":{"name":"Sample Bakery","domain":"bakery.example"}}}`, key(n), n),
		}
		if !matched {
			a.Outcome, a.Reason, a.Body = answers.NoMatch, "not_found", []byte(`{"id":"res_1","status":"no_match","reason":"not_found"}`)
		}
		if err := store.Put(b.Context(), answers.Question{Scope: answers.Scope{Service: service, Operation: resolution.Enrichment}, Key: key(n)}, a); err != nil {
			b.Fatal(err)
		}
	}
	for n := range people {
		put("all", n, true)
		put("first", n, n%2 == 0)
		if n%2 == 1 {
			put("second", n, n%4 == 1)
		}
		if n%4 == 3 {
			put("third", n, true)
		}
	}
	layout, err := columns.NewLayout(columns.Settings{Operation: resolution.Enrichment, DefaultRegion: "US", Remote: true})
	if err != nil {
		b.Fatal(err)
	}
	remote := func(name string) *purchase.Remote {
		return &purchase.Remote{Name: name, Answers: store, Offline: true, Read: new(client.Reader).Read, Counters: &stats.CallCounters{}, Budget: purchase.NoBudget}
	}
	o := &order.Order{Budget: purchase.NoBudget, Counters: &stats.CallCounters{}}
	for _, name := range []string{"first", "second", "third"} {
		o.Steps = append(o.Steps, &order.Step{Name: name, Remote: remote(name)})
	}
	if err := o.Check(resolution.Enrichment); err != nil {
		b.Fatal(err)
	}
	chain, _, err := o.Open(b.Context(), order.Options{Operation: resolution.Enrichment, Run: "run", Layout: layout, EngineSlots: semaphore.NewWeighted(1), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer chain.Close()
	single := &order.Order{Budget: purchase.NoBudget, Counters: &stats.CallCounters{}, Steps: []*order.Step{{Name: "all", Remote: remote("all")}}}
	if err := single.Check(resolution.Enrichment); err != nil {
		b.Fatal(err)
	}
	one, _, err := single.Open(b.Context(), order.Options{Operation: resolution.Enrichment, Run: "run", Layout: layout, EngineSlots: semaphore.NewWeighted(1), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer one.Close()
	for name, asker := range map[string]Answerer{"one": NewOrdered(one, nil), "three": NewOrdered(chain, nil)} {
		b.Run(name, func(b *testing.B) {
			rows, before := 0, used()
			for b.Loop() {
				batch := &columns.Batch{}
				from := rows % people
				const size = 1 << 11
				for i := range size {
					batch.Rows = append(batch.Rows, int64(i))
				}
				batch.Reset(size)
				for i := range size {
					batch.Keys.Data = append(batch.Keys.Data, key(from+i)...)
					batch.Keys.End()
				}
				matched := 0
				if err := asker.Answer(context.Background(), batch, func(rows *columns.Batch) error {
					for _, o := range rows.Outcomes {
						if o == outcome.Matched {
							matched++
						}
					}
					return nil
				}); err != nil || matched != size {
					b.Fatal(matched, err)
				}
				rows += size
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(used()-before)/float64(rows), "cpu-ns/row")
		})
	}
}

// used is the processor time of this process so far.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
