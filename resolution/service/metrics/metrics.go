// Package metrics counts what a service does, for Prometheus.
package metrics

import (
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// Metrics are what /metrics shows. No label contains an organization, or
// anything a caller sent.
type Metrics struct {
	registry    *prometheus.Registry
	requests    *prometheus.CounterVec   // operation, status
	durations   *prometheus.HistogramVec // operation
	answers     *prometheus.CounterVec   // operation, outcome
	credits     *prometheus.CounterVec   // operation
	JobDuration *prometheus.HistogramVec // operation
	deliveries  *prometheus.CounterVec   // result
	RateLimited *prometheus.CounterVec   // limit
	FailedAuth  *prometheus.CounterVec   // reason
	AnswersLost prometheus.Counter
	damaged     prometheus.Gauge
}

// The values of labels that name what happened.
const (
	match, noMatch = "match", "no_match"
	postponed      = "postponed" // a callback, for another attempt

	UnknownKey     = "key: not known"
	ExpiredKey     = "key: expired"
	WrongSystemKey = "system key: wrong"
)

// The limits on unfinished searches and on stored bytes. The others are rates.
const (
	ActiveLimit = "active"
	KeptLimit   = "kept"
)

// New makes metrics that also show the backlog of a store.
func New(s Backlog) *Metrics {
	const namespace = "leadetl"
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, []string{"operation"})
	}
	m := &Metrics{
		registry:  prometheus.NewRegistry(),
		requests:  counter("requests_total", "Requests answered.", "operation", "status"),
		durations: histogram("request_duration_seconds", "Time from a request's header to its answer.", prometheus.ExponentialBuckets(0.0005, 2, 15)),
		answers:   counter("answers_total", "Billable questions answered, by whether anything was found.", "operation", "outcome"),
		credits:   counter("credits_captured_total", "Credits charged.", "operation"),
		JobDuration: histogram("job_duration_seconds", "Time of the attempt that finished a keyword search.",
			prometheus.ExponentialBuckets(0.005, 2, 15)),
		deliveries:  counter("deliveries_total", "Attempts to deliver a callback, by what became of it.", "result"),
		RateLimited: counter("rate_limited_total", "Requests refused because of a limit of their organization.", "limit"),
		FailedAuth:  counter("failed_auth_total", "Requests with wrong or expired credentials, by what was wrong.", "reason"),
		damaged: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Name: "state_damaged", Help: "1 if the last check of the state's database found damage.",
		}),
		AnswersLost: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "answers_lost_total", Help: "Answers that could not be written to their callers.",
		}),
	}
	m.registry.MustRegister(m.requests, m.durations, m.answers, m.credits, m.JobDuration, m.deliveries, m.RateLimited, m.FailedAuth, m.AnswersLost, m.damaged,
		newBacklog(s), buildInfo(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.begin()
	return m
}

// begin shows what has not happened yet as 0. Otherwise a rate would miss the first
// of each kind. Statuses of requests, and the reasons against tokens, are as many as
// callers think of: of these, only what alerts are about begins at 0.
func (m *Metrics) begin() {
	for _, o := range append(slices.Clone(resolution.SingleRecord), resolution.Keyword...) {
		for _, status := range []int{http.StatusOK, http.StatusInternalServerError, http.StatusServiceUnavailable} {
			m.requests.WithLabelValues(string(o), strconv.Itoa(status))
		}
		m.durations.WithLabelValues(string(o))
		m.answers.WithLabelValues(string(o), noMatch)
		m.answers.WithLabelValues(string(o), match)
		m.credits.WithLabelValues(string(o))
	}
	for _, o := range resolution.Keyword {
		m.JobDuration.WithLabelValues(string(o))
	}
	for _, result := range []string{state.Delivered, postponed, state.Dead} {
		m.deliveries.WithLabelValues(result)
	}
	for _, limit := range []string{"single", "create", "result", ActiveLimit, KeptLimit} {
		m.RateLimited.WithLabelValues(limit)
	}
	for _, reason := range []string{UnknownKey, ExpiredKey, WrongSystemKey} {
		m.FailedAuth.WithLabelValues(reason)
	}
}

// SetDamaged notes what the last check of the state found.
func (m *Metrics) SetDamaged(damaged bool) {
	m.damaged.Set(0)
	if damaged {
		m.damaged.Set(1)
	}
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// Request counts a request that was answered.
func (m *Metrics) Request(name string, status int, took time.Duration) {
	m.requests.WithLabelValues(name, strconv.Itoa(status)).Inc()
	m.durations.WithLabelValues(name).Observe(took.Seconds())
}

// Answered counts an answer to a billable call.
func (m *Metrics) Answered(o resolution.Operation, matched bool, credits int64) {
	outcome := noMatch
	if matched {
		outcome = match
	}
	m.answers.WithLabelValues(string(o), outcome).Inc()
	m.credits.WithLabelValues(string(o)).Add(float64(credits))
}

// Attempted counts an attempt to deliver a callback.
func (m *Metrics) Attempted(a state.Attempt) {
	result := a.State
	if result == state.Pending {
		result = postponed
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
