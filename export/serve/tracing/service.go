package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/onnxrl/onnxrl/export/serve"
)

// service makes spans of inferences.
type service struct {
	serve.Service
	tracer trace.Tracer
}

// Service returns a service whose inferences are spans within those of their requests. Of a nil
// tracer it is the same one.
func (t *Tracer) Service(s serve.Service) serve.Service {
	if t == nil {
		return s
	}
	return service{s, t.tracer}
}

// Infer implements serve.Service.
func (s service) Infer(ctx context.Context, req *serve.Request, resp *serve.Response) error {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return s.Service.Infer(ctx, req, resp)
	}
	begin := time.Now()
	attrs := []attribute.KeyValue{attribute.String("triton.model_name", text(req.Model))}
	if req.ID != "" {
		attrs = append(attrs, attribute.String("triton.request_id", text(req.ID)))
	}
	if req.Sequence.ID != "" {
		attrs = append(attrs, attribute.String("sequence_id", text(req.Sequence.ID)))
	}
	ctx, span := s.tracer.Start(ctx, "InferRequest", trace.WithTimestamp(begin), trace.WithAttributes(attrs...))
	defer span.End()
	if err := s.Service.Infer(ctx, req, resp); err != nil {
		span.SetAttributes(attribute.String("triton.model_version", text(req.Version)), semconv.ErrorTypeKey.String(serve.CodeOf(err).String()))
		failed(span, err)
		return err
	}
	span.SetAttributes(attribute.String("triton.model_version", resp.Version))
	// The parts of a request follow one another, and are known when it is over.
	at := begin
	part := func(name string, took time.Duration, attrs ...attribute.KeyValue) {
		_, span := s.tracer.Start(ctx, name, trace.WithTimestamp(at), trace.WithAttributes(attrs...))
		at = at.Add(took)
		span.End(trace.WithTimestamp(at))
	}
	part("queue", resp.Timing.Queue)
	part("compute_input", resp.Timing.Input)
	part("compute_infer", resp.Timing.Infer, attribute.Int("batch_size", resp.Timing.Rows))
	part("compute_output", resp.Timing.Output)
	return nil
}
