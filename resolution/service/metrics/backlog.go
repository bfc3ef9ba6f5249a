package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// Backlog is a store that counts its unfinished jobs and callbacks.
type Backlog interface {
	Stats(ctx context.Context) (state.Stats, error)
}

// backlog shows the counts of a Backlog. They are read for every scrape.
type backlog struct {
	state                     Backlog
	jobs, deliveries          *prometheus.Desc // by state
	oldestJob, oldestDelivery *prometheus.Desc // seconds since 1970; absent without one
	jobAge, deliveryDelay     *prometheus.Desc // seconds; 0 without one
	bytes, freeBytes          *prometheus.Desc
}

func newBacklog(s Backlog) *backlog {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("leadetl_"+name, help, labels, nil)
	}
	return &backlog{
		state:          s,
		jobs:           desc("jobs", "Unfinished keyword searches.", "state"),
		deliveries:     desc("deliveries", "Callbacks that were not delivered.", "state"),
		oldestJob:      desc("oldest_job_timestamp_seconds", "When the first unfinished keyword search was asked for."),
		oldestDelivery: desc("oldest_delivery_due_timestamp_seconds", "When the first pending callback was due, or is."),
		jobAge:         desc("oldest_job_age_seconds", "How long the first unfinished keyword search has waited; 0 without one."),
		deliveryDelay:  desc("delivery_delay_seconds", "How long the first pending callback has been due; 0 if none is."),
		bytes:          desc("state_bytes", "Size of the state's database and its log."),
		freeBytes:      desc("state_free_bytes", "The part of the database that is free for later rows."),
	}
}

// Describe implements prometheus.Collector.
func (b *backlog) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{b.jobs, b.deliveries, b.oldestJob, b.oldestDelivery, b.jobAge, b.deliveryDelay, b.bytes, b.freeBytes} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (b *backlog) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	stats, err := b.state.Stats(ctx)
	if err != nil {
		to <- prometheus.NewInvalidMetric(b.jobs, err)
		return
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(b.jobs, float64(stats.Queued), string(state.Queued))
	gauge(b.jobs, float64(stats.Processing), string(state.Processing))
	gauge(b.deliveries, float64(stats.Pending), state.Pending)
	gauge(b.deliveries, float64(stats.Dead), state.Dead)
	gauge(b.bytes, float64(stats.Bytes))
	gauge(b.freeBytes, float64(stats.FreeBytes))
	since := func(began time.Time, at, age *prometheus.Desc) {
		waited := 0.0
		if !began.IsZero() {
			gauge(at, float64(began.UnixMilli())/1000)
			waited = max(0, time.Since(began).Seconds())
		}
		gauge(age, waited)
	}
	since(stats.OldestJob, b.oldestJob, b.jobAge)
	since(stats.OldestDue, b.oldestDelivery, b.deliveryDelay)
}
