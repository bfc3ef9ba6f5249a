package sqlite

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
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
