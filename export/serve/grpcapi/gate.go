package grpcapi

import (
	"context"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/export/serve/tracing"
	"github.com/onnxrl/onnxrl/export/serve/traffic"
)

// gate is what every call passes: it refuses those that may not be answered before their message is
// read, turns panics into INTERNAL, and records what became of them.
type gate struct {
	guard   *guard.Guard
	traffic *traffic.Recorder
	tracer  *tracing.Tracer
	log     *slog.Logger
}

// registrar puts all services behind a gate. It registers calls of one message as streams of one
// message: grpc reads the message of a call before it asks anybody, and refuses those that are too
// large without telling.
type registrar struct {
	*grpc.Server
	gate *gate
}

// RegisterService implements grpc.ServiceRegistrar.
func (r registrar) RegisterService(d *grpc.ServiceDesc, impl any) {
	behind := *d
	behind.Methods, behind.Streams = nil, nil
	for _, m := range d.Methods {
		behind.Streams = append(behind.Streams, grpc.StreamDesc{StreamName: m.MethodName, Handler: r.gate.guarded("/"+d.ServiceName+"/"+m.MethodName, func(srv any, s grpc.ServerStream) error {
			answer, err := m.Handler(srv, s.Context(), s.RecvMsg, nil)
			if err != nil {
				return err
			}
			return s.SendMsg(answer)
		})})
	}
	for _, m := range d.Streams {
		m.Handler = r.gate.guarded("/"+d.ServiceName+"/"+m.StreamName, m.Handler)
		behind.Streams = append(behind.Streams, m)
	}
	r.Server.RegisterService(&behind, impl)
}

// guarded is a handler behind the gate.
func (g *gate) guarded(method string, next grpc.StreamHandler) grpc.StreamHandler {
	right := rightFor(method)
	tracer := g.tracer
	if right == guard.Open || strings.HasPrefix(method, "/grpc.reflection.") {
		tracer = nil // probes
	}
	// The messages of this one are recorded one by one.
	single := method != inference.GRPCInferenceService_ModelStreamInfer_FullMethodName
	return func(srv any, s grpc.ServerStream) (err error) {
		var begin time.Time
		if g.traffic.Logs() {
			begin = time.Now()
		}
		ctx, span := tracer.GRPC(s.Context(), method)
		if span != nil {
			s = traced{s, ctx}
		}
		defer func() {
			if v := recover(); v != nil {
				g.log.LogAttrs(ctx, slog.LevelError, "a call panicked", append(tracing.Attrs(span), slog.String("method", method), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))...)
				err = status.Error(codes.Internal, "internal error")
			}
			if single || err != nil {
				g.traffic.GRPC(err)
			}
			tracing.EndGRPC(span, err)
			if g.traffic.Logs() {
				g.record(s, begin, span, err)
			}
		}()
		if err := g.check(s.Context(), right); err != nil {
			return toStatus(err)
		}
		return next(srv, s)
	}
}

// traced is a stream whose context carries a span.
type traced struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (t traced) Context() context.Context { return t.ctx }

// rightFor is what a method needs.
func rightFor(method string) guard.Right {
	switch method {
	case inference.GRPCInferenceService_ServerLive_FullMethodName, inference.GRPCInferenceService_ServerReady_FullMethodName:
		return guard.Open
	case inference.GRPCInferenceService_RepositoryModelLoad_FullMethodName, inference.GRPCInferenceService_RepositoryModelUnload_FullMethodName:
		return guard.Administer
	}
	if strings.HasPrefix(method, "/grpc.health.") {
		return guard.Open
	}
	return guard.Use
}

// header is the first value of a call's metadata, empty without one.
func header(ctx context.Context, key string) string {
	if v := metadata.ValueFromIncomingContext(ctx, key); len(v) > 0 {
		return v[0]
	}
	return ""
}

func (g *gate) check(ctx context.Context, right guard.Right) error {
	// No browser calls a server by itself; what forwards its calls forwards these as well.
	if s := (guard.Sender{Origin: header(ctx, "origin"), Site: header(ctx, "sec-fetch-site")}); s.Browser() {
		s.Host = header(ctx, ":authority")
		if err := g.guard.Sender(s); err != nil {
			return err
		}
	}
	return g.guard.Authorize(right, header(ctx, "authorization"))
}

// record writes a line of the request log.
func (g *gate) record(s grpc.ServerStream, begin time.Time, span trace.Span, err error) {
	e := traffic.Entry{Protocol: "grpc", Code: status.Code(err).String(), Took: time.Since(begin), RequestID: header(s.Context(), "x-request-id"), Span: span, Err: err}
	e.Path, _ = grpc.MethodFromServerStream(s)
	if p, ok := peer.FromContext(s.Context()); ok {
		e.Remote = p.Addr.String()
	}
	g.traffic.Log(s.Context(), e)
}
