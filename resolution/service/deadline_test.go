package service

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
)

// TestTooLateToAnswer: a charge whose answer would come too late is not made.
func TestTooLateToAnswer(t *testing.T) {
	slow := true
	f := newFixture(t, func(o *Options) {
		resolver := resolution.NewSingle(o.Resolver)
		o.Resolver = resolutiontest.Singly(func(ctx context.Context, r resolution.Request) (resolution.Answer, error) {
			if slow {
				<-ctx.Done() // and answers all the same
			}
			return resolver.Resolve(context.WithoutCancel(ctx), r)
		})
	})
	usual := f.service.options.Connections.WriteTimeout
	f.service.options.Connections.WriteTimeout = writeSlack + 20*time.Millisecond
	if a := f.post(enrichment, askAda, "Idempotency-Key", "k"); a.status != http.StatusServiceUnavailable || a.code() != "unavailable" {
		t.Errorf("%d %s", a.status, a.raw)
	}
	if got := f.balance().Available; got != plenty {
		t.Errorf("%d credits left", got)
	}
	slow, f.service.options.Connections.WriteTimeout = false, usual
	if a := f.post(enrichment, askAda, "Idempotency-Key", "k"); a.status != http.StatusOK || a.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("again: %d %s", a.status, a.raw)
	}
}

// TestAnswersLost: an answer that cannot be written is counted.
func TestAnswersLost(t *testing.T) {
	f := newFixture(t)
	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(-time.Second)); err != nil {
			t.Error(err)
		}
		f.service.Public().ServeHTTP(w, r)
	}))
	lost := func(n string) {
		t.Helper()
		if text := string(f.do(http.MethodGet, f.internal+"/metrics", "").raw); !strings.Contains(text, "leadetl_answers_lost_total "+n+"\n") {
			t.Errorf("not %s answers are lost", n)
		}
	}
	f.post(enrichment, askAda)
	lost("0")
	if a, err := f.try(t.Context(), http.MethodPost, late.URL+enrichment, askAda); err == nil {
		t.Errorf("%d %s", a.status, a.raw)
	}
	late.Close() // waits for the handler
	lost("1")
}
