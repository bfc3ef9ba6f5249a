package workercmd

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leadetl/leadetl/cmd/leadetl/wire"
)

// health is what a worker says about itself: whether it takes steps, and which
// it has done.
type health struct {
	ready    atomic.Bool
	registry *prometheus.Registry
	working  *prometheus.GaugeVec
	done     *prometheus.HistogramVec
}

func newHealth() *health {
	h := &health{registry: prometheus.NewRegistry()}
	h.working = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "leadetl", Name: "worker_steps_at_work", Help: "Steps that the worker does now.",
	}, []string{"step"})
	h.done = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "leadetl", Name: "worker_step_seconds", Help: "Time of the steps that ended, with result done or failed.",
		Buckets: prometheus.ExponentialBuckets(0.05, 4, 9),
	}, []string{"step", "result"})
	h.registry.MustRegister(h.working, h.done, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return h
}

// Began counts a step that begins.
func (h *health) Began(step string) { h.working.WithLabelValues(step).Inc() }

// Ended counts a step that ends.
func (h *health) Ended(step string, took time.Duration, failed bool) {
	result := "done"
	if failed {
		result = "failed"
	}
	h.working.WithLabelValues(step).Dec()
	h.done.WithLabelValues(step, result).Observe(took.Seconds())
}

// listen serves /metrics, /healthz and /readyz until close is called.
func (h *health) listen(addr string, log *slog.Logger) (close func() error, err error) {
	return wire.ServeMetrics("--metrics-listen", addr, h.routes(), log)
}

func (h *health) routes() http.Handler {
	routes := http.NewServeMux()
	routes.Handle("GET /metrics", promhttp.HandlerFor(h.registry, promhttp.HandlerOpts{Registry: h.registry}))
	routes.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	routes.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !h.ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, "the worker takes no steps")
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return routes
}
