//go:build unix

package remote

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracespb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metricpb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// otlpReceiver takes what is sent over OTLP/HTTP.
type otlpReceiver struct {
	testing.TB
	mu      sync.Mutex
	metrics []*metricpb.ResourceMetrics
	spans   []*tracepb.ResourceSpans
	text    string // of all
}

func (r *otlpReceiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	var body io.Reader = q.Body
	if q.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			r.Error(err)
			return
		}
	}
	data, err := io.ReadAll(body)
	if err != nil || q.Header.Get("Content-Type") != "application/x-protobuf" || q.Header.Get("Api-Key") != "collector-key" {
		r.Errorf("%v, %v", q.Header, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var answer proto.Message = new(metricspb.ExportMetricsServiceResponse)
	switch q.URL.Path {
	case "/v1/metrics":
		var sent metricspb.ExportMetricsServiceRequest
		err = proto.Unmarshal(data, &sent)
		r.metrics, r.text = append(r.metrics, sent.ResourceMetrics...), r.text+sent.String()
	case "/v1/traces":
		var sent tracespb.ExportTraceServiceRequest
		err = proto.Unmarshal(data, &sent)
		r.spans, r.text = append(r.spans, sent.ResourceSpans...), r.text+sent.String()
		answer = new(tracespb.ExportTraceServiceResponse)
	default:
		r.Errorf("sent to %s", q.URL.Path)
	}
	if err != nil {
		r.Error(err)
	}
	data, _ = proto.Marshal(answer)
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(data)
}

// taken is what came since the last call.
func (r *otlpReceiver) taken() (metrics []*metricpb.ResourceMetrics, spans []*tracepb.ResourceSpans) {
	r.mu.Lock()
	defer r.mu.Unlock()
	metrics, spans = r.metrics, r.spans
	r.metrics, r.spans = nil, nil
	return metrics, spans
}

// valueOf is the value of a series of a counter or a gauge, -1 without it.
func valueOf(metrics []*metricpb.ResourceMetrics, name, label string) float64 {
	for _, of := range metrics {
		for _, scope := range of.ScopeMetrics {
			for _, m := range scope.Metrics {
				if m.Name != name {
					continue
				}
				for _, p := range append(m.GetSum().GetDataPoints(), m.GetGauge().GetDataPoints()...) {
					if label == "" || len(p.Attributes) > 0 && p.Attributes[0].Value.GetStringValue() == label {
						return p.GetAsDouble()
					}
				}
			}
		}
	}
	return -1
}

// TestTelemetry: a collector has the metrics of a run at its end, and one span below that of its caller; of no
// file, setting or person.
func TestTelemetry(t *testing.T) {
	r := &otlpReceiver{TB: t}
	server := httptest.NewServer(r)
	defer server.Close()
	const caller = "0af7651916cd43dd8448eb211c80319c"
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=collector-key")
	t.Setenv("TRACEPARENT", "00-"+caller+"-b7ad6b7169203331-01")
	folder := t.TempDir()
	run := func(want int, more ...string) {
		t.Helper()
		p := clitest.StartProgram(t, append([]string{"run", "email_to_hem", "--in", clitest.Samples + "/emails.csv", "--out", filepath.Join(folder, "canary-out"), "--state", t.TempDir(), "--overwrite"}, more...)...)
		if code := p.Code(); code != want || strings.Contains(p.Said.String(), "OpenTelemetry") {
			t.Fatalf("exit code %d, want %d\n%s", code, want, p.Said)
		}
	}
	for _, c := range []struct {
		code   int
		flags  []string
		status tracepb.Status_StatusCode
	}{{cli.ExitDone, nil, tracepb.Status_STATUS_CODE_UNSET}, {cli.ExitRejects, []string{"--set", "min_rows=1000"}, tracepb.Status_STATUS_CODE_ERROR}} {
		run(c.code, c.flags...)
		metrics, spans := r.taken()
		if valueOf(metrics, "leadetl_run_rows_total", "matched") < 1 && valueOf(metrics, "leadetl_run_rows", "matched") < 1 || valueOf(metrics, "go_goroutines", "") < 1 {
			t.Errorf("metrics %v", metrics)
		}
		if len(spans) != 1 || len(spans[0].ScopeSpans) != 1 || len(spans[0].ScopeSpans[0].Spans) != 1 {
			t.Fatalf("spans %v", spans)
		}
		span := spans[0].ScopeSpans[0].Spans[0]
		if span.Name != "leadetl run" || hex.EncodeToString(span.TraceId) != caller || hex.EncodeToString(span.ParentSpanId) != "b7ad6b7169203331" ||
			span.GetStatus().GetCode() != c.status || len(span.Attributes) != 1 || span.Attributes[0].Value.GetIntValue() != int64(c.code) {
			t.Errorf("span %v", span)
		}
	}
	for _, other := range []string{"canary", "emails.csv", "@", folder, "min_rows", "email_to_hem"} {
		if strings.Contains(r.text, other) {
			t.Errorf("%s is in what is sent", other)
		}
	}

	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	run(cli.ExitDone)
	if metrics, spans := r.taken(); len(metrics) > 0 || len(spans) != 1 {
		t.Errorf("without metrics: %v, %v", metrics, spans)
	}
	t.Setenv("OTEL_SDK_DISABLED", "true")
	run(cli.ExitDone)
	if metrics, spans := r.taken(); len(metrics)+len(spans) > 0 {
		t.Errorf("disabled: %v, %v", metrics, spans)
	}
}

// TestTelemetryTrouble: whatever a collector does, the run is the same, with a warning and five seconds at most.
func TestTelemetryTrouble(t *testing.T) {
	refusing := httptest.NewServer(http.NotFoundHandler())
	defer refusing.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and answers nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	const fails = "the collector of OpenTelemetry does not take what is sent"
	for name, c := range map[string]struct {
		endpoint, protocol, says string
		times                    int
	}{
		"nobody":     {"http://127.0.0.1:1", "", fails, 1},
		"refuses":    {refusing.URL, "", fails, 1},
		"silent":     {"http://" + silent.Addr().String(), "", fails, 1},
		"grpc":       {"http://127.0.0.1:4317", "grpc", "http/protobuf, and the endpoint to the port for it, which is 4318", 2},
		"no address": {"me:canary-word@collector", "", "this is no address of a collector", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.endpoint)
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", c.protocol)
			began := time.Now()
			p := clitest.StartProgram(t, "run", "email_to_hem", "--in", clitest.Samples+"/emails.csv", "--out", filepath.Join(t.TempDir(), "out"), "--state", t.TempDir())
			code, said := p.Code(), p.Said.String()
			if code != cli.ExitDone || strings.Count(said, "level=WARN") != c.times || strings.Count(said, c.says) != c.times || strings.Contains(said, "canary-word") {
				t.Errorf("exit code %d\n%s", code, said)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("the run took %s", took)
			}
		})
	}
}
