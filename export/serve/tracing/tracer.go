package tracing

import (
	"context"
	"log/slog"
	"strings"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Tracer makes the spans of requests. A nil one makes none, but tells the traces that clients name,
// so that logs have them; what comes without costs it no allocation. It is safe for concurrent use.
type Tracer struct{ tracer trace.Tracer }

// New returns a tracer whose spans the provider takes.
func New(p trace.TracerProvider) *Tracer {
	return &Tracer{p.Tracer("github.com/onnxrl/onnxrl/export/serve")}
}

// parent is the client's trace as the two headers have it. It implements
// propagation.TextMapCarrier.
type parent struct{ traceparent, tracestate string }

func (p parent) Get(key string) string {
	switch key {
	case "traceparent":
		return p.traceparent
	case "tracestate":
		return p.tracestate
	}
	return ""
}

func (parent) Set(string, string) {}
func (parent) Keys() []string     { return []string{"traceparent", "tracestate"} }

// parentOf takes the values of the two headers. A traceparent that is there twice is none, as W3C
// has it.
func parentOf(traceparent, tracestate []string) parent {
	if len(traceparent) != 1 {
		return parent{}
	}
	return parent{traceparent[0], strings.Join(tracestate, ",")}
}

// start begins the span of a request. With nothing to tell the context is what it was and the span
// nil.
func (t *Tracer) start(ctx context.Context, p parent, name string, attrs trace.SpanStartOption) (context.Context, trace.Span) {
	if p.traceparent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, p)
	}
	if t != nil {
		return t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), attrs)
	}
	if span := trace.SpanFromContext(ctx); span.SpanContext().IsValid() {
		return ctx, span
	}
	return ctx, nil
}

// text makes what clients sent fit for a span: one text that is not UTF-8 would keep all spans of
// its message from being sent.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// failed marks a span.
func failed(span trace.Span, err error) {
	why := ""
	if err != nil {
		why = text(err.Error())
	}
	span.SetStatus(codes.Error, why)
}

// Attrs are trace_id and span_id for a line of a log, none without a span.
func Attrs(span trace.Span) []slog.Attr {
	if span == nil {
		return nil
	}
	c := span.SpanContext()
	return []slog.Attr{slog.String("trace_id", c.TraceID().String()), slog.String("span_id", c.SpanID().String())}
}
