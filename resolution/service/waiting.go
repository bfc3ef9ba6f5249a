package service

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// waiting shows what waits in the state. It is read when somebody looks.
type waiting struct {
	state                     backlogState
	jobs, deliveries          *prometheus.Desc // by state
	oldestJob, oldestDelivery *prometheus.Desc // seconds since 1970; absent without one
}

func newWaiting(s backlogState) *waiting {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("leadetl_"+name, help, labels, nil)
	}
	return &waiting{
		state:          s,
		jobs:           desc("jobs", "Unfinished keyword searches.", "state"),
		deliveries:     desc("deliveries", "Callbacks that were not delivered.", "state"),
		oldestJob:      desc("oldest_job_timestamp_seconds", "When the first unfinished keyword search was asked for."),
		oldestDelivery: desc("oldest_delivery_due_timestamp_seconds", "When the first pending callback was due, or is."),
	}
}

// Describe is a prometheus.Collector's.
func (w *waiting) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{w.jobs, w.deliveries, w.oldestJob, w.oldestDelivery} {
		to <- d
	}
}

// Collect is a prometheus.Collector's.
func (w *waiting) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	stats, err := w.state.Stats(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(w.jobs, err)
		return
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(w.jobs, float64(stats.Queued), string(state.Queued))
	gauge(w.jobs, float64(stats.Processing), string(state.Processing))
	gauge(w.deliveries, float64(stats.Pending), state.Pending)
	gauge(w.deliveries, float64(stats.Dead), state.Dead)
	if !stats.OldestJob.IsZero() {
		gauge(w.oldestJob, float64(stats.OldestJob.UnixMilli())/1000)
	}
	if !stats.OldestDue.IsZero() {
		gauge(w.oldestDelivery, float64(stats.OldestDue.UnixMilli())/1000)
	}
}
