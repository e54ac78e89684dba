package app

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/onnxrl/onnxrl/export/serve/tracing"
	"github.com/onnxrl/onnxrl/export/serve/tracing/otlp"
)

// serveTrace is where a server's spans go: to Endpoint, or where the environment variables of
// OpenTelemetry say, and else nowhere. Ratio is the share of requests that are traced where their
// client has not decided it.
type serveTrace struct {
	Endpoint string
	Ratio    float64
}

// traceFlush is how long a service that ends waits for a collector to take the last spans.
const traceFlush = 4 * time.Second

// tracer is nil where nobody wants traces. flush sends what is left.
func (a *app) tracer(ctx context.Context, c *serveConfig, warned *warnings) (t *tracing.Tracer, flush func(), err error) {
	p, flush, err := a.spans(ctx, c.Trace, func(err error) { a.serveWarn(warned, err) })
	if p == nil {
		return nil, flush, err
	}
	return tracing.New(p), flush, nil
}

// spans is what takes the spans of a service, nil where nobody wants them. flush sends what is
// left; warn receives errors of spans that could not be sent.
func (a *app) spans(ctx context.Context, c serveTrace, warn func(error)) (p trace.TracerProvider, flush func(), err error) {
	if c.Endpoint == "" && !otlp.Enabled() {
		return nil, func() {}, nil
	}
	to, err := otlp.New(ctx, otlp.Options{
		Endpoint: c.Endpoint, Ratio: c.Ratio, Name: a.name, Version: a.version,
		Failed: func(err error) { warn(fmt.Errorf("traces: %w", err)) },
	})
	if err != nil {
		return nil, nil, fmt.Errorf("traces: %w", err)
	}
	return to, func() {
		// A collector that does not answer is no reason to end otherwise.
		defer a.stop.hold(traceFlush + stopGrace)()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceFlush)
		defer cancel()
		if err := to.Shutdown(ctx); err != nil {
			warn(fmt.Errorf("traces: %w", err))
		}
	}, nil
}
