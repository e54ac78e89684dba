package tracing

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// GRPC begins the span of a call; method is such as /inference.GRPCInferenceService/ModelInfer, and
// empty for methods that nobody knows. The context that is returned carries the span. Without
// tracer and without a client's trace it is the same one, and the span nil.
func (t *Tracer) GRPC(ctx context.Context, method string) (context.Context, trace.Span) {
	p := parentOf(metadata.ValueFromIncomingContext(ctx, "traceparent"), metadata.ValueFromIncomingContext(ctx, "tracestate"))
	if t == nil {
		if p.traceparent == "" {
			return ctx, nil
		}
		_, span := t.start(ctx, p, "", nil)
		return ctx, span
	}
	method = strings.TrimPrefix(method, "/")
	if method == "" {
		method = "_OTHER"
	}
	var attrs []attribute.KeyValue
	if p, ok := peer.FromContext(ctx); ok {
		attrs = remote(p.Addr.String())
	}
	attrs = append(attrs, semconv.RPCSystemNameGRPC, semconv.RPCMethod(method))
	return t.start(ctx, p, method, trace.WithAttributes(attrs...))
}

// codeNames are gRPC's own spellings; package codes has those of Go.
var codeNames = [...]string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}

// EndGRPC ends the span of a call; nil is a success.
func EndGRPC(span trace.Span, err error) {
	if span == nil || !span.IsRecording() {
		return
	}
	code, name := status.Code(err), "UNKNOWN"
	if int(code) < len(codeNames) {
		name = codeNames[code]
	}
	span.SetAttributes(semconv.RPCResponseStatusCode(name))
	switch code {
	case codes.OK:
	case codes.Unknown, codes.DeadlineExceeded, codes.Unimplemented, codes.Internal, codes.Unavailable, codes.DataLoss:
		failed(span, err)
		fallthrough
	default: // the client's
		span.SetAttributes(semconv.ErrorTypeKey.String(name))
	}
	span.End()
}
