package spans

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Stages is the most stages that a trace has; later ones are added to the last.
const Stages = 16

// Carrier names a trace in the headers of a message, as W3C's Trace Context has it (Level 1,
// sections 3.2 and 3.3). Both are empty for none. It implements propagation.TextMapCarrier.
type Carrier struct{ Traceparent, Tracestate string }

// Get implements propagation.TextMapCarrier.
func (c *Carrier) Get(key string) string {
	switch key {
	case "traceparent":
		return c.Traceparent
	case "tracestate":
		return c.Tracestate
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (c *Carrier) Set(key, value string) {
	switch key {
	case "traceparent":
		c.Traceparent = value
	case "tracestate":
		c.Tracestate = value
	}
}

// Keys implements propagation.TextMapCarrier.
func (c *Carrier) Keys() []string { return []string{"traceparent", "tracestate"} }

// Tracer begins traces. It is safe for concurrent use.
type Tracer struct{ tracer trace.Tracer }

// New returns a tracer whose spans a provider takes; scope is the path of the package that traces.
// Of a nil provider it is nil.
func New(p trace.TracerProvider, scope string) *Tracer {
	if p == nil {
		return nil
	}
	return &Tracer{p.Tracer(scope)}
}

// Trace is a piece of work that goes on. It is used by one goroutine, and is not copied.
type Trace struct {
	tracer trace.Tracer
	ctx    context.Context
	span   trace.Span
	from   Carrier
	since  time.Time
	stages [Stages]stage
	n      int
}

// stage is a part of the work, and when it was over.
type stage struct {
	name string
	end  time.Time
}

// Begin begins a trace in w, whose earlier one has ended: name is that of the whole, which arrived
// at a time, in a message that names a trace by from, or in none.
func (t *Tracer) Begin(ctx context.Context, w *Trace, name string, at time.Time, from Carrier) {
	w.tracer, w.span, w.from, w.n = nil, nil, from, 0
	if t == nil {
		return
	}
	if from.Traceparent != "" {
		in := from // it escapes
		ctx = propagation.TraceContext{}.Extract(ctx, &in)
	}
	w.tracer, w.since = t.tracer, at
	w.ctx, w.span = t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithTimestamp(at))
}

// Mark says that a stage is over: it began where the one before ended, the first with the trace. It
// allocates nothing.
func (w *Trace) Mark(name string, now time.Time) {
	if w.span == nil {
		return
	}
	if w.n == Stages {
		w.stages[w.n-1].end = now
		return
	}
	w.stages[w.n] = stage{name, now}
	w.n++
}

// Carrier names the trace to whoever receives what is sent. Without a tracer that is the one that
// the work was given.
func (w *Trace) Carrier() Carrier {
	if w.span == nil {
		return w.from
	}
	var c Carrier
	propagation.TraceContext{}.Inject(w.ctx, &c)
	return c
}

// End makes the spans, up to a time. An error marks the whole as failed.
func (w *Trace) End(now time.Time, err error, attrs ...attribute.KeyValue) {
	if w.span == nil {
		return
	}
	span := w.span
	w.span = nil
	if span.IsRecording() {
		since := w.since
		for _, s := range w.stages[:w.n] {
			_, part := w.tracer.Start(w.ctx, s.name, trace.WithTimestamp(since))
			part.End(trace.WithTimestamp(s.end))
			since = s.end
		}
		span.SetAttributes(attrs...)
		if err != nil {
			// One text that is not UTF-8 would keep all spans of its message from being sent.
			span.SetStatus(codes.Error, strings.ToValidUTF8(err.Error(), "\uFFFD"))
		}
	}
	span.End(trace.WithTimestamp(now))
}
