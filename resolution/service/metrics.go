package service

import (
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// metrics are what /metrics shows. No label holds an organization, or
// anything a caller sent.
type metrics struct {
	registry    *prometheus.Registry
	requests    *prometheus.CounterVec   // operation, status
	durations   *prometheus.HistogramVec // operation
	answers     *prometheus.CounterVec   // operation, outcome
	credits     *prometheus.CounterVec   // operation
	jobDuration *prometheus.HistogramVec // operation
	deliveries  *prometheus.CounterVec   // result
	rateLimited *prometheus.CounterVec   // limit
	failedAuth  prometheus.Counter
	answersLost prometheus.Counter
}

func newMetrics(s backlogState) *metrics {
	const namespace = "leadetl"
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, []string{"operation"})
	}
	m := &metrics{
		registry:  prometheus.NewRegistry(),
		requests:  counter("requests_total", "Requests answered.", "operation", "status"),
		durations: histogram("request_duration_seconds", "Time from a request's header to its answer.", prometheus.ExponentialBuckets(0.0005, 2, 15)),
		answers:   counter("answers_total", "Billable questions answered, by whether anything was found.", "operation", "outcome"),
		credits:   counter("credits_captured_total", "Credits charged.", "operation"),
		jobDuration: histogram("job_duration_seconds", "Time of the attempt that finished a keyword search.",
			prometheus.ExponentialBuckets(0.005, 2, 15)),
		deliveries:  counter("deliveries_total", "Attempts to deliver a callback, by what became of it.", "result"),
		rateLimited: counter("rate_limited_total", "Requests refused because of a limit of their organization.", "limit"),
		failedAuth: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "failed_auth_total", Help: "Requests with wrong or expired credentials.",
		}),
		answersLost: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "answers_lost_total", Help: "Answers that could not be written to their callers.",
		}),
	}
	m.registry.MustRegister(m.requests, m.durations, m.answers, m.credits, m.jobDuration, m.deliveries, m.rateLimited, m.failedAuth, m.answersLost,
		newWaiting(s), buildInfo(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// request counts a request that was answered.
func (m *metrics) request(name string, status int, took time.Duration) {
	m.requests.WithLabelValues(name, strconv.Itoa(status)).Inc()
	m.durations.WithLabelValues(name).Observe(took.Seconds())
}

// answered counts a billable question that was answered.
func (m *metrics) answered(o resolution.Operation, matched bool, credits int64) {
	outcome := "no_match"
	if matched {
		outcome = "match"
	}
	m.answers.WithLabelValues(string(o), outcome).Inc()
	m.credits.WithLabelValues(string(o)).Add(float64(credits))
}

// attempted counts an attempt to deliver a callback.
func (m *metrics) attempted(a state.Attempt) {
	result := a.State
	if result == state.Pending {
		result = "postponed"
	}
	m.deliveries.WithLabelValues(result).Inc()
}

func buildInfo() prometheus.Collector {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "leadetl", Name: "build_info", Help: "1, with the version as a label.",
		ConstLabels: prometheus.Labels{"version": version, "interface": wire.Version},
	})
	g.Set(1)
	return g
}
