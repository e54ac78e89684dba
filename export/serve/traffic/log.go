package traffic

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/onnxrl/onnxrl/export/serve/tracing"
)

// Entry is a line of the request log; fields that are empty are left out.
type Entry struct {
	// Protocol is http or grpc, Remote the client's address, Method that of HTTP, Path the path or
	// the name of the call.
	Protocol, Remote, Method, Path string
	// Status is HTTP's, Code the name of gRPC's.
	Status int
	Code   string
	// Bytes of the answer's body, for HTTP.
	Bytes int64
	Took  time.Duration
	// RequestID is the client's.
	RequestID string
	// Span is the request's, or the one that the client named; nil for none.
	Span trace.Span
	// Err says why the request was refused or failed.
	Err error
}

// Log writes a line of the request log. Texts of clients are quoted by the logger, so that they
// cannot write lines of their own.
func (r *Recorder) Log(ctx context.Context, e Entry) {
	attrs := make([]slog.Attr, 0, 16)
	attrs = append(attrs, slog.String("protocol", e.Protocol), slog.String("remote", e.Remote))
	if e.Method != "" {
		attrs = append(attrs, slog.String("method", e.Method))
	}
	attrs = append(attrs, slog.String("path", e.Path))
	if e.Protocol == "http" {
		attrs = append(attrs, slog.Int("status", e.Status), slog.Int64("bytes", e.Bytes))
	} else {
		attrs = append(attrs, slog.String("code", e.Code))
	}
	attrs = append(attrs, slog.Duration("took", e.Took))
	if e.RequestID != "" {
		attrs = append(attrs, slog.String("request_id", e.RequestID))
	}
	attrs = append(attrs, tracing.Attrs(e.Span)...)
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", e.Err.Error()))
	}
	r.log.LogAttrs(ctx, slog.LevelInfo, "request", attrs...)
}
