package grpcapi

import (
	"crypto/tls"
	"log/slog"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // clients may compress
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/export/serve/tracing"
	"github.com/onnxrl/onnxrl/export/serve/traffic"
)

// Defaults of Options.
const (
	DefaultMaxMessage    = 64 << 20
	DefaultMaxConcurrent = 1024
	// MaxHeader is the most bytes of a call's metadata, MaxStreams the most calls at once of one
	// connection.
	MaxHeader  = 64 << 10
	MaxStreams = 1024
)

// Options of a server.
type Options struct {
	// Name and Version are what the server calls itself.
	Name, Version string
	// MaxMessage is the most bytes of a message, after decompression; MaxConcurrent the most
	// inferences at once. 0 stands for the defaults.
	MaxMessage, MaxConcurrent int
	// Timeout bounds every inference; 0 means none.
	Timeout time.Duration
	// Guard says which calls are answered; nil is one without tokens, which keeps other sites'
	// pages out.
	Guard *guard.Guard
	// Traffic records answers; nil is a recorder that nobody reads.
	Traffic *traffic.Recorder
	// Tracer makes the spans of calls; nil makes none.
	Tracer *tracing.Tracer
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

func register(r grpc.ServiceRegistrar, s *service, h *health) {
	inference.RegisterGRPCInferenceServiceServer(r, s)
	healthpb.RegisterHealthServer(r, h)
}

// NewServer returns a server with the service, health and reflection.
func NewServer(s serve.Service, o Options) *Server {
	if o.MaxMessage <= 0 {
		o.MaxMessage = DefaultMaxMessage
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Guard == nil {
		o.Guard = guard.New(guard.Tokens{})
	}
	if o.Traffic == nil {
		o.Traffic = traffic.New(nil)
	}
	g := &gate{guard: o.Guard, traffic: o.Traffic, tracer: o.Tracer, log: o.Log}
	opts := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(o.MaxMessage), grpc.MaxHeaderListSize(MaxHeader), grpc.MaxConcurrentStreams(MaxStreams), grpc.ConnectionTimeout(10 * time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		// Methods that nobody knows are refused like others.
		grpc.UnknownServiceHandler(g.guarded("", func(_ any, s grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(s)
			return status.Errorf(codes.Unimplemented, "unknown method %s", method)
		})),
	}
	if o.TLS != nil {
		opts = append(opts, grpc.Creds(credentials.NewTLS(o.TLS)))
	}
	if o.MaxConcurrent <= 0 {
		o.MaxConcurrent = DefaultMaxConcurrent
	}
	answers, quit := &service{Options: o, service: s}, make(chan struct{})
	watched := &health{service: s, interval: watchInterval, done: quit}
	return newServer(quit, func() *grpc.Server {
		server := grpc.NewServer(opts...)
		guarded := registrar{server, g}
		register(guarded, answers, watched)
		reflection.Register(guarded)
		return server
	})
}

// failure is an error with the status of its class.
type failure struct{ error }

// GRPCStatus is what goes out.
func (f failure) GRPCStatus() *status.Status {
	return status.New(codes.Code(serve.CodeOf(f.error).GRPCCode()), f.error.Error())
}

// Unwrap returns the error of package serve.
func (f failure) Unwrap() error { return f.error }

// loadFailure goes out as INTERNAL, which Triton's clients expect of loads that fail for what they
// bring.
type loadFailure struct{ failure }

// GRPCStatus is what goes out.
func (f loadFailure) GRPCStatus() *status.Status { return status.New(codes.Internal, f.Error()) }

// toStatus gives an error the status of its class.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	return failure{err}
}
