package flightrpc

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"slices"

	"github.com/apache/arrow/go/v15/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// NewServer returns a gRPC server that answers for s: over TLS unless config is nil, and only those
// who have one of the tokens, unless there are none.
func NewServer(s flight.FlightServer, config *tls.Config, tokens []string) *grpc.Server {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage), grpc.InitialWindowSize(4 << 20), grpc.InitialConnWindowSize(16 << 20),
		// Streams of learners and actors that have gone without a word end.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: alive, Timeout: 2 * alive}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: alive / 2, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if err := admitted(ctx, tokens); err != nil {
				return nil, err
			}
			return handler(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if err := admitted(stream.Context(), tokens); err != nil {
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

func admitted(ctx context.Context, tokens []string) error {
	if len(tokens) == 0 {
		return nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	for _, given := range md.Get("authorization") {
		if slices.ContainsFunc(tokens, func(t string) bool { return subtle.ConstantTimeCompare([]byte("Bearer "+t), []byte(given)) == 1 }) {
			return nil
		}
	}
	return status.Error(codes.Unauthenticated, "a bearer token is needed, in the metadata authorization")
}
