package collectortest

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

const root = "../../.."

// kept is an exporter that keeps what comes.
type kept struct {
	component.StartFunc
	component.ShutdownFunc
	metrics consumertest.MetricsSink
	spans   consumertest.TracesSink
}

type keptMetrics struct {
	*kept
	*consumertest.MetricsSink
}

type keptTraces struct {
	*kept
	*consumertest.TracesSink
}

func (k *kept) factories() (f otelcol.Factories, err error) {
	f.Telemetry = otelconftelemetry.NewFactory()
	if f.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory()); err != nil {
		return f, err
	}
	f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](exporter.NewFactory(component.MustNewType("kept"), func() component.Config { return &struct{}{} },
		exporter.WithMetrics(func(context.Context, exporter.Settings, component.Config) (exporter.Metrics, error) {
			return keptMetrics{k, &k.metrics}, nil
		}, component.StabilityLevelStable),
		exporter.WithTraces(func(context.Context, exporter.Settings, component.Config) (exporter.Traces, error) {
			return keptTraces{k, &k.spans}, nil
		}, component.StabilityLevelStable)))
	return f, err
}

// start starts a collector that takes OTLP/HTTP at an address.
func start(t *testing.T) (k *kept, address string) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = free.Addr().String()
	free.Close()
	k = &kept{}
	c, err := otelcol.NewCollector(otelcol.CollectorSettings{
		Factories: k.factories, BuildInfo: component.NewDefaultBuildInfo(), DisableGracefulShutdown: true,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs: []string{"yaml:" + fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: "%s"}}}}
exporters: {kept: {}}
service:
  telemetry: {metrics: {level: none}, logs: {level: error}}
  pipelines: {metrics: {receivers: [otlp], exporters: [kept]}, traces: {receivers: [otlp], exporters: [kept]}}
`, address)},
			ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(context.Background()) }()
	t.Cleanup(func() {
		c.Shutdown()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if answer, err := http.Get("http://" + address); err == nil {
			answer.Body.Close()
			return k, address
		}
		if time.Now().After(end) {
			t.Fatal("the collector does not listen")
		}
	}
}

// text is all that came, as the collector prints it.
func (k *kept) text(t *testing.T) (text string) {
	t.Helper()
	for _, m := range k.metrics.AllMetrics() {
		data, err := new(pmetric.JSONMarshaler).MarshalMetrics(m)
		if err != nil {
			t.Fatal(err)
		}
		text += string(data)
	}
	for _, s := range k.spans.AllTraces() {
		data, err := new(ptrace.JSONMarshaler).MarshalTraces(s)
		if err != nil {
			t.Fatal(err)
		}
		text += string(data)
	}
	return text
}

// TestCollector: a collector takes the metrics of a run and its span, of no file, setting or person. What it would not
// take is said.
func TestCollector(t *testing.T) {
	build := exec.Command("go", "tool", "-n", "leadetl") // builds it once, into the build cache
	build.Dir, build.Stderr = root, os.Stderr
	program, err := build.Output()
	if err != nil {
		t.Fatal(err)
	}
	k, address := start(t)
	folder := t.TempDir()
	run := func(environment ...string) string {
		t.Helper()
		c := exec.Command(strings.TrimSpace(string(program)), "run", "email_to_hem", "--in", "testdata/emails.csv", "--out", filepath.Join(folder, "canary-out"), "--overwrite", "--set", "name=canary-job")
		c.Dir = root
		c.Env = append(append(os.Environ(), "XDG_STATE_HOME="+folder, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+address), environment...)
		said, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		return string(said)
	}
	if said := run("OTEL_EXPORTER_OTLP_PROTOCOL=grpc"); strings.Count(said, "set it to http/protobuf, and the endpoint to the port for it, which is 4318") != 2 || k.text(t) != "" {
		t.Errorf("by grpc\n%s\ncame %s", said, k.text(t))
	}
	if said := run("TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"); strings.Contains(said, "OpenTelemetry") {
		t.Error(said)
	}
	values := map[string]float64{}
	of := []pcommon.Resource{}
	for _, m := range k.metrics.AllMetrics() {
		for _, r := range m.ResourceMetrics().All() {
			of = append(of, r.Resource())
			for _, scope := range r.ScopeMetrics().All() {
				for _, metric := range scope.Metrics().All() {
					for _, p := range points(metric) {
						name := metric.Name()
						if outcome, has := p.Attributes().Get("outcome"); has {
							name += " " + outcome.AsString()
						}
						values[name] = p.DoubleValue()
					}
				}
			}
		}
	}
	if values["leadetl_run_rows_total matched"] != 29 || values["leadetl_build_info"] != 1 || values["go_goroutines"] < 1 {
		t.Errorf("metrics %v", values)
	}
	for _, s := range k.spans.AllTraces() {
		r := s.ResourceSpans().At(0)
		of = append(of, r.Resource())
		span := r.ScopeSpans().At(0).Spans().At(0)
		if s.SpanCount() != 1 || span.Name() != "leadetl run" || span.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" || span.ParentSpanID().String() != "b7ad6b7169203331" ||
			!maps.Equal(span.Attributes().AsRaw(), map[string]any{"process.exit.code": int64(0)}) {
			t.Errorf("span %v", span)
		}
	}
	for _, r := range of {
		names := slices.Sorted(maps.Keys(r.Attributes().AsRaw()))
		if got := strings.Join(names, " "); got != "service.name service.version telemetry.sdk.language telemetry.sdk.name telemetry.sdk.version" {
			t.Errorf("attributes %s", got)
		}
	}
	if len(of) < 2 {
		t.Error("no span came, or no metrics")
	}
	for _, other := range []string{"canary", "emails.csv", "@", folder, "email_to_hem"} {
		if strings.Contains(k.text(t), other) {
			t.Errorf("%s is in what came", other)
		}
	}
}

func points(m pmetric.Metric) (all []pmetric.NumberDataPoint) {
	slice := pmetric.NewNumberDataPointSlice()
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		slice = m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		slice = m.Sum().DataPoints()
	}
	for _, p := range slice.All() {
		all = append(all, p)
	}
	return all
}
