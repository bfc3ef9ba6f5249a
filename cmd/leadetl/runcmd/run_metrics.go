package runcmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/observe"
	"github.com/leadetl/leadetl/cmd/leadetl/runview"
	"github.com/leadetl/leadetl/cmd/leadetl/wire"
	"github.com/leadetl/leadetl/pipeline/stats"
)

// listenMetrics serves metrics of a run at addr until close is called: /metrics
// for Prometheus, and /healthz. It exposes nothing about the people in the
// input. It logs the address.
func listenMetrics(addr string, progress *stats.Progress, log *slog.Logger) (close func() error, err error) {
	return wire.ServeMetrics("metrics_listen", addr, metricsHandler(progress), log)
}

// tellMetrics tells the metrics of a run to all who want them, until end is called with its error.
func (f *runFlags) tellMetrics(ctx context.Context, progress *stats.Progress, log *slog.Logger) (end func(error) error, err error) {
	closeListener := func() error { return nil }
	if f.metricsListen != "" {
		if closeListener, err = listenMetrics(f.metricsListen, progress, log); err != nil {
			return nil, err
		}
	}
	endFile := f.writeMetricsFile(progress, log)
	tell := observe.Telemetry(ctx, func() prometheus.Gatherer { return everyMetric(progress) }, log)
	return func(err error) error {
		tell(err)
		endFile()
		return errors.Join(err, closeListener())
	}, nil
}

func metricsHandler(progress *stats.Progress) http.Handler {
	registry := everyMetric(progress)
	routes := http.NewServeMux()
	routes.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry}))
	routes.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "ok")
	})
	return routes
}

// everyMetric has the metrics that /metrics serves.
func everyMetric(progress *stats.Progress) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	register(registry, progress)
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// register adds the metrics of a run and of its program.
func register(to prometheus.Registerer, progress *stats.Progress) {
	to.MustRegister(NewRunMetrics(progress), buildInfo())
}

// metricsEvery is the time between two files of metrics, as between two exports of OpenTelemetry.
const metricsEvery = time.Minute

// textfile ends the names of the files that node_exporter reads.
const textfile = ".prom"

// checkMetricsFile checks before a run whether metrics_file can be written.
func (f *runFlags) checkMetricsFile() error {
	folder := filepath.Dir(f.metricsFile)
	switch info, err := os.Stat(folder); {
	case f.metricsFile == "":
	case filepath.Ext(f.metricsFile) != textfile:
		return fmt.Errorf("metrics_file is %s; node_exporter reads files whose names end in %s", f.metricsFile, textfile)
	case err != nil || !info.IsDir():
		return fmt.Errorf("metrics_file: there is no folder %s; create it", folder)
	default:
		probe, err := os.CreateTemp(folder, ".leadetl-*")
		if err != nil {
			return fmt.Errorf("metrics_file: %s may not be written to; change its permissions", folder)
		}
		return errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	return nil
}

// writeMetricsFile writes metrics_file every minute and at the end, each time as a whole. Its name is a label, because
// node_exporter refuses two files with the same series. Metrics of Go and the process are left out: node_exporter
// has its own.
func (f *runFlags) writeMetricsFile(progress *stats.Progress, log *slog.Logger) (end func()) {
	if f.metricsFile == "" {
		return func() {}
	}
	registry := prometheus.NewRegistry()
	register(prometheus.WrapRegistererWith(prometheus.Labels{"file": filepath.Base(f.metricsFile)}, registry), progress)
	write := func() {
		if err := prometheus.WriteToTextfile(f.metricsFile, registry); err != nil {
			log.Warn("metrics_file cannot be written", "reason", err)
		}
	}
	stop := runview.Every(metricsEvery, write)
	return func() {
		stop()
		write()
	}
}

func buildInfo() prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "leadetl", Name: "build_info", Help: "1, with the version as a label.",
		ConstLabels: prometheus.Labels{"version": cli.ProgramVersion()},
	})
	g.Set(1)
	return g
}

// callBounds are the histogram buckets of call durations: from half a
// millisecond to 16 s, each twice the one before.
var callBounds = func() (bounds []time.Duration) {
	for b := 500 * time.Microsecond; b < 20*time.Second; b *= 2 {
		bounds = append(bounds, b)
	}
	return bounds
}()

// runMetrics collects the metrics of a run on request.
type runMetrics struct {
	progress *stats.Progress
	all      []*prometheus.Desc

	rows, known, malformed, rowsRead, bytesRead, bytes, parts                *prometheus.Desc
	identifiers, stored, duplicates, calls, retries, callSeconds, waiting    *prometheus.Desc
	credits, earlierCredits, unknown, parked, refused, quarantined, inFlight *prometheus.Desc
	otherAddress, queued, rateLimit, paused                                  *prometheus.Desc
	// of one resolver
	rIdentifiers, rMatched, rStored, rCalls, rCredits, rUnknown, rWaiting, rPaused, rBalance *prometheus.Desc
}

// NewRunMetrics returns the metrics of a run whose name begins with leadetl_run_.
func NewRunMetrics(p *stats.Progress) prometheus.Collector {
	var all []*prometheus.Desc
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		d := prometheus.NewDesc("leadetl_run_"+name, help, labels, nil)
		all = append(all, d)
		return d
	}
	m := &runMetrics{
		progress:       p,
		rows:           desc("rows_total", "Rows of answered batches; those of earlier parts when the run passes them.", "outcome"),
		known:          desc("earlier_rows_total", "Rows of parts that earlier runs made."),
		malformed:      desc("malformed_total", "Malformed lines."),
		rowsRead:       desc("read_rows_total", "Rows read, ahead of those that are answered."),
		bytesRead:      desc("read_bytes_total", "Bytes of the input read, as stored."),
		bytes:          desc("input_bytes", "Bytes of the input, as stored; absent if not known."),
		parts:          desc("parts_total", "Parts published, those of earlier runs too."),
		identifiers:    desc("identifiers_total", "Distinct identifiers of rows."),
		stored:         desc("stored_total", "Identifiers answered from stored answers."),
		duplicates:     desc("duplicates_total", "Rows with an identifier of another row."),
		calls:          desc("calls_total", "Requests sent: answered, replayed, pending, or how they failed.", "class"),
		retries:        desc("retries_total", "Identifiers sent again, by how they failed.", "class"),
		callSeconds:    desc("call_seconds", "Time from a request to its answer."),
		waiting:        desc("waiting_seconds_total", "Time in which any call waited.", "reason"),
		credits:        desc("credits_total", "Credits that the answers of this run cost."),
		earlierCredits: desc("earlier_credits", "Credits that earlier runs of the same dataset paid."),
		unknown:        desc("unknown_calls", "Calls that may have been billed and have no answer."),
		parked:         desc("parked", "Calls whose answer comes later."),
		refused:        desc("refused_total", "Identifiers that the service refused."),
		quarantined:    desc("quarantined_total", "Members of answers left out as invalid."),
		otherAddress:   desc("answered_under_another_address_total", "Answers with data of an address that was not asked about."),
		inFlight:       desc("in_flight", "Calls in flight."),
		queued:         desc("waiting_calls", "Calls that wait."),
		rateLimit:      desc("rate_limit", "Calls allowed a second; absent without a limit."),
		paused:         desc("paused", "1 for the reason that calls wait now.", "reason"),
	}
	of := func(name, help string, labels ...string) *prometheus.Desc {
		return desc("resolver_"+name, help+" Of each resolver.", append([]string{"resolver"}, labels...)...)
	}
	m.rIdentifiers = of("identifiers_total", "Distinct identifiers that came to it.")
	m.rMatched = of("matched_total", "Identifiers that it matched.")
	m.rStored = of("stored_total", "Identifiers answered from stored answers.")
	m.rCalls = of("calls_total", "Requests sent.", "class")
	m.rCredits = of("credits_total", "Credits that the answers of this run cost.")
	m.rUnknown = of("unknown_calls", "Calls that may have been billed and have no answer.")
	m.rWaiting = of("waiting_seconds_total", "Time in which any call waited.", "reason")
	m.rBalance = of("balance", "What it said was left before the first call; absent if it does not say it.")
	m.rPaused = of("paused", "1 for the reason that calls wait now.", "reason")
	m.all = all
	return m
}

// Describe implements prometheus.Collector.
func (m *runMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range m.all {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *runMetrics) Collect(metrics chan<- prometheus.Metric) {
	to := measured(metrics)
	s := m.progress.Snapshot()
	for outcome, n := range s.Done.ByOutcome() {
		to.counter(m.rows, float64(*n), outcome)
	}
	to.counter(m.known, float64(s.Known))
	to.counter(m.malformed, float64(s.Done.Malformed))
	to.counter(m.rowsRead, float64(s.RowsRead))
	to.counter(m.bytesRead, float64(s.BytesRead))
	if s.BytesTotal >= 0 {
		to.gauge(m.bytes, float64(s.BytesTotal))
	}
	to.counter(m.parts, float64(s.Parts))
	if s.Calls != nil {
		m.collectCalls(to, s.Calls)
	}
}

func (m *runMetrics) collectCalls(to measured, c *stats.CallSnapshot) {
	to.counter(m.identifiers, float64(c.Asked))
	to.counter(m.stored, float64(c.Stored))
	to.counter(m.duplicates, float64(c.Duplicates))
	for class, n := range c.ByClass {
		to.counter(m.calls, float64(n), class)
	}
	for class, n := range c.Retries {
		to.counter(m.retries, float64(n), class)
	}
	to <- m.latency()
	for reason, waited := range c.Waits {
		to.counter(m.waiting, waited.Seconds(), reason)
	}
	to.counter(m.credits, float64(c.Credits))
	to.gauge(m.earlierCredits, float64(c.EarlierCredits))
	to.gauge(m.unknown, float64(c.Unknown))
	to.gauge(m.parked, float64(c.Parked))
	to.counter(m.refused, float64(c.Refused))
	to.counter(m.quarantined, float64(c.Quarantined))
	to.counter(m.otherAddress, float64(c.OtherAddress))
	to.gauge(m.inFlight, float64(c.InFlight))
	to.gauge(m.queued, float64(c.Waiting))
	if c.Rate > 0 {
		to.gauge(m.rateLimit, c.Rate)
	}
	resolvers := c.Resolvers
	if resolvers == nil {
		to.paused(m.paused, c)
	}
	if resolvers == nil && m.progress.Resolver != "" {
		resolvers = []stats.ResolverSnapshot{{Name: m.progress.Resolver, Calls: *c}}
	}
	for _, r := range resolvers {
		to.counter(m.rIdentifiers, float64(r.Calls.Asked), r.Name)
		to.counter(m.rMatched, float64(r.Calls.Matched), r.Name)
		to.counter(m.rStored, float64(r.Calls.Stored), r.Name)
		for class, n := range r.Calls.ByClass {
			to.counter(m.rCalls, float64(n), r.Name, class)
		}
		to.counter(m.rCredits, float64(r.Calls.Credits), r.Name)
		to.gauge(m.rUnknown, float64(r.Calls.Unknown), r.Name)
		for reason, waited := range r.Calls.Waits {
			to.counter(m.rWaiting, waited.Seconds(), r.Name, reason)
		}
		if r.Calls.Balance != nil {
			to.gauge(m.rBalance, float64(*r.Calls.Balance), r.Name)
		}
		to.paused(m.rPaused, &r.Calls, r.Name)
	}
}

// measured takes the metrics of one collection.
type measured chan<- prometheus.Metric

func (to measured) counter(d *prometheus.Desc, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
}

func (to measured) gauge(d *prometheus.Desc, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

// paused says for each reason whether calls wait for it now.
func (to measured) paused(d *prometheus.Desc, c *stats.CallSnapshot, labels ...string) {
	for _, reason := range stats.WaitReasons {
		value := 0.0
		if c.Reason == string(reason) {
			value = 1
		}
		to.gauge(d, value, append(labels, string(reason))...)
	}
}

// latency returns the histogram of call durations.
func (m *runMetrics) latency() prometheus.Metric {
	atMost, count, sum := m.progress.Calls.Latencies(callBounds)
	buckets := map[float64]uint64{}
	for i, bound := range callBounds {
		buckets[bound.Seconds()] = uint64(atMost[i])
	}
	return prometheus.MustNewConstHistogram(m.callSeconds, uint64(count), sum.Seconds(), buckets)
}
