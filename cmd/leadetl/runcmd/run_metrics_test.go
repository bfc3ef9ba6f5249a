package runcmd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/stats"
)

func TestMetricsOfNoService(t *testing.T) {
	text := metricsText(t, &stats.Progress{})
	if !strings.Contains(text, "\nleadetl_run_rows_total{outcome=\"matched\"} 0\n") {
		t.Error("no rows")
	}
	for _, absent := range []string{"leadetl_run_calls", "leadetl_run_credits", "leadetl_run_input_bytes"} {
		if strings.Contains(text, absent) {
			t.Errorf("there is a %s where nothing is known of it", absent)
		}
	}
}

// TestMetricsSayWhyCallsWait: one reason at a time, and the time of all.
func TestMetricsSayWhyCallsWait(t *testing.T) {
	meter := &stats.CallCounters{}
	for _, now := range stats.WaitReasons {
		meter.Paced(func() pace.Snapshot {
			return pace.Snapshot{Reason: now, Waited: map[pace.Reason]time.Duration{now: 1500 * time.Millisecond}}
		})
		text := metricsText(t, &stats.Progress{Calls: meter})
		for _, reason := range stats.WaitReasons {
			value := "0"
			if reason == now {
				value = "1"
			}
			if want := fmt.Sprintf("leadetl_run_paused{reason=%q} %s\n", reason, value); !strings.Contains(text, want) {
				t.Errorf("waiting for %s: no %s", now, want)
			}
		}
		if want := fmt.Sprintf("leadetl_run_waiting_seconds_total{reason=%q} 1.5\n", now); !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
		if strings.Contains(text, "leadetl_run_rate_limit") {
			t.Error("a rate limit where nothing limits")
		}
	}
}

// TestMetricsOfSeveral: the usual metrics are of all, and each resolver has its own beside them.
func TestMetricsOfSeveral(t *testing.T) {
	var all, a, b stats.CallCounters
	a.Paced(func() pace.Snapshot {
		return pace.Snapshot{Reason: pace.Rate, Waited: map[pace.Reason]time.Duration{pace.Rate: time.Second}}
	})
	a.Asked(3)
	a.Closed(outcome.Matched)
	a.Called(time.Second, stats.CallAnswered)
	a.Settled(2)
	b.Called(time.Second, stats.CallAnswered)
	b.Settled(5)
	all.Sum([]stats.Resolver{{Name: "a", Counters: &a}, {Name: "b", Counters: &b}})
	text := metricsText(t, &stats.Progress{Calls: &all})
	for _, want := range []string{
		`leadetl_run_calls_total{class="answered"} 2`, `leadetl_run_credits_total 7`, `leadetl_run_call_seconds_count 2`,
		`leadetl_run_resolver_identifiers_total{resolver="a"} 3`, `leadetl_run_resolver_matched_total{resolver="a"} 1`, `leadetl_run_resolver_stored_total{resolver="b"} 0`,
		`leadetl_run_resolver_calls_total{class="answered",resolver="a"} 1`, `leadetl_run_resolver_credits_total{resolver="b"} 5`, `leadetl_run_resolver_unknown_calls{resolver="b"} 0`,
		`leadetl_run_resolver_waiting_seconds_total{reason="rate",resolver="a"} 1`, `leadetl_run_resolver_paused{reason="rate",resolver="a"} 1`, `leadetl_run_resolver_paused{reason="rate",resolver="b"} 0`,
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(text, "leadetl_run_paused") {
		t.Error("what all wait for is not known")
	}
}

func metricsText(t *testing.T, p *stats.Progress) string {
	t.Helper()
	answer := httptest.NewRecorder()
	metricsHandler(p).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("status %d", answer.Code)
	}
	return answer.Body.String()
}
