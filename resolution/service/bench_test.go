package service

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution/service/admission"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// BenchmarkEnrichment asks the handler as 64 connections would: known callers,
// limits, a look-up in the sample directory, and a charge on disk for each.
// The part of HTTP that reads and writes the connection is not in it.
func BenchmarkEnrichment(b *testing.B) {
	f := newFixture(b, func(o *Options) { o.Limits.Single = limit.Rate{Events: 1e6, Per: time.Second, Burst: 1e6} })
	_, err := f.store.ChangeCredits(b.Context(), state.CreditChange{Organization: f.organization.ID, Credits: 2_000_000_000, At: f.service.clock.now()})
	f.must(err)
	f.must(f.service.roster.Refresh(b.Context())) // as Serve does; so many new callers at once would not all be looked for
	handler := f.service.Public()
	b.ReportAllocs()
	b.SetParallelism(32) // of 2 cores, 64
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r := httptest.NewRequest(http.MethodPost, enrichment, strings.NewReader(askAda))
			r.Header.Set("Authorization", "Bearer "+f.key)
			r.Header.Set("Content-Type", "application/json")
			w := &discard{header: http.Header{}}
			handler.ServeHTTP(w, r)
			if w.status != http.StatusOK {
				b.Error(w.status)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

// discard is a ResponseWriter that keeps the status.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(p []byte) (int, error) { return io.Discard.Write(p) }

// BenchmarkCallbacks asks for hashed emails as 16 connections would, with
// callbacks to receivers in this process, and then waits until all are delivered.
func BenchmarkCallbacks(b *testing.B) {
	f := newFixture(b, func(o *Options) { o.Limits = admission.Limits{} })
	_, err := f.store.ChangeCredits(b.Context(), state.CreditChange{Organization: f.organization.ID, Credits: 2_000_000_000, At: f.service.clock.now()})
	f.must(err)
	var delivered atomic.Int64
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		delivered.Add(1)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer to.Close()
	stop := f.run()
	handler := f.service.Public()
	ask := `{"email":"ada.example@bakery.example","callback_url":"` + to.URL + `/hook"}`
	b.SetParallelism(8) // of 2 cores, 16
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r := httptest.NewRequest(http.MethodPost, "/lead/resolution/email_to_hem", strings.NewReader(ask))
			r.Header.Set("Authorization", "Bearer "+f.key)
			r.Header.Set("Content-Type", "application/json")
			w := &discard{header: http.Header{}}
			handler.ServeHTTP(w, r)
			if w.status != http.StatusOK {
				b.Error(w.status)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	b.ReportMetric(float64(delivered.Load())/b.Elapsed().Seconds(), "delivered/s")
	for delivered.Load() < int64(b.N) {
		time.Sleep(time.Millisecond)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "all/s")
	b.StopTimer()
	f.must(stop())
}
