package sqlite

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// BenchmarkSettle charges from 64 callers at once, as a service under load
// does: bare, with a stored reply, and with a callback.
func BenchmarkSettle(b *testing.B) {
	const callers = 64
	body := make([]byte, 2048)
	for _, c := range []struct {
		name            string
		reply, callback bool
	}{
		{"charge", false, false},
		{"charge and reply", true, false},
		{"charge and callback", false, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, err := Serve(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			now := time.Now()
			o, err := s.CreateOrganization(b.Context(), "bench", creditLimit, nil, now)
			if err != nil {
				b.Fatal(err)
			}
			var n atomic.Uint64
			b.SetParallelism(callers / runtime.GOMAXPROCS(0))
			b.ReportAllocs()
			b.ResetTimer()
			before := processorTime()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					charge := state.Charge{Organization: o.ID, Resolution: uuid.Must(uuid.NewV7()), Operation: resolution.Enrichment, Credits: 2, At: now}
					if c.reply {
						charge.Reply = &state.Reply{Status: 200, Body: body}
						binary.BigEndian.PutUint64(charge.Reply.Key[:], n.Add(1)*0x9e3779b97f4a7c15)
					}
					if c.callback {
						charge.Callback = &state.Callback{WebhookID: fmt.Sprintf("msg_%x", charge.Resolution), Organization: o.ID, Resolution: charge.Resolution,
							Receiver: "example.com:443", URL: "https://example.com/hook", Body: body, Due: now}
					}
					if _, err := s.Settle(context.Background(), charge); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "settles/s")
			b.ReportMetric(float64((processorTime()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// processorTime is what the process has used so far: unlike the wall clock it
// says the same on a machine with other work.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // never fails for the process itself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDelivery posts callbacks and settles them as delivered, in rounds of 64
// at once: what a callback costs beside its answer and its receiver.
func BenchmarkDelivery(b *testing.B) {
	const round = 64
	s, err := Serve(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	now := time.Now()
	o, err := s.CreateOrganization(b.Context(), "bench", creditLimit, nil, now)
	if err != nil {
		b.Fatal(err)
	}
	body := make([]byte, 2048)
	together := func(n int, do func(i int) error) {
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				if err := do(i); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
	}
	var took [3]time.Duration
	b.ResetTimer()
	for left := b.N; left > 0 && !b.Failed(); left -= round {
		began := processorTime()
		together(round, func(int) error {
			id := uuid.Must(uuid.NewV7())
			_, err := s.Settle(context.Background(), state.Charge{Organization: o.ID, Resolution: id, Operation: resolution.EmailToHEM, Credits: 1, At: now,
				Callback: &state.Callback{WebhookID: fmt.Sprintf("msg_%x", id), Organization: o.ID, Resolution: id,
					Receiver: "example.com:443", URL: "https://example.com/hook", Body: body, Due: now}})
			return err
		})
		posted := processorTime()
		due, _, err := s.DueDeliveries(b.Context(), now, round, state.Scope{Each: round})
		if err != nil || len(due) != round {
			b.Fatal(len(due), err)
		}
		read := processorTime()
		together(round, func(i int) error {
			return s.SettleDelivery(context.Background(), state.Attempt{ID: due[i].ID, State: state.Delivered, Status: 204, At: now})
		})
		took[0], took[1], took[2] = took[0]+posted-began, took[1]+read-posted, took[2]+processorTime()-read
	}
	rounds := float64((b.N+round-1)/round) * round
	for i, what := range []string{"post", "read", "settle"} {
		b.ReportMetric(float64(took[i].Nanoseconds())/rounds, what+"-cpu-ns")
	}
}
