//go:build unix

package clitest

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracespb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metricpb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector takes what programs of the test send over OTLP/HTTP.
type Collector struct {
	testing.TB
	mu      sync.Mutex
	metrics []*metricpb.ResourceMetrics
	spans   []*tracepb.Span
	text    string // of all
}

// StartCollector starts a collector, and names it in the environment of programs that are started from now on.
func StartCollector(t *testing.T) *Collector {
	c := &Collector{TB: t}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=collector-key")
	return c
}

func (c *Collector) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	var body io.Reader = q.Body
	if q.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			c.Error(err)
			return
		}
	}
	data, err := io.ReadAll(body)
	if err != nil || q.Header.Get("Content-Type") != "application/x-protobuf" || q.Header.Get("Api-Key") != "collector-key" {
		c.Errorf("%v, %v", q.Header, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var answer proto.Message = new(metricspb.ExportMetricsServiceResponse)
	switch q.URL.Path {
	case "/v1/metrics":
		var sent metricspb.ExportMetricsServiceRequest
		err = proto.Unmarshal(data, &sent)
		c.metrics, c.text = append(c.metrics, sent.ResourceMetrics...), c.text+sent.String()
	case "/v1/traces":
		var sent tracespb.ExportTraceServiceRequest
		err = proto.Unmarshal(data, &sent)
		c.text += sent.String()
		for _, of := range sent.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
		answer = new(tracespb.ExportTraceServiceResponse)
	default:
		c.Errorf("sent to %s", q.URL.Path)
	}
	if err != nil {
		c.Error(err)
	}
	data, _ = proto.Marshal(answer)
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(data)
}

// Metrics are what came of a run.
type Metrics []*metricpb.ResourceMetrics

// Taken is what came since the last call.
func (c *Collector) Taken() (metrics Metrics, spans []*tracepb.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	metrics, spans = c.metrics, c.spans
	c.metrics, c.spans = nil, nil
	return metrics, spans
}

// Text is all that ever came.
func (c *Collector) Text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text
}

// Last is the last value of a series of a counter or a gauge, -1 without it.
func (m Metrics) Last(name, label string) float64 {
	last := -1.0
	for _, of := range m {
		for _, scope := range of.ScopeMetrics {
			for _, m := range scope.Metrics {
				if m.Name != name {
					continue
				}
				for _, p := range append(m.GetSum().GetDataPoints(), m.GetGauge().GetDataPoints()...) {
					if label == "" || len(p.Attributes) > 0 && p.Attributes[0].Value.GetStringValue() == label {
						last = p.GetAsDouble()
					}
				}
			}
		}
	}
	return last
}
