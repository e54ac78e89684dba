package flightrpc

import (
	"cmp"
	"context"
	"crypto/tls"
	"strings"

	"github.com/apache/arrow/go/v15/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/runtime/buildinfo"
)

// MaxStreams is the number of calls of a connection that a server answers at once, and MaxHeaders the
// number of bytes of a call's metadata.
const (
	MaxStreams = 1024
	MaxHeaders = 64 << 10
)

// NewServer returns a gRPC server that answers for s: over TLS unless config is nil, and only calls
// whose metadata authorization, empty where it is missing, authorize has no error for, unless that is
// nil. Programs that say which build they are have to be the same as this one.
func NewServer(s flight.FlightServer, config *tls.Config, authorize func(authorization string) error) *grpc.Server {
	if authorize == nil {
		authorize = func(string) error { return nil }
	}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage), grpc.InitialWindowSize(4 << 20), grpc.InitialConnWindowSize(16 << 20),
		grpc.MaxConcurrentStreams(MaxStreams), grpc.MaxHeaderListSize(MaxHeaders),
		// Streams of learners and actors that have gone without a word end.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: alive, Timeout: 2 * alive}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: alive / 2, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if err := admitted(ctx, authorize); err != nil {
				return nil, err
			}
			return handler(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if err := admitted(stream.Context(), authorize); err != nil {
				return err
			}
			return handler(srv, stream)
		}),
	}
	if config != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	g := grpc.NewServer(options...)
	flight.RegisterFlightServiceServer(g, s)
	return g
}

func admitted(ctx context.Context, authorize func(string) error) error {
	md, _ := metadata.FromIncomingContext(ctx)
	if err := authorize(cmp.Or(md.Get("authorization")...)); err != nil {
		return status.Error(codes.Unauthenticated, err.Error())
	}
	for _, given := range md.Get(buildKey) {
		digest, version, _ := strings.Cut(given, " ")
		own, other := buildinfo.This(), buildinfo.Info{Version: version, Digest: digest}
		if !own.Same(other) {
			return status.Errorf(codes.FailedPrecondition, "the caller's program is %v, and the server's %v: both are to be the same, start the server with the caller's program", other, own)
		}
	}
	return nil
}

// buildKey is the metadata in which a program says which build it is: the digest, and after a space
// the version.
const buildKey = "onnxrl-build"
