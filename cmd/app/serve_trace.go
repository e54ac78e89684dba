package app

import (
	"context"
	"fmt"
	"time"

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

// traceFlush is how long a server that ends waits for a collector to take the last spans.
const traceFlush = 5 * time.Second

// tracer is nil where nobody wants traces. flush sends what is left.
func (a *app) tracer(ctx context.Context, c *serveConfig, warned *warnings) (t *tracing.Tracer, flush func(), err error) {
	if c.Trace.Endpoint == "" && !otlp.Enabled() {
		return nil, func() {}, nil
	}
	p, err := otlp.New(ctx, otlp.Options{
		Endpoint: c.Trace.Endpoint, Ratio: c.Trace.Ratio, Name: a.name, Version: a.version,
		Failed: func(err error) { a.serveWarn(warned, fmt.Errorf("traces: %w", err)) },
	})
	if err != nil {
		return nil, nil, fmt.Errorf("traces: %w", err)
	}
	return tracing.New(p), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceFlush)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			a.serveWarn(warned, fmt.Errorf("traces: %w", err))
		}
	}, nil
}
