package otlp

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// maxText bounds the texts of spans, some of which are the clients', unless
// OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT says otherwise.
const maxText = 1024

// Options of a provider. What they leave open is as OpenTelemetry's environment variables have it.
type Options struct {
	// Endpoint is the collector's URL, such as http://localhost:4318; where it has no path, spans
	// go to /v1/traces below it. Empty is what OTEL_EXPORTER_OTLP_ENDPOINT and
	// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT say.
	Endpoint string
	// Ratio in [0, 1] is the share of requests that are traced where the client has not decided it
	// in its traceparent. 1 is what OTEL_TRACES_SAMPLER says, all without it.
	Ratio float64
	// Name and Version are service.name and service.version, unless OTEL_SERVICE_NAME or
	// OTEL_RESOURCE_ATTRIBUTES say otherwise.
	Name, Version string
	// Failed receives errors of sending and of the environment, in the order that they happen,
	// from any goroutine.
	Failed func(error)
}

// Enabled reports whether the environment asks for traces.
func Enabled() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	_, endpoint := first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	return endpoint != ""
}

// CheckEndpoint reports what is wrong with an Options.Endpoint.
func CheckEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%q is no URL of a collector, expected one such as http://localhost:4318 (OTLP over HTTP)", endpoint)
	}
	return nil
}

// New returns a provider that sends spans in batches, in the background; what a collector does not
// take in time is dropped. Shutdown sends what is left. It replaces what package otel does with its
// errors in the whole process.
func New(ctx context.Context, o Options) (*trace.TracerProvider, error) {
	var to []otlptracehttp.Option
	if o.Endpoint != "" {
		if err := CheckEndpoint(o.Endpoint); err != nil {
			return nil, err
		}
		u, _ := url.Parse(o.Endpoint)
		if strings.Trim(u.Path, "/") == "" {
			u = u.JoinPath("v1", "traces")
		}
		to = append(to, otlptracehttp.WithEndpointURL(u.String()))
	} else {
		if name, protocol := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
			return nil, fmt.Errorf("%s is %q, expected http/protobuf, which collectors take on port 4318", name, protocol)
		}
		if name, endpoint := first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"); endpoint != "" {
			if err := CheckEndpoint(endpoint); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(o.Failed))
	otel.SetLogger(logr.New(sink{o.Failed}))
	exporter, err := otlptracehttp.New(ctx, to...)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(semconv.ServiceName(o.Name), semconv.ServiceVersion(o.Version)), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	limits := trace.NewSpanLimits()
	if limits.AttributeValueLengthLimit < 0 {
		limits.AttributeValueLengthLimit = maxText
	}
	options := []trace.TracerProviderOption{trace.WithBatcher(exporter), trace.WithResource(about), trace.WithRawSpanLimits(limits)}
	if o.Ratio < 1 {
		options = append(options, trace.WithSampler(trace.ParentBased(trace.TraceIDRatioBased(o.Ratio))))
	}
	return trace.NewTracerProvider(options...), nil
}

// first is the first of the environment's variables that is set.
func first(names ...string) (name, value string) {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return name, value
		}
	}
	return "", ""
}

// sink hands on what the library would write to standard error as it likes.
type sink struct{ failed func(error) }

func (sink) Init(logr.RuntimeInfo)            {}
func (sink) Enabled(int) bool                 { return false }
func (sink) Info(int, string, ...any)         {}
func (s sink) WithValues(...any) logr.LogSink { return s }
func (s sink) WithName(string) logr.LogSink   { return s }
func (s sink) Error(err error, what string, about ...any) {
	s.failed(fmt.Errorf("%s: %w %v", what, err, about))
}
