package grpcapi

import (
	"context"
	"crypto/tls"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // clients may compress
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"onnxrl/export/serve"
	"onnxrl/export/serve/grpcapi/inference"
	"onnxrl/export/serve/guard"
)

// Defaults of Options.
const (
	DefaultMaxMessage    = 64 << 20
	DefaultMaxConcurrent = 1024
)

// Options of a server.
type Options struct {
	// Name and Version are what the server calls itself.
	Name, Version string
	// MaxMessage is the most bytes of a message, after decompression; MaxConcurrent the most inferences at once. 0 stands for the defaults.
	MaxMessage, MaxConcurrent int
	// Timeout bounds every inference; 0 means none.
	Timeout time.Duration
	// Guard says which calls are answered; nil is one without tokens, which keeps other sites' pages out.
	Guard *guard.Guard
	// TLS, unless nil, encrypts connections.
	TLS *tls.Config
	// Log gets failures of the server itself; nil drops them.
	Log *slog.Logger
}

type service struct {
	inference.UnimplementedGRPCInferenceServiceServer
	Options
	service serve.Service
	running atomic.Int64
}

// Register adds the service to a server; of the options only Name, Version, MaxConcurrent and Timeout matter.
func Register(r grpc.ServiceRegistrar, s serve.Service, o Options) {
	if o.MaxConcurrent <= 0 {
		o.MaxConcurrent = DefaultMaxConcurrent
	}
	inference.RegisterGRPCInferenceServiceServer(r, &service{Options: o, service: s})
	healthpb.RegisterHealthServer(r, &health{service: s})
}

// NewServer returns a server with the service, health and reflection.
func NewServer(s serve.Service, o Options) *grpc.Server {
	if o.MaxMessage <= 0 {
		o.MaxMessage = DefaultMaxMessage
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Guard == nil {
		o.Guard = guard.New(guard.Tokens{})
	}
	g := &gate{guard: o.Guard, log: o.Log}
	opts := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(o.MaxMessage), grpc.MaxHeaderListSize(64 << 10), grpc.MaxConcurrentStreams(1024), grpc.ConnectionTimeout(10 * time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(g.unary), grpc.StreamInterceptor(g.stream),
	}
	if o.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(o.TLS)))
	}
	server := grpc.NewServer(opts...)
	Register(server, s, o)
	reflection.Register(server)
	return server
}

// gate lets calls in that may be answered, and turns panics into INTERNAL.
type gate struct {
	guard *guard.Guard
	log   *slog.Logger
}

func (g *gate) check(ctx context.Context, method string) error {
	first := func(key string) string {
		if v := metadata.ValueFromIncomingContext(ctx, key); len(v) > 0 {
			return v[0]
		}
		return ""
	}
	// No browser calls a server by itself; what forwards its calls forwards these as well.
	if s := (guard.Sender{Origin: first("origin"), Site: first("sec-fetch-site")}); s.Browser() {
		s.Host = first(":authority")
		if err := g.guard.Sender(s); err != nil {
			return toStatus(err)
		}
	}
	right := guard.Use
	switch method {
	case inference.GRPCInferenceService_ServerLive_FullMethodName, inference.GRPCInferenceService_ServerReady_FullMethodName:
		right = guard.Open
	case inference.GRPCInferenceService_RepositoryModelLoad_FullMethodName, inference.GRPCInferenceService_RepositoryModelUnload_FullMethodName:
		right = guard.Administer
	default:
		if strings.HasPrefix(method, "/grpc.health.") {
			right = guard.Open
		}
	}
	return toStatus(g.guard.Authorize(right, first("authorization")))
}

func (g *gate) recovered(method string, err *error) {
	if v := recover(); v != nil {
		g.log.Error("a call panicked", "method", method, "panic", v, "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, "internal error")
	}
}

func (g *gate) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	defer g.recovered(info.FullMethod, &err)
	if err := g.check(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

func (g *gate) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer g.recovered(info.FullMethod, &err)
	if err := g.check(s.Context(), info.FullMethod); err != nil {
		return err
	}
	return next(srv, s)
}

// health answers the standard health check: the server's, and by its name a model's.
type health struct {
	healthpb.UnimplementedHealthServer
	service serve.Service
}

// Check says SERVING for the whole server ("" or the service's name) when it is ready, and for a model when it takes requests.
func (h *health) Check(_ context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	ok := false
	switch r.GetService() {
	case "", inference.GRPCInferenceService_ServiceDesc.ServiceName:
		ok = h.service.Ready()
	default:
		err := h.service.ModelReady(r.GetService(), "")
		if serve.CodeOf(err) == serve.NotFound && err != nil {
			return nil, toStatus(err)
		}
		ok = err == nil
	}
	if ok {
		return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
	}
	return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_NOT_SERVING}, nil
}

// toStatus gives an error the status of its class.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	return status.Error(codes.Code(serve.CodeOf(err).GRPCCode()), err.Error())
}
