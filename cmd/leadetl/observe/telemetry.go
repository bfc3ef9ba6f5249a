package observe

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/leadetl/leadetl/cmd/leadetl/cli"
)

const (
	// telemetryWait bounds how long the end of a run waits for a collector.
	telemetryWait = 5 * time.Second
	otlpProtocol  = "http/protobuf"
)

// signal is a kind of telemetry, as the variables of OpenTelemetry name it.
type signal string

const (
	metrics signal = "METRICS"
	traces  signal = "TRACES"
)

// of returns the variable of the signal or, without it, the one for all.
func (s signal) of(name string) (variable, value string) {
	variable = "OTEL_EXPORTER_OTLP_" + string(s) + "_" + name
	if value = os.Getenv(variable); value == "" {
		variable = "OTEL_EXPORTER_OTLP_" + name
		value = os.Getenv(variable)
	}
	return variable, value
}

// isWanted reports whether the environment asks for a signal. What it asks in vain is a warning.
func (s signal) isWanted(log *slog.Logger) bool {
	variable, endpoint := s.of("ENDPOINT")
	if endpoint == "" || strings.EqualFold(strings.TrimSpace(os.Getenv("OTEL_SDK_DISABLED")), "true") {
		return false
	}
	exporter := cmp.Or(os.Getenv("OTEL_"+string(s)+"_EXPORTER"), "otlp")
	if exporter != "otlp" {
		if exporter != "none" {
			log.Warn("only otlp and none are supported; nothing is sent", "variable", "OTEL_"+string(s)+"_EXPORTER")
		}
		return false
	}
	if named, protocol := s.of("PROTOCOL"); cmp.Or(protocol, otlpProtocol) != otlpProtocol {
		log.Warn("this protocol of OpenTelemetry is not supported, and nothing is sent; set it to "+otlpProtocol+", and the endpoint to the port for it, which is 4318 as a rule", "variable", named)
		return false
	}
	if u, err := url.Parse(endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		log.Warn("this is no address of a collector, and nothing is sent; write one such as http://127.0.0.1:4318", "variable", variable)
		return false
	}
	return true
}

// Telemetry sends the metrics of a run to the collector that the variables of OpenTelemetry name, every
// minute, and at the end with a span for the run, whose parent is TRACEPARENT. Without these variables
// nothing is done. A collector that does not answer is a warning.
func Telemetry(ctx context.Context, gathered func() prometheus.Gatherer, log *slog.Logger) (end func(error)) {
	withMetrics, withTraces := metrics.isWanted(log), traces.isWanted(log)
	if !withMetrics && !withTraces {
		return func(error) {}
	}
	t := &telemetry{log: log}
	otel.SetLogger(logr.Discard()) // it would repeat variables that may be secret
	otel.SetErrorHandler(otel.ErrorHandlerFunc(t.warn))
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attribute.String("service.name", "leadetl"), attribute.String("service.version", cli.ProgramVersion())), resource.WithFromEnv())
	t.warn(err)
	if withMetrics {
		exporter, err := otlpmetrichttp.New(ctx)
		if t.warn(err); err == nil {
			reader := sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(gathered()))))
			t.closers = append(t.closers, sdkmetric.NewMeterProvider(sdkmetric.WithResource(about), sdkmetric.WithReader(reader)).Shutdown)
		}
	}
	endSpan := func(error) {}
	if withTraces {
		exporter, err := otlptracehttp.New(ctx)
		if t.warn(err); err == nil {
			provider := sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithBatcher(exporter))
			t.closers = append(t.closers, provider.Shutdown)
			endSpan = beginSpan(ctx, provider)
		}
	}
	return func(err error) {
		endSpan(err)
		t.close(ctx)
	}
}

// beginSpan begins the span of the run. It ends with the exit code alone: a cause may name files.
func beginSpan(ctx context.Context, provider *sdktrace.TracerProvider) (end func(error)) {
	from := propagation.MapCarrier{"traceparent": os.Getenv("TRACEPARENT"), "tracestate": os.Getenv("TRACESTATE")}
	_, span := provider.Tracer("leadetl").Start(propagation.TraceContext{}.Extract(ctx, from), "leadetl run")
	return func(err error) {
		code := cli.ExitCode(err)
		span.SetAttributes(attribute.Int("process.exit.code", code))
		if code != cli.ExitDone {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// telemetry is what is sent about a run.
type telemetry struct {
	log     *slog.Logger
	warned  sync.Once
	closers []func(context.Context) error
}

// warn warns of the first error.
func (t *telemetry) warn(err error) {
	if err == nil {
		return
	}
	if outer, is := errors.AsType[*url.Error](err); is {
		err = outer.Err // without the address
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("no answer in time")
	}
	t.warned.Do(func() {
		t.log.Warn("the collector of OpenTelemetry does not take what is sent; the run continues without", "reason", err)
	})
}

// close sends the rest, also after an interruption.
func (t *telemetry) close(ctx context.Context) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), telemetryWait)
	defer done()
	var closing sync.WaitGroup
	for _, each := range t.closers {
		closing.Go(func() { t.warn(each(ctx)) })
	}
	closing.Wait()
}
