//go:build unix

package remote

import (
	"encoding/hex"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
	"github.com/leadetl/leadetl/cmd/leadetl/clitest"
)

// TestTelemetry: a collector has the metrics of a run at its end, and one span below that of its caller; of no
// file, setting or person.
func TestTelemetry(t *testing.T) {
	r := clitest.StartCollector(t)
	const caller = "0af7651916cd43dd8448eb211c80319c"
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
		metrics, spans := r.Taken()
		if metrics.Last("leadetl_run_rows_total", "matched") < 1 || metrics.Last("go_goroutines", "") < 1 {
			t.Errorf("metrics %v", metrics)
		}
		if len(spans) != 1 {
			t.Fatalf("spans %v", spans)
		}
		span := spans[0]
		if span.Name != "leadetl run" || hex.EncodeToString(span.TraceId) != caller || hex.EncodeToString(span.ParentSpanId) != "b7ad6b7169203331" ||
			span.GetStatus().GetCode() != c.status || len(span.Attributes) != 1 || span.Attributes[0].Value.GetIntValue() != int64(c.code) {
			t.Errorf("span %v", span)
		}
	}
	for _, other := range []string{"canary", "emails.csv", "@", folder, "min_rows", "email_to_hem"} {
		if strings.Contains(r.Text(), other) {
			t.Errorf("%s is in what is sent", other)
		}
	}

	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	run(cli.ExitDone)
	if metrics, spans := r.Taken(); len(metrics) > 0 || len(spans) != 1 {
		t.Errorf("without metrics: %v, %v", metrics, spans)
	}
	t.Setenv("OTEL_SDK_DISABLED", "true")
	run(cli.ExitDone)
	if metrics, spans := r.Taken(); len(metrics)+len(spans) > 0 {
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
